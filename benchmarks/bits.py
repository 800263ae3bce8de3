"""Models in fewer bits beside ONNX Runtime's own tools: writes docs/measured/bits.md.

    python benchmarks/bits.py                      all parts; writes the page
    python benchmarks/bits.py --only int4          one of floats, int8 and int4; prints it
    python benchmarks/bits.py --largest 20         float16 of models of at most 20 MB

Real models are those of `zoo.csv` that are ONNX files and compute in 32 bits, each in a process of its own. Errors are
those of outputs, rms of the difference / rms of the output, on made-up data.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from machine import describe
from rich.console import Console
from rich.progress import track

import onward
from onward.bits.blocks import packed
from onward.bits.corrected import calibrated
from onward.bits.integers import quantized
from onward.bits.narrow_floats import narrowed
from onward.bits.search import accuracy
from onward.engine.jobs import Limits, Work
from onward.engine.local import Local
from onward.errors import OnwardError
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs
from onward.verification.compare import measure
from onward.verification.data.sets import input_sets
from onward.zoo.fetch import fetched
from onward.zoo.listing import Entry, listed

ROOT = Path(__file__).parents[1]
PAGE, LIST = ROOT / "docs/measured/bits.md", ROOT / "benchmarks/zoo.csv"
sys.path.insert(0, str(ROOT / "examples/language"))
LIMITS = Limits(300.0, 10 * 10**9)
SECONDS = 1.0
"""How long two models run in turns."""
ROWS = 900
"""Of the digits, by which their network is calibrated; all others are what it is judged by."""
LARGE = {"vocabulary": 16384, "width": 768, "layers": 12, "heads": 12, "shared": 4, "inner": 2048}


@dataclass(frozen=True)
class Row:
    """A model in float16."""

    nodes: int = 0
    kept: int = 0
    size: float = math.nan
    error: float = math.nan
    time: float = math.nan
    peer: str = ""
    why: str = ""


def in_turns(one: Any, other: Any, inputs: Inputs) -> float:
    """Time of `other` in that of `one`."""
    spent, end = [0.0, 0.0], time.perf_counter() + SECONDS
    one(inputs), other(inputs)
    while time.perf_counter() < end:
        for side, run in enumerate((one, other)):
            start = time.perf_counter()
            run(inputs)
            spent[side] += time.perf_counter() - start
    return spent[1] / spent[0]


def off(one: Any, other: Any, samples: list[Inputs]) -> float:
    errors = [error for inputs in samples for error in measure(one(inputs), other(inputs)).values()]
    return max(error.overall for error in errors)


def halved(path: Path) -> Row:
    model = onward.load(path)
    samples = list(islice(input_sets(model), 2))
    try:
        found = narrowed(model, "float16", samples)
    except OnwardError as error:
        return Row(why=str(error))
    run, half = (prepare("onnxruntime", each) for each in (model, found.model))
    size = found.model.nbytes / max(model.nbytes, 1)
    worst = max(one.metrics.overall for one in found.outputs)
    return Row(found.nodes, len(found.kept), size, worst, in_turns(run, half, samples[0]), by_peer(path, run, samples))


def by_peer(path: Path, run: Any, samples: list[Inputs]) -> str:
    """What the tool of ONNX Runtime makes of it."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    try:
        made = convert_float_to_float16(onnx.load(path), keep_io_types=True)
        return f"{off(run, prepare('onnxruntime', onward.load(made)), samples):.0e}"
    except Exception as error:
        return f"fails: {' '.join(str(error).split())[:60]}"


def is_float(path: Path) -> bool:
    """Whether it has weights in 32 bits, and none in fewer."""
    kinds = {value.dtype.name for value in onward.load(path).ir.graph.initializers.values() if value.dtype is not None}
    return "FLOAT" in kinds and kinds.isdisjoint({"INT8", "UINT8", "FLOAT16"})


def nothing(_: object) -> None:
    pass


def floats(largest: float, console: Console) -> Iterator[str]:
    entries = [e for e in listed([LIST]) if e.format == "onnx" and e.size_bytes <= largest * 1e6]
    paths: dict[Path, Entry] = {}
    for entry in sorted(entries, key=lambda e: e.size_bytes):
        path = fetched(entry)
        if is_float(path):
            paths[path] = entry
    rows: dict[str, Row] = {}
    done = Local(1).map(Work(halved, nothing), list(paths), LIMITS)
    for path, result in track(done, "float16", total=len(paths), console=console):
        rows[paths[path].name] = result.value or Row(why=result.failure)
        console.print(paths[path].name, rows[paths[path].name], highlight=False)
    good = {name: row for name, row in rows.items() if not row.why}
    half = [row for row in good.values() if row.size < 0.55]
    yield f"**{len(good)} of {len(rows)}** float models agree within what rounding to float16 explains, and"
    yield f"{sum(row.kept == 0 for row in good.values())} of them in all their nodes; {len(half)} take 0.55 of the room"
    yield "of their weights or less. Small models of many constants that are no weights take more. *Tool* is the error"
    yield "of what `onnxruntime.transformers.float16` writes, which measures nothing."
    yield ""
    yield "| model | nodes in float16 | kept in 32 bits | weights | error | time in ONNX Runtime | tool |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in good.items():
        numbers = f"{row.nodes} | {row.kept} | {row.size:.2f} | {row.error:.0e} | {row.time:.2f} × | {row.peer}"
        yield f"| {name} | {numbers} |"
    yield ""
    yield from (f"- `{name}`: {' '.join(row.why.split())}" for name, row in rows.items() if row.why)


def int8() -> Iterator[str]:
    import sklearn.datasets
    from onnxruntime import quantization

    data = sklearn.datasets.load_digits()
    images, labels = (data.images / 16).astype(np.float32)[:, None], data.target
    path = ROOT / "examples/digits/digits.onnx"
    model = onward.load(path)
    samples = [{"image": images[i : i + 100]} for i in range(0, ROWS, 100)]
    marks = [labels[i : i + 100] for i in range(0, ROWS, 100)]
    test, truth = [{"image": images[ROWS:]}], [labels[ROWS:]]

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> Any:
            return next(self.rest, None)

    made: dict[str, Model] = {"floats": model}
    made["Onward"] = quantized(model, samples).model
    made["Onward, `max_loss=0.001`"] = quantized(model, samples, labels=marks, most=0.001).model
    with tempfile.TemporaryDirectory() as folder:
        for name, how in {
            "ONNX Runtime's tool as it is": {},
            "the same, for each channel": {"per_channel": True},
        }.items():
            out = Path(folder) / "int8.onnx"
            quantization.quantize_static(path, out, Reader(), **how)
            made[name] = onward.load(out.read_bytes())
    run = prepare("onnxruntime", model)
    yield f"The digits of `examples/digits`, calibrated on {ROWS} rows and judged on {len(images) - ROWS} others."
    yield ""
    yield "| | accuracy | error of the outputs | weights | time |"
    yield "|---|---|---|---|---|"
    for name, each in made.items():
        other = prepare("onnxruntime", each)
        right = accuracy([other(inputs) for inputs in test], truth)
        ratio = in_turns(run, other, samples[0])
        size = each.nbytes / model.nbytes
        yield f"| {name} | {100 * right:.2f} % | {off(run, other, test):.1e} | {size:.2f} | {ratio:.2f} × |"


def int4() -> Iterator[str]:
    from decoder import decoder
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    logging.disable(logging.WARNING)
    proto = decoder(**LARGE)
    model = onward.load(proto)
    samples = list(islice(input_sets(model), 2))
    made: dict[str, Model] = {"Onward": packed(model).model}
    made["Onward, calibrated on other data"] = packed(
        model, rounded=calibrated(model, list(islice(input_sets(model, seed=1), 2)))
    ).model
    for name, symmetric in (("ONNX Runtime's tool", False), ("the same, symmetric", True)):
        tool = MatMulNBitsQuantizer(decoder(**LARGE), block_size=32, is_symmetric=symmetric)
        tool.process()
        made[name] = onward.load(tool.model.model)
    run = prepare("onnxruntime", model)
    count = sum(int(np.prod(tensor.dims)) for tensor in proto.graph.initializer)
    yield f"A decoder of {count / 1e6:.0f} million parameters, with random weights; blocks of 32."
    yield ""
    yield "| | weights | error of the outputs |"
    yield "|---|---|---|"
    for name, each in made.items():
        error = off(run, prepare("onnxruntime", each), samples)
        yield f"| {name} | {each.nbytes / model.nbytes:.4f} | {error:.2e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["floats", "int8", "int4"], help="print one part; writes nothing")
    parser.add_argument("--largest", type=float, default=150.0, metavar="MB", help="of a file (default: 150)")
    args = parser.parse_args()
    console = Console(stderr=True)
    parts = {
        "floats": ("float16, on real models", lambda: floats(args.largest, console)),
        "int8": ("int8, beside labels", int8),
        "int4": ("int4, on a decoder", int4),
    }
    lines = ["# Fewer bits", "", "Written by `benchmarks/bits.py`; times are ratios of runs that take turns.", ""]
    for name, (title, part) in parts.items():
        if args.only in (None, name):
            lines += [f"## {title}", "", *part(), ""]
    lines.append(describe("onward", "onnxruntime", "onnx"))
    print("\n".join(lines))
    if args.only is None:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
