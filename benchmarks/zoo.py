"""Real pretrained models, converted to PyTorch, TensorFlow or Keras and compared with ONNX Runtime.

python benchmarks/zoo.py                 fetch the models of zoo.csv
python benchmarks/zoo.py --run           and convert, run and compare each; writes docs/measured/zoo.md
python benchmarks/zoo.py --run silero    only those with `silero` in their name; writes nothing
python benchmarks/zoo.py --run --peers   with onnx2torch and onnx2pytorch on the same inputs
python benchmarks/zoo.py --run --backend tensorflow   for TensorFlow; writes docs/measured/zoo-tensorflow.md
python benchmarks/zoo.py --run --backend keras   for Keras; writes nothing
"""

import argparse
import functools
import itertools
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import or_
from pathlib import Path
from typing import NamedTuple

import machine
import numpy as np
import onnx
import peers
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from zoo_fetch import Entry, entries, fetch

import onward
from onward.backends.torch.values import to_framework, to_numpy
from onward.runners import prepare
from onward.runners.calls import Run
from onward.verification.compare import Error, Outputs, compare, differences, floor, measure
from onward.verification.data.sets import Inputs, input_sets
from onward.verification.noise.spread import jittered

DOCS = Path(__file__).parent.parent / "docs/measured"
SETS = 2
"""How many sets of inputs, of different sizes where the model has dynamic ones, each model is tried on."""
JITTERS = 2
Converter = Callable[[Path], Run]
UNKNOWN = Error(float("nan"), float("nan"))


@dataclass
class Reference:
    """What ONNX Runtime says, and how sure it is: the noise is how far off it is without optimisations, and with
    every intermediate result off by one unit in the last place.
    """

    inputs: list[Inputs] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    noise: dict[str, Error] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    verdict: str
    """'same', 'different', or 'fails'"""
    detail: str = ""
    error: Error = UNKNOWN
    seconds: float = float("nan")


def reference(path: Path) -> Reference:
    proto = onnx.load(path)
    model = onward.load(path)
    optimized, others = prepare("onnxruntime", model), [prepare("onnxruntime:unoptimized", model)]
    for seed in range(JITTERS):
        others.append(prepare("onnxruntime:unoptimized", onward.load(jittered(proto, seed))))
    made = Reference()
    for inputs in itertools.islice(input_sets(model), SETS):
        outputs = optimized(inputs)
        made.inputs.append(inputs)
        made.outputs.append(outputs)
        for other in others:
            for name, error in measure(outputs, other(inputs)).items():
                made.noise[name] = made.noise.get(name, Error()) | error
    return made


def module(convert: Callable[[Path], torch.nn.Module]) -> Converter:
    """Of a converter to PyTorch: outputs go by the names and the order that the model has them in."""

    def opened(path: Path) -> Run:
        net = convert(path).eval()
        names = [output.name or "" for output in onward.load(path).ir.graph.outputs]

        def run(inputs: Inputs) -> Outputs:
            with torch.inference_mode():
                outputs = net(*(to_framework(value) for value in inputs.values()))
            values = outputs if len(names) > 1 and isinstance(outputs, list | tuple) else [outputs]
            return dict(zip(names, map(to_numpy, values), strict=True))

        return run

    return opened


def runner(name: str) -> Converter:
    """Of a runner by its name, such as `tensorflow`."""
    return lambda path: prepare(name, onward.load(path))


to_torch = functools.partial(onward.to_torch, check=False)  # it is compared here
BACKENDS = {"torch": module(to_torch), "tensorflow": runner("tensorflow"), "keras": runner("keras")}
PEERS = {"onnx2torch": module(peers.onnx2torch), "onnx2pytorch": module(peers.onnx2pytorch)}
TRACED = {"onward, traced": runner("tensorflow:function")}
PAGES = {
    "torch": ("PyTorch", "zoo.md", "--run --peers", ("torch", "onnxruntime", "onnx2torch", "onnx2pytorch")),
    "tensorflow": ("TensorFlow", "zoo-tensorflow.md", "--run --backend tensorflow", ("tensorflow-cpu", "onnxruntime")),
}
"""By backend: its name, the page, what writes it, and the packages that it depends on."""


def judge(path: Path, convert: Converter, against: Reference) -> Result:
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = convert(path)
            seconds = time.perf_counter() - start
            error = Error()
            for inputs, expected in zip(against.inputs, against.outputs, strict=True):
                actual = run(inputs)
                error = functools.reduce(or_, measure(expected, actual).values(), error)
                if wrong := differences(compare(expected, actual, against.noise)):
                    return Result("different", wrong[0], error, seconds)
    except Exception as problem:
        return Result("fails", f"{type(problem).__name__}: {problem}")
    return Result("same", "", error, seconds)


class Row(NamedTuple):
    entry: Entry
    noise: Error
    results: dict[str, Result]


def evaluate(chosen: list[Entry], converters: dict[str, Converter]) -> list[Row]:
    rows = []
    for entry in track(chosen, "converting", console=Console(stderr=True)):
        truth = reference(entry.path)
        results = {name: judge(entry.path, convert, truth) for name, convert in converters.items()}
        rows.append(Row(entry, functools.reduce(or_, truth.noise.values()), results))
    return rows


def show(rows: list[Row], console: Console) -> None:
    colours = {"same": "green", "different": "red", "fails": "red"}
    converters = list(rows[0][2])
    table = Table(title=f"{len(rows)} pretrained models against ONNX Runtime")
    for heading in ("model", "own noise", *converters, "error", "convert"):
        table.add_column(heading, justify="left" if heading == "model" or heading in converters else "right")
    for entry, noise, results in rows:
        ours = results["onward"]
        verdicts = [f"[{colours[r.verdict]}]{r.verdict}[/]" for r in results.values()]
        table.add_row(entry.name, _both(noise), *verdicts, _both(ours.error), f"{ours.seconds:.2f} s")
    console.print(table)
    for entry, _, results in rows:
        if results["onward"].verdict != "same":
            console.print(f"[bold]{entry.name}[/]: {results['onward'].detail}", highlight=False)
    for name in converters:
        console.print(f"{name}: {_count(rows, name)} of {len(rows)} the same")
    console.print(peers.remark())


def _count(rows: list[Row], name: str) -> int:
    return sum(results[name].verdict == "same" for _, _, results in rows)


def page(rows: list[Row], backend: str) -> str:
    title, _, options, packages = PAGES[backend]
    converters = list(rows[0][2])
    counts = ", ".join(f"{name} {_count(rows, name)}" for name in converters)
    lines = [
        f"# Real pretrained models on {title}",
        "",
        f"{len(rows)} ONNX files as published in packages on PyPI and npm, converted to {title} and run on",
        f"{SETS} sets of generated inputs each. Agree with ONNX Runtime on every output: **{counts}**.",
        "",
        "*Error*, worst of all outputs: of a single element, |difference| / (|expected| + rms of the output) /",
        "overall, rms of the difference / rms of the output. *Own noise* is the same between ONNX Runtime with",
        "optimisations on and off, and between the model and a copy with each intermediate result off by one",
        "unit in the last place. The tolerance is four times the noise of each output, and at least",
        f"{floor(np.dtype(np.float32)):.0e} for float32. Made by `benchmarks/zoo.py {options}`.",
        "",
        machine.describe("onward", *packages),
        *([peers.remark()] if backend == "torch" else []),
        "",
        "| model | package | task | own noise | error | " + " | ".join(converters) + " |",
        "|---|---|---|---|---|" + "---|" * len(converters),
    ]
    for entry, noise, results in rows:
        verdicts = " | ".join(results[name].verdict for name in converters)
        cells = f"{Path(entry.name).name} | {entry.package} | {entry.task} | {_both(noise)} | "
        lines.append(f"| {cells}{_both(results['onward'].error)} | {verdicts} |")
    lines += ["", "## What stops each", ""]
    for entry, _, results in rows:
        for name, result in results.items():
            if result.verdict != "same":
                lines.append(f"- `{entry.name}`, {name}: {_one_line(result.detail)}")
    return "\n".join(lines) + "\n"


def _both(error: Error) -> str:
    return f"{error.worst:.0e} / {error.overall:.0e}"


def _one_line(text: str, width: int = 160) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of model names; all models by default")
    parser.add_argument("--run", action="store_true", help="convert, run and compare")
    parser.add_argument("--peers", action="store_true", help="with the other converters")
    parser.add_argument("--backend", choices=BACKENDS, default="torch", help="what to convert to")
    parser.add_argument("--traceback", action="store_true", help="show where a conversion fails")
    args = parser.parse_args()
    if args.peers and args.backend != "torch":
        parser.error("the other converters make PyTorch modules")

    chosen = [e for e in entries() if not args.names or any(name in e.name for name in args.names)]
    console = Console()
    if failures := fetch(chosen):
        for name, reason in failures.items():
            console.print(f"[red]{name}[/]: {reason}", highlight=False)
        sys.exit(f"{len(failures)} of {len(chosen)} models could not be fetched")
    console.print(f"{len(chosen)} models present, SHA-256 checked")
    if not args.run:
        return
    if args.traceback:
        for entry in chosen:
            try:
                BACKENDS[args.backend](entry.path)
            except Exception:
                traceback.print_exc()
    others = PEERS if args.peers else TRACED if args.backend == "tensorflow" else {}
    rows = evaluate(chosen, {"onward": BACKENDS[args.backend], **others})
    show(rows, console)
    if (args.peers or args.backend == "tensorflow") and not args.names:
        path = DOCS / PAGES[args.backend][1]
        path.write_text(page(rows, args.backend), encoding="utf-8")
        console.print(f"wrote {path}")
    sys.exit(_count(rows, "onward") < len(rows))


if __name__ == "__main__":
    main()
