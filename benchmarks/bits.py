"""Models in fewer bits beside the tools there are: writes docs/measured/bits.md.

    python benchmarks/bits.py --peer PYTHON        all parts; PYTHON is one that has onnxconverter-common
    python benchmarks/bits.py --only int4          one of floats, int8 and int4
    python benchmarks/bits.py --largest 20         float16 of models of at most 20 MB

Real models are the ONNX files of `zoo.csv`, each in a process of its own. Errors are
those of outputs, rms of the difference / rms of the output, on made-up data. Results are kept under build/.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import bits_float16
import bits_int8
from machine import describe, write_section
from rich.console import Console

import onward
from onward.bits.blocks import packed
from onward.bits.corrected import calibrated
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs, Run
from onward.verification.compare import measure
from onward.verification.data.sets import input_sets

ROOT = Path(__file__).parents[1]
PAGE, KEPT = ROOT / "docs/measured/bits.md", ROOT / "build/bits-int4.json"
sys.path.insert(0, str(ROOT / "examples/language"))
LARGE = {"vocabulary": 16384, "width": 768, "layers": 12, "heads": 12, "shared": 4, "inner": 2048}


def off(one: Run, other: Run, samples: list[Inputs]) -> float:
    errors = [error for inputs in samples for error in measure(one(inputs), other(inputs)).values()]
    return max(error.overall for error in errors)


def int4() -> Iterator[str]:
    if not KEPT.exists():
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(packings()), encoding="utf-8")
    yield "A decoder of 101 million parameters, with random weights; blocks of 32."
    yield ""
    yield "| | weights | error of the outputs |"
    yield "|---|---|---|"
    for name, (weights, error) in json.loads(KEPT.read_text(encoding="utf-8")).items():
        yield f"| {name} | {weights:.4f} | {error:.2e} |"


def packings() -> dict[str, tuple[float, float]]:
    """By who packed the decoder: the share of the bytes that are left, and the error."""
    from decoder import decoder
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    logging.disable(logging.WARNING)
    model = onward.load(decoder(**LARGE))
    samples = list(islice(input_sets(model), 2))
    others = calibrated(model, list(islice(input_sets(model, seed=1), 2)))
    made: dict[str, Model] = {"Onward": packed(model).model}
    made["Onward, calibrated on other data"] = packed(model, rounded=others).model
    for name, symmetric in (("ONNX Runtime's tool", False), ("the same, symmetric", True)):
        tool = MatMulNBitsQuantizer(decoder(**LARGE), block_size=32, is_symmetric=symmetric)
        tool.process()
        made[name] = onward.load(tool.model.model)
    run = prepare("onnxruntime", model)
    return {
        name: (each.nbytes / model.nbytes, off(run, prepare("onnxruntime", each), samples))
        for name, each in made.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["floats", "int8", "int4"], help="write this part of the page alone")
    parser.add_argument("--peer", metavar="PYTHON", default="", help="one that has onnxconverter-common")
    parser.add_argument("--largest", type=float, default=150.0, metavar="MB", help="of a file (default: 150)")
    args = parser.parse_args()
    console = Console(stderr=True)

    def halves() -> Iterator[str]:
        return bits_float16.lines(bits_float16.rows(args.peer, args.largest, console), args.largest)

    parts = {
        "floats": ("float16, on real models", halves),
        "int8": ("int8, beside labels", bits_int8.lines),
        "int4": ("int4, on a decoder", int4),
    }
    for name, (title, part) in parts.items():
        if args.only in (None, name):
            write_section(PAGE, title, [*part(), "", describe("onward", "onnxruntime", "onnx")])


if __name__ == "__main__":
    main()
