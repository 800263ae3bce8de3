"""Real models and ONNX's own suite at other opsets, beside `onnx.version_converter`: writes `docs/measured/opsets.md`.

    python benchmarks/opsets.py [--largest MB] [--models zoo.csv …] [--no-suite] [--no-models]

Every model of the list that is an ONNX file is written at each opset, is loaded by ONNX Runtime, and is run beside the
original as every conversion is. A process of its own handles each model, so that one that takes too long or crashes
costs no other its result.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from machine import describe

from onward import runners
from onward.canon.opset import at_opset
from onward.errors import OnwardError, UnsupportedError
from onward.model import Model, load
from onward.scoreboard import suite
from onward.verification.check import attempted, compared_with_source, verdict
from onward.verification.compare import measure
from onward.verification.data.sets import make_inputs
from onward.zoo.fetch import fetched
from onward.zoo.listing import Entry, listed

PAGE = Path(__file__).parents[1] / "docs/measured/opsets.md"
LIST = Path(__file__).with_name("zoo.csv")
OPSETS = (11, 13, 17, 21)
SECONDS = 400
SUITE_OPSET = 13
KNOWN = {
    "test_dft_inverse_opset19": "rounding: what is expected, numbers up to 54 in float32, is 1.5e-06 from the result in"
    " doubles, what Onward writes 4.4e-07, and 1e-07 is allowed beside a zero",
}
"""Cases whose difference was looked into, and what it is."""
TOOLS = ("Onward", "version_converter")


@dataclass(frozen=True)
class Cell:
    """One model at one opset, by one tool."""

    model: str
    before: int
    opset: int
    tool: str
    status: str  # "agrees", "refused", "differs", "does not load", "not told"
    words: str = ""

    @property
    def direction(self) -> str:
        return "down" if self.opset < self.before else "up" if self.opset > self.before else "same"


def of_model(entry: Entry) -> Iterator[Cell]:
    model = load(fetched(entry))
    before = model.opset.get("", 0)
    for opset in OPSETS:
        for tool in TOOLS:
            status, words = _result(model, opset, tool)
            yield Cell(entry.name, before, opset, tool, status, _plain(words))


def _result(model: Model, opset: int, tool: str) -> tuple[str, str]:
    try:
        made = at_opset(model, opset).model if tool == "Onward" else _converted(model, opset)
    except Exception as error:
        refused = isinstance(error, UnsupportedError) if tool == "Onward" else True
        return ("refused" if refused else "fails"), f"{error}"
    try:
        runners.prepare("onnxruntime", made)
    except OnwardError as error:
        return "does not load", f"{error}"
    for referee in ("onnxruntime", "reference"):
        try:
            run = runners.prepare(referee, model)
            break
        except OnwardError as error:
            failure = error
    else:
        return "not told", f"the original does not run: {failure}"
    found = verdict(attempted(partial(compared_with_source, made, run, "the original")))
    status = {"verified": "agrees", "different": "differs"}.get(found.status, "not told")
    return status, found.words + (plainly(model, made) if status == "not told" else "")


def plainly(model: Model, made: Model) -> str:
    """How far two models are apart where nodes are computed one by one, as they stand."""
    inputs = make_inputs(model)
    one, other = (runners.prepare("onnxruntime:unoptimized", each)(inputs) for each in (model, made))
    worst = max(error.overall for error in measure(one, other).values())
    return (
        f"; without the optimisations of ONNX Runtime the two are {worst:.0e} apart"
        if worst
        else ("; without the optimisations of ONNX Runtime the two are equal to the last bit")
    )


def _converted(model: Model, opset: int) -> Model:
    return load(onnx.version_converter.convert_version(model.to_proto(), opset))


def _plain(words: str) -> str:
    """The first line of a message, without paths of this machine."""
    return re.sub(r"/[\w./-]*/", "", words.strip().split("\n")[0])[:320]


def alone(entry: Entry) -> list[Cell]:
    """In a process of its own; what it has found when its time is over counts."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(entry, theirs), daemon=True)
    process.start()
    theirs.close()
    cells: list[Cell] = []
    try:
        while ours.poll(SECONDS):
            cells.append(ours.recv())
        process.kill()
    except EOFError:
        pass
    process.join()
    return cells


def _send(entry: Entry, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    try:
        for cell in of_model(entry):
            pipe.send(cell)
    except Exception as error:
        print(f"{entry.name}: {_plain(str(error))}", flush=True)


def of_suite(opset: int) -> list[tuple[str, str, str]]:
    """Each case that is newer than the opset, its outcome, and why."""
    found = []
    for name, case in suite.cases().items():
        model = case.model
        if model is None and case.model_dir is not None:
            model = onnx.load(Path(case.model_dir) / "model.onnx")
        if model is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, why = _case(case, model, opset)
            found.append((name, outcome, KNOWN.get(name, why)))
    return found


def _case(case: Any, model: onnx.ModelProto, opset: int) -> tuple[str, str]:
    try:
        made = at_opset(load(model), opset).model
    except UnsupportedError as error:
        return "refused", str(error)
    except Exception as error:
        return "fails", f"{type(error).__name__}: {error}"
    problems = []
    for referee in ("onnxruntime", "reference"):
        try:
            run = runners.prepare(referee, made)
            if (difference := _differs(case, model, run)) == "":
                return "agrees", referee
            problems.append(f"{referee}: {difference}")
        except Exception as error:
            problems.append(f"{referee}: {error}")
    for referee in ("onnxruntime", "reference"):
        try:
            if _differs(case, model, runners.prepare(referee, load(model))) == "":
                break
        except Exception as error:
            problems.append(f"the original on {referee}: {error}")
    else:
        return "nor does the original", problems[0]
    return "differs" if any("is not what" in p for p in problems) else "not run", " · ".join(problems)


def _differs(case: Any, model: onnx.ModelProto, run: Any) -> str:
    names = [value.name for value in model.graph.input]
    for inputs, outputs in suite.data_sets(case):
        feeds = {name: value for name, value in zip(names, inputs, strict=False) if value is not None}
        found = list(run(feeds).values())
        for value, wanted, actual in zip(model.graph.output, outputs, found, strict=False):
            if not _same(actual, wanted, case):
                return f"{value.name} is not what it should be{_error(actual, wanted)}"
    return ""


def _same(actual: Any, wanted: Any, case: Any) -> bool:
    if isinstance(wanted, list | tuple):
        return len(actual) == len(wanted) and all(_same(a, b, case) for a, b in zip(actual, wanted, strict=True))
    if wanted is None or actual is None:
        return actual is wanted
    a, b = np.asarray(actual), np.asarray(wanted)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if b.dtype.kind in "OUS":
        return [_text(x) for x in a.ravel()] == [_text(x) for x in b.ravel()]
    if b.dtype.kind not in "biufc":
        return bool(np.allclose(a.astype(np.float32), b.astype(np.float32), rtol=2**-7, atol=1e-3, equal_nan=True))
    return bool(np.allclose(a, b, rtol=case.rtol, atol=case.atol, equal_nan=True))


def _error(actual: Any, wanted: Any) -> str:
    """By how much, where that is a number."""
    if isinstance(wanted, list | tuple) or wanted is None or np.shape(actual) != np.shape(wanted):
        return ""
    if np.asarray(wanted).dtype.kind != "f":
        return ""
    return f", by {np.max(np.abs(np.asarray(actual, np.float64) - np.asarray(wanted, np.float64))):.1e} at most"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


HEAD = """# Any opset to any opset

Real models and ONNX's own suite, [written at other opsets](../guide/onnx-to-onnx.md).
`benchmarks/opsets.py` writes this page.

<!-- written by benchmarks/opsets.py -->

"""
OF_MODELS, OF_SUITE = "## Real models", f"## ONNX's suite at opset {SUITE_OPSET}"


def models_section(cells: list[Cell], left: list[str], largest: float) -> str:
    models = len({cell.model for cell in cells})
    lines = [
        OF_MODELS,
        "",
        describe("onward", "onnx", "onnxruntime"),
        "",
        f"{models} ONNX files of `benchmarks/zoo.csv`, up to {largest:g} MB each,"
        f" at opsets {', '.join(map(str, OPSETS))}."
        " A result counts where ONNX Runtime loads it and it agrees with the original.",
        "",
        "| direction | tool | conversions | agree | refused | **wrong** | does not load | cannot be told |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for direction in ("up", "down", "same"):
        for tool in TOOLS:
            these = [c for c in cells if c.direction == direction and c.tool == tool]
            count = Counter("does not load" if c.status == "fails" else c.status for c in these)
            share = f" ({100 * count['agrees'] / len(these):.0f} %)" if these else ""
            row = [direction, tool, len(these), f"{count['agrees']}{share}"]
            row += [count[status] for status in ("refused", "differs", "does not load", "not told")]
            lines.append(f"| {' | '.join(map(str, row))} |")
    other = [c for c in cells if c.tool == "Onward" and c.status != "agrees"]
    if other:
        lines += ["", "What did not agree with Onward, and why:", ""]
        lines += ["| model | from | to | result | why |", "|---|---|---|---|---|"]
        lines += [f"| {c.model} | {c.before} | {c.opset} | {c.status} | {_cell(c.words)} |" for c in other]
    if left:
        lines += ["", f"Not tried, because they could not be fetched or read: {', '.join(sorted(left))}."]
    return "\n".join(lines) + "\n\n"


def suite_section(cases: list[tuple[str, str, str]]) -> str:
    count = Counter(outcome for _, outcome, _ in cases)
    lines = [
        OF_SUITE,
        "",
        describe("onward", "onnx", "onnxruntime"),
        "",
        f"{len(cases)} cases: {count['agrees']} agree, {count['refused']} are refused by name, {count['differs']}"
        f" differ, {count['not run'] + count['fails']} are not run; of {count['nor does the original']} the"
        " original does not give what is expected here, either.",
        "",
        "| cases | result | why |",
        "|---|---|---|",
    ]
    reasons = Counter((outcome, _reason(outcome, why)) for _, outcome, why in cases if outcome != "agrees")
    lines += [f"| {n} | {outcome} | {_cell(why)} |" for (outcome, why), n in reasons.most_common()]
    return "\n".join(lines) + "\n"


def as_it_is(title: str) -> str:
    """A section of the page, up to the next one."""
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(title)
    return found + rest.split("\n## ")[0].rstrip() + "\n" + ("\n" if title == OF_MODELS else "")


def _reason(outcome: str, why: str) -> str:
    """A refusal without the name of the node; the others with what was said."""
    if outcome == "refused":
        said = re.sub(r"^(\S+) '[^']*'", r"\1", why).split("; give")[0]
        return said.replace(f": opset {SUITE_OPSET} cannot say it", "")
    return why if why in KNOWN.values() else _plain(why)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=[str(LIST)])
    parser.add_argument("--largest", type=float, default=64, help="MB")
    parser.add_argument("--no-suite", action="store_true", help="its section of the page stays as it is")
    parser.add_argument("--no-models", action="store_true", help="their section of the page stays as it is")
    parser.add_argument("--kept", type=Path, default=Path("build/opsets.jsonl"), help="results that are not made again")
    args = parser.parse_args()
    entries = [e for e in listed(args.models) if e.format == "onnx" and e.size_bytes <= args.largest * 2**20]
    args.kept.parent.mkdir(parents=True, exist_ok=True)
    cells = [Cell(**json.loads(line)) for line in args.kept.read_text().splitlines()] if args.kept.exists() else []
    known = {cell.model for cell in cells}
    for entry in [] if args.no_models else entries:
        if entry.name not in known:
            found = alone(entry)
            cells += found
            with args.kept.open("a") as file:
                file.writelines(json.dumps(asdict(cell)) + "\n" for cell in found)
            print(entry.name, " ".join(f"{c.opset}:{c.status}" for c in found if c.tool == "Onward"), flush=True)
    left = [entry.name for entry in entries if entry.name not in {cell.model for cell in cells}]
    models = as_it_is(OF_MODELS) if args.no_models else models_section(cells, left, args.largest)
    cases = as_it_is(OF_SUITE) if args.no_suite else suite_section(of_suite(SUITE_OPSET))
    PAGE.write_text(HEAD + models + cases, encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
