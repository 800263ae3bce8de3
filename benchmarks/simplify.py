"""Real models simplified, beside onnxsim and onnxslim: writes docs/measured/simplify.md.

    python benchmarks/simplify.py --peer PYTHON                 PYTHON is one that has onnxsim and onnxslim
    python benchmarks/simplify.py --peer PYTHON --largest 20    files of at most 20 MB

Models are the ONNX files of `zoo.csv`, each in a process of its own; the others simplify in processes of theirs. Nodes
are counted as files have them, Constant nodes and those of bodies too. Each result runs on the inputs of the original,
and is the same within what `onward verify` allows. Times are those of the processor, in turns with the original, on one
thread.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx
import onnxruntime
from machine import describe
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
from onward.zoo.listing import listed

ROOT = Path(__file__).parents[1]
PAGE, LIST = ROOT / "docs/measured/simplify.md", ROOT / "benchmarks/zoo.csv"
OURS = "Onward"
PEERS = {
    "onnxsim": "import onnx, onnxsim, sys; onnx.save(onnxsim.simplify(onnx.load(sys.argv[1]))[0], sys.argv[2])",
    "onnxslim": "import onnx, onnxslim, sys; onnx.save(onnxslim.slim(onnx.load(sys.argv[1])), sys.argv[2])",
}
LIMITS = Limits(600.0, 10 * 10**9)
SECONDS, TURN = 1.5, 0.02
"""How long original and result run in turns, and how long one of them at a time, at least."""


@dataclass(frozen=True)
class Result:
    """Of one tool on a model."""

    nodes: int = 0
    size: float = math.nan
    """Bytes of its weights in those of the original."""
    status: str = ""
    time: float = math.nan
    """Of a run, in that of the original."""


@dataclass(frozen=True)
class Row:
    nodes: int
    results: dict[str, Result]


def count(model: Model) -> int:
    return sum(1 for _ in all_nodes(model.ir.graph))


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def in_turns(one: Path, other: Path, inputs: Inputs) -> float:
    runs = [partial(session(path).run, None, inputs) for path in (one, other)]
    for run in runs:
        run()
    spent, done, end = [0.0, 0.0], [0, 0], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for side, run in enumerate(runs):
            start = time.process_time()
            while time.process_time() - start < TURN:
                run()
                done[side] += 1
            spent[side] += time.process_time() - start
    return (spent[1] / done[1]) / (spent[0] / done[0])


def row(peer: str, path: Path) -> Row:
    model = onward.load(path)
    inputs = make_inputs(model)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (OURS, *(PEERS if peer else ())):
            out = Path(folder) / f"{name}.onnx"
            results[name] = result(name, peer, model, path, out, inputs)
    return Row(count(model), results)


def result(name: str, peer: str, model: Model, path: Path, out: Path, inputs: Inputs) -> Result:
    try:
        if name == OURS:
            smaller(model).model.save(out)
        else:
            subprocess.run([peer, "-c", PEERS[name], path, out], check=True, capture_output=True, timeout=240)
        onnx.checker.check_model(out)
        made = onward.load(out)
        report = onward.verify(model, made, quick=True)
        size = made.nbytes / max(model.nbytes, 1)
        return Result(count(made), size, report.status, in_turns(path, out, inputs))
    except Exception as error:
        return Result(status=f"fails: {type(error).__name__}")


def nothing(_: object) -> None:
    pass


def page(rows: dict[str, Row], skipped: dict[str, str]) -> str:
    names = list(next(iter(rows.values())).results)
    lines = ["# Fewer nodes", "", *(__doc__ or "").strip().split("\n\n")[-1].splitlines(), ""]
    lines += [
        "Made by `benchmarks/simplify.py --peer PYTHON`. A tool that fails on a model leaves it as it is: its",
        "",
    ]
    lines[-1:] = [
        "nodes are then those of the original. *Slower* are files whose run takes more than 1.02 of the time.",
        "",
    ]
    lines += [f"| {len(rows)} models | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    kept = {name: {m: r.results[name] for m, r in rows.items() if r.results[name].status == "same"} for name in names}

    def line(title: str, cell: object) -> None:
        lines.append(f"| {title} | " + " | ".join(cell(name) for name in names) + " |")  # type: ignore[operator]

    def left(name: str) -> str:
        shares = [max(kept[name][m].nodes, 1) / r.nodes if m in kept[name] else 1.0 for m, r in rows.items()]
        return f"{statistics.geometric_mean(shares):.3f}"

    def times(name: str) -> list[float]:
        return [one.time for one in kept[name].values()]

    line("the same", lambda name: f"{len(kept[name])}")
    line("nodes left, geometric mean", left)
    line("time of a run, mean", lambda name: f"{statistics.mean(times(name)):.3f}")
    line("slower", lambda name: f"{sum(one > 1.02 for one in times(name))}")
    line("weights larger", lambda name: f"{sum(one.size > 1.001 for one in kept[name].values())}")
    lines += ["", "| model | nodes | " + " | ".join(f"{n} | time" for n in names) + " |"]
    lines += ["|---|---:|" + "---:|---:|" * len(names)]
    for model, each in rows.items():
        cells = [
            f"{one.nodes} | {one.time:.2f}" if one.status == "same" else f"{one.status} |"
            for one in each.results.values()
        ]
        lines.append(f"| {model} | {each.nodes} | " + " | ".join(cells) + " |")
    lines += ["", *(f"- `{name}`: {why}" for name, why in skipped.items()), *([""] if skipped else [])]
    return "\n".join([*lines, describe("onward", "onnxruntime", "onnx")]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", default="", help="one that has onnxsim and onnxslim")
    parser.add_argument("--largest", type=float, default=150.0, metavar="MB", help="of a file (default: 150)")
    args = parser.parse_args()
    console = Console(stderr=True)
    entries = [e for e in listed([LIST]) if e.format == "onnx" and e.size_bytes <= args.largest * 1e6]
    names = {fetched(entry): entry.name for entry in sorted(entries, key=lambda e: e.size_bytes)}
    rows: dict[str, Row] = {}
    skipped: dict[str, str] = {}
    jobs = Local(1).map(Work(partial(row, args.peer), nothing), list(names), LIMITS)
    for path, done in track(jobs, "simplifying", total=len(names), console=console):
        if done.failure:
            skipped[names[path]] = done.failure
        else:
            rows[names[path]] = done.value
        console.print(names[path], done.value or done.failure, highlight=False)
    PAGE.write_text(page(rows, skipped), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
