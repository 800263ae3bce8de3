"""Real models simplified, beside onnxsim and onnxslim: writes docs/measured/simplify.md.

    python benchmarks/simplify.py --peer PYTHON --part small    PYTHON is one that has onnxsim and onnxslim
    python benchmarks/simplify.py --peer PYTHON --again NAME    NAME is made again, without a name all are

A model that was measured before is measured again where Onward makes another file of it now.

Models are the ONNX files of `zoo.csv`, each in a process of its own; the others simplify in processes of theirs. Nodes
are counted as files have them, Constant nodes and those of bodies too. Each result runs on the inputs of the original,
and is the same within what `onward verify` allows. A time is that of the processor, on one thread, in that of the
original: each in turn, many times, and the median of these ratios. The original is measured beside itself in the same
way, in another session; the column *itself* says how much of a ratio is noise. A size is that of the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import onnx
import onnxruntime
import turns
from machine import describe, write_section
from rich.console import Console
from rich.progress import track

import onward
from onward.engine.jobs import Limits, Work
from onward.engine.local import Local
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.passes.fewer.smaller import smaller
from onward.runners.calls import Inputs
from onward.verification.data.sets import make_inputs
from onward.zoo.fetch import fetched
from onward.zoo.listing import Entry, listed

ROOT = Path(__file__).parents[1]
PAGE, LIST, KEPT = ROOT / "docs/measured/simplify.md", ROOT / "benchmarks/zoo.csv", ROOT / "build/simplify.jsonl"
OURS = "Onward"
PEERS = {
    "onnxsim": "import onnx, onnxsim, sys; onnx.save(onnxsim.simplify(onnx.load(sys.argv[1]))[0], sys.argv[2])",
    "onnxslim": "import onnx, onnxslim, sys; onnx.save(onnxslim.slim(onnx.load(sys.argv[1])), sys.argv[2])",
}
LIMITS = Limits(1800.0, 16 * 10**9)
SESSIONS, ROUNDS, SECONDS = 3, 9, 3.0
"""How often all are loaded anew; the turns of each then, at least, and the seconds of all together."""
FEWEST, LONGEST = 5, 30.0
"""Turns of models that take long, and the seconds after which no more are made."""
SLOWER = 1.02
"""A run takes longer from here on, and from as far above what the original takes beside itself."""
PARTS = {"small": ("Files up to 8.5 MB", 0, 8.5e6), "large": ("Larger files", 8.5e6, math.inf)}
"""Sections of the page, with the bytes that their files have at least and at most."""


@dataclass(frozen=True)
class Result:
    """Of one tool on a model."""

    nodes: int = 0
    size: float = math.nan
    """Bytes of its file in those of the original."""
    status: str = ""
    time: float = math.nan
    """Of a run, in that of the original."""
    is_left: bool = False
    """Whether `onward diff` finds no difference from the original."""


@dataclass(frozen=True)
class Row:
    nodes: int
    itself: float
    """The time of the original beside itself."""
    results: dict[str, Result]
    made: str
    """What Onward made, by its SHA-256."""


def count(model: Model) -> int:
    return sum(1 for _ in all_nodes(model.ir.graph))


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def ratios(paths: Sequence[Path], inputs: Inputs) -> list[float]:
    """The time of each in that of the first: the median over the turns, and over sessions."""
    found = []
    for start in range(SESSIONS):
        order = [(start + i) % len(paths) for i in range(len(paths))]  # memory is laid out in another way
        loaded = {i: partial(session(paths[i]).run, None, inputs) for i in order}
        found.append(
            turns.ratios([loaded[i] for i in range(len(paths))], ROUNDS, SECONDS, fewest=FEWEST, longest=LONGEST)
        )
    return [statistics.median(each) for each in zip(*found, strict=True)]


def row(peer: str, kept: dict[str, Row], entry: Entry) -> Row:
    path = fetched(entry)
    model = onward.load(path)
    with tempfile.TemporaryDirectory() as folder:
        outs = {name: Path(folder) / f"{name}.onnx" for name in (OURS, *(PEERS if peer else ()))}
        results = {OURS: result(OURS, peer, model, path, outs[OURS])}
        made = hashlib.sha256(outs[OURS].read_bytes()).hexdigest() if outs[OURS].exists() else ""
        if entry.name in kept and kept[entry.name].made == made:
            return kept[entry.name]
        inputs = make_inputs(model)
        results |= {name: result(name, peer, model, path, out) for name, out in outs.items() if name != OURS}
        same = [name for name in results if results[name].status == "same"]
        _, itself, *times = ratios([path, path, *(outs[name] for name in same)], inputs)
        for name, found in zip(same, times, strict=True):
            results[name] = replace(results[name], time=found)
    return Row(count(model), itself, results, made)


def result(name: str, peer: str, model: Model, path: Path, out: Path) -> Result:
    try:
        if name == OURS:
            smaller(model).model.save(out)
        else:
            subprocess.run([peer, "-c", PEERS[name], path, out], check=True, capture_output=True, timeout=240)
        if is_valid(path):
            onnx.checker.check_model(out)
        made = onward.load(out)
        report = onward.verify(model, made, quick=True)
        size = out.stat().st_size / path.stat().st_size
        return Result(count(made), size, report.status, is_left=onward.diff(model, made).same)
    except Exception as error:
        return Result(status=f"fails: {type(error).__name__}")


def is_valid(path: Path) -> bool:
    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError:
        return False
    return True


def nothing(_: object) -> None:
    pass


def plain(reason: str) -> str:
    """Without the folders of this machine."""
    return re.sub(r"(?:/[\w.@+-]+)+/", "", reason)


def is_slower(row: Row, result: Result) -> bool:
    return not result.is_left and result.time > SLOWER * max(1.0, row.itself)


def section(rows: dict[str, Row], skipped: dict[str, str]) -> list[str]:
    names, lines = list(next(iter(rows.values())).results), list[str]()
    lines += [f"| {len(rows)} models | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    kept = {name: {m: r.results[name] for m, r in rows.items() if r.results[name].status == "same"} for name in names}

    def line(title: str, cell: Callable[[str], object]) -> None:
        lines.append(f"| {title} | " + " | ".join(str(cell(name)) for name in names) + " |")

    def left(name: str) -> str:
        shares = [max(kept[name][m].nodes, 1) / r.nodes if m in kept[name] else 1.0 for m, r in rows.items()]
        return f"{statistics.geometric_mean(shares):.3f}"

    def times(name: str) -> list[float]:
        return [one.time for one in kept[name].values()]

    def size(name: str) -> str:
        return f"{statistics.geometric_mean(one.size for one in kept[name].values()):.3f}"

    line("the same", lambda name: len(kept[name]))
    line("nodes left, geometric mean", left)
    line("time of a run, mean", lambda name: f"{statistics.mean(times(name)):.3f}")
    line("slower", lambda name: sum(is_slower(rows[m], one) for m, one in kept[name].items()))
    line("left as they are", lambda name: sum(one.is_left for one in kept[name].values()))
    line("size of the file, geometric mean", size)
    line("larger", lambda name: sum(one.size > 1.001 for one in kept[name].values()))
    lines += ["", "| model | nodes | itself | " + " | ".join(f"{n} | time" for n in names) + " |"]
    lines += ["|---|---:|---:|" + "---:|---:|" * len(names)]
    for model, each in sorted(rows.items()):
        cells = [
            f"{one.nodes} | {one.time:.2f}" if one.status == "same" else f"{one.status} |"
            for one in each.results.values()
        ]
        lines.append(f"| {model} | {each.nodes} | {each.itself:.2f} | " + " | ".join(cells) + " |")
    lines += ["", *(f"- `{name}`: {why}" for name, why in skipped.items()), *([""] if skipped else [])]
    return [*lines, describe("onward", "onnxruntime", "onnx")]


def known() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for line in KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else ():
        name, nodes, itself, results, made = json.loads(line)
        found[name] = Row(nodes, itself, {tool: Result(**each) for tool, each in results.items()}, made)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", default="", help="one that has onnxsim and onnxslim")
    parser.add_argument("--part", choices=list(PARTS), help="write this section of the page alone")
    parser.add_argument("--again", nargs="*", metavar="NAME", help="models whose results are not taken over")
    args = parser.parse_args()
    console = Console(stderr=True)
    kept = known()
    if args.again is not None:
        kept = {name: each for name, each in kept.items() if args.again and name not in args.again}
    KEPT.parent.mkdir(exist_ok=True)
    for name, (title, smallest, largest) in PARTS.items():
        if args.part in (None, name):
            entries = [e for e in listed([LIST]) if e.format == "onnx" and smallest < e.size_bytes <= largest]
            write_section(PAGE, title, measured(entries, args.peer, kept, console))


def measured(entries: Sequence[Entry], peer: str, kept: dict[str, Row], console: Console) -> list[str]:
    rows: dict[str, Row] = {}
    skipped: dict[str, str] = {}
    work: Work[Entry] = Work(partial(row, peer, kept), nothing, renewed=1)
    for entry, done in track(Local(1).map(work, entries, LIMITS), "simplifying", total=len(entries), console=console):
        console.print(entry.name, done.value or done.failure, highlight=False)
        if done.failure:
            skipped[entry.name] = plain(done.failure)
            continue
        rows[entry.name] = each = done.value
        with KEPT.open("a", encoding="utf-8") as file:
            results = {tool: asdict(one) for tool, one in each.results.items()}
            file.write(json.dumps([entry.name, each.nodes, each.itself, results, each.made]) + "\n")
    return section(rows, skipped)


if __name__ == "__main__":
    main()
