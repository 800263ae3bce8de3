"""Real models in float16, beside onnxconverter-common: rows for docs/measured/bits.md."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from operator import le
from pathlib import Path

import onnx_ir as ir
from rich.console import Console
from rich.progress import track
from turns import ratios

import onward
from onward.bits.narrow_floats import narrowed
from onward.engine.jobs import Limits, Work
from onward.engine.local import Local
from onward.errors import OnwardError
from onward.graph.replace import constant
from onward.graph.walk import all_graphs
from onward.model import Model
from onward.runners import prepare
from onward.verification.compare import measure
from onward.verification.data.sets import input_sets
from onward.zoo.fetch import fetched
from onward.zoo.listing import listed

ROOT = Path(__file__).parents[1]
LIST, KEPT = ROOT / "benchmarks/zoo.csv", ROOT / "build/bits-float16.jsonl"
LIMITS = Limits(900.0, 8 * 10**9)
TOOL = """
import sys, onnx
from onnxconverter_common.float16 import convert_float_to_float16
onnx.save(convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True), sys.argv[2])
"""


@dataclass(frozen=True)
class Row:
    """A model in float16; `why` is why it is not."""

    nodes: int = 0
    kept: int = 0
    size: float = math.nan
    """Bytes of the file in those of the original."""
    weights: float = math.nan
    error: float = math.nan
    allowed: float = math.nan
    time: float = math.nan
    tool: str = ""
    """What the other tool makes of it: agrees, differs, fails or does not load."""
    tool_error: float = math.nan
    why: str = ""
    bounds: dict[str, list[float]] = field(default_factory=dict)
    """By output, what it may be off by as a whole and in one place."""
    seconds: float = math.nan
    """Of the conversion."""
    floats: bool = True
    """Whether it is a model of floats, not of integers or of 16 bits already."""
    elsewhere: bool = False
    """Whether near races go another way, so that it was judged by what they are decided by."""


def halved(path: Path) -> Row:
    model = onward.load(path)
    samples = list(islice(input_sets(model), 2))
    began = time.perf_counter()
    try:
        found = narrowed(model, "float16", samples)
    except OnwardError as error:
        return Row(why=str(error), floats=is_float(model))
    seconds = time.perf_counter() - began
    run, half = (prepare("onnxruntime", each) for each in (model, found.model))
    spent = ratios([partial(run, samples[0]), partial(half, samples[0])])[1]
    sizes = [each.to_proto().ByteSize() for each in (model, found.model)]
    worst = max(found.outputs, key=lambda one: one.metrics.overall / max(one.tolerance.overall, 1e-30))
    return Row(
        found.nodes,
        len(found.kept),
        sizes[1] / sizes[0],
        found.model.nbytes / max(model.nbytes, 1),
        worst.metrics.overall,
        worst.tolerance.overall,
        spent,
        bounds={one.name: [one.tolerance.overall, one.tolerance.worst] for one in found.outputs},
        seconds=seconds,
        floats=is_float(model),
        elsewhere=bool(found.elsewhere),
    )


def by_tool(peer: str, job: tuple[Path, dict[str, list[float]]]) -> tuple[str, float]:
    """It agrees where its outputs are within what Onward's may be off by. What it writes may end the process."""
    path, bounds = job
    model = onward.load(path)
    samples, run = list(islice(input_sets(model), 2)), prepare("onnxruntime", model)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "half.onnx"
        try:
            subprocess.run([peer, "-c", TOOL, path, out], check=True, capture_output=True, timeout=240)
        except subprocess.SubprocessError:
            return "fails", math.nan
        try:
            other = prepare("onnxruntime", onward.load(out))
            errors = [measure(run(inputs), other(inputs)) for inputs in samples]
        except OnwardError:
            return "does not load", math.nan
    places = [(name, error) for each in errors for name, error in each.items()]
    least = [math.inf, math.inf]  # of what was judged by what decides it
    good = all(all(map(le, (error.overall, error.worst), bounds.get(name, least))) for name, error in places)
    return ("agrees" if good else "differs"), max(error.overall for _, error in places)


def is_float(model: Model) -> bool:
    """Whether most of what it holds in weights are floats of 32 bits."""
    room: Counter[ir.DataType] = Counter()
    for graph in all_graphs(model.ir.graph):
        made = (node.outputs[0] for node in graph if node.op_type == "Constant")
        for tensor in map(constant, [*graph.initializers.values(), *made]):
            if tensor is not None:
                room[tensor.dtype] += tensor.nbytes
    return 2 * room[ir.DataType.FLOAT] > room.total()


def nothing(_: object) -> None:
    pass


def known() -> dict[str, Row]:
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    return {(one := json.loads(line)).pop("name"): Row(**one) for line in lines}


def rows(peer: str, largest: float, console: Console) -> dict[str, Row]:
    """By model; those that are kept are not made again."""
    entries = sorted(listed([LIST]), key=lambda one: one.size_bytes)
    names = {fetched(e): e.name for e in entries if e.format == "onnx" and e.size_bytes <= largest * 1e6}
    found = known()
    KEPT.parent.mkdir(exist_ok=True)
    jobs = [path for path, name in names.items() if name not in found]
    done = Local(1).map(Work(halved, nothing, renewed=1), jobs, LIMITS)
    for path, result in track(done, "float16", total=len(jobs), console=console):
        row = result.value or Row(why=result.failure)
        if peer and not row.why:
            ((_, other),) = Local(1).map(Work(partial(by_tool, peer), nothing), [(path, row.bounds)], LIMITS)
            tool, error = other.value or ("ends the process" if "SIG" in other.failure else "fails", math.nan)
            row = replace(row, tool=tool, tool_error=error)
        found[names[path]] = row
        console.print(names[path], row, highlight=False)
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": names[path], **asdict(row)}) + "\n")
    return {name: found[name] for name in names.values()}


def lines(found: dict[str, Row], largest: float) -> Iterator[str]:
    floats, others = ({n: row for n, row in found.items() if row.floats == kind} for kind in (True, False))
    good = {name: row for name, row in floats.items() if not row.why}
    tools, slow = [row.tool for row in good.values()], sorted(good, key=lambda name: -good[name].seconds)
    yield f"Of the models of `benchmarks/zoo.csv` that are floats, files up to {largest:g} MB,"
    yield f"**{len(good)} of {len(floats)}** agree within what rounding to float16 explains,"
    yield f"{sum(row.kept == 0 for row in good.values())} of them with all nodes in 16 bits. The weights of"
    yield f"{sum(row.weights < 0.55 for row in good.values())} take at most 0.55 of the room: those of nodes that"
    yield "stay in 32 bits are stored in 16 as well. The rest of a small file are names, sizes and nodes."
    yield f"Of the files that onnxconverter-common writes, {tools.count('agrees')} agree by the same measure,"
    yield f"{tools.count('differs')} differ, {tools.count('does not load')} are not loaded by ONNX Runtime,"
    yield f"{tools.count('ends the process')} end its process, and in {tools.count('fails')} cases it fails."
    yield "*Error* is that of the output that comes nearest to what is allowed, *time* that of a run beside the"
    yield f"original, *conversion* how long it took; longest with `{slow[0]}`."
    yield ""
    yield (
        "| model | nodes in float16 | kept in 32 bits | file | weights | error | allowed | time | conversion |"
        " onnxconverter-common |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    for name, row in good.items():
        tool = f"{row.tool}, {row.tool_error:.0e}" if row.tool in ("agrees", "differs") else row.tool
        sizes = f"{row.size:.2f} | {row.weights:.2f}"
        yield (
            f"| {name} | {row.nodes} | {row.kept} | {sizes} | {row.error:.0e} | {row.allowed:.0e} | {row.time:.2f} |"
            f" {row.seconds:.0f} s | {tool} |"
        )
    yield ""
    yield from (f"- `{name}`: {' '.join(row.why.split())}" for name, row in floats.items() if row.why)
    same = [row for row in others.values() if not row.why]
    yield f"Most of the weights of {len(others)} more models are integers, have 16 bits already, or are trees."
    yield f"{len(same)} of them agree by the same measure; the others are refused:"
    yield ""
    yield from (f"- `{name}`: {' '.join(row.why.split())}" for name, row in others.items() if row.why)
