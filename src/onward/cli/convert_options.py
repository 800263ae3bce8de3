"""The options of `onward convert`, each beside those of the same matter."""

from __future__ import annotations

import argparse

from onward.backends.backend import formats
from onward.cli.plugins import add_plugins
from onward.cli.source import add_source
from onward.cli.trust import add_trust
from onward.conversion.parts import PARTS
from onward.gate.budget import SECONDS

LONGEST = 1e7
"""Seconds that a step may be given: four months."""


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "model",
        help="the model to convert: a file or folder of any framework, package.module:callable, or a function on data"
        " frames, features.py:features, or of JAX, net.py:apply",
    )
    command.add_argument("--to", required=True, choices=[*formats(), "onnx"], help="the framework or format to write")
    command.add_argument(
        "--out",
        metavar="PATH",
        help="the file (onnx, keras, tflite) or folder (others) to write (default: the name of the model, in the"
        " current folder)",
    )
    command.add_argument(
        "--force", action="store_true", help="write over files that were edited since Onward wrote them"
    )
    command.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="fix the size of a dynamic dimension (repeatable); TensorFlow Lite may ask for it",
    )
    command.add_argument(
        "--trainable",
        action="append",
        metavar="PATTERN",
        help="train only weights whose name matches, such as 'head.*' (repeatable)",
    )
    command.add_argument(
        "--part",
        choices=PARTS,
        help="choose what to convert of a file with data processing and a model (default: all, or the model alone"
        " where the target does not take the data processing)",
    )
    command.add_argument(
        "--timeout",
        type=seconds,
        default=SECONDS,
        metavar="SECONDS",
        help=f"limit the time of each step (default: {SECONDS:g})",
    )
    add_trust(command)
    add_plugins(command)
    _add_check(command.add_argument_group("check of the result against the original"))
    add_source(command)
    _add_data_frames(command.add_argument_group("functions on data frames"))
    _add_onnx(command.add_argument_group("to ONNX"))
    _add_bits(command.add_argument_group("fewer bits, in ONNX and TensorFlow Lite files"))
    _add_tensorflow(command.add_argument_group("to TensorFlow, Keras and TensorFlow Lite"))
    _add_torch_and_jax(command.add_argument_group("to PyTorch and JAX"))


def _add_check(check: argparse._ArgumentGroup) -> None:
    check.add_argument("--no-verify", action="store_true", help="skip the check")
    check.add_argument(
        "--inputs",
        metavar="PATH",
        help="compare on the inputs in a .npz, .npy or image file, or in a folder (default: made-up inputs)",
    )
    check.add_argument("--quick", action="store_true", help="compare on a single set of inputs")
    check.add_argument("--atol", type=float, help="set the absolute tolerance (default: by dtype and noise)")
    check.add_argument("--rtol", type=float, help="set the relative tolerance")
    check.add_argument(
        "--verify-on",
        metavar="RUNNER",
        help="choose what runs the original (default: onnxruntime, else reference)",
    )
    check.add_argument("--seed", type=int, default=0, help="choose the random inputs that are made up")
    check.add_argument("--keep", action="store_true", help="write the result even if it differs from the original")
    check.add_argument(
        "--report", metavar="FILE", help="write what the check found: a web page, or JSON if the name ends in .json"
    )


def _add_data_frames(frames: argparse._ArgumentGroup) -> None:
    frames.add_argument(
        "--freeze",
        action="append",
        default=[],
        metavar="COLUMN.METHOD",
        help="keep an aggregate of the sample, such as age.median, as a constant; else it is that of whatever rows the"
        " model is given (repeatable)",
    )
    frames.add_argument(
        "--never-null",
        action="append",
        default=[],
        metavar="COLUMN",
        help="take a column to have no nulls, now and later: the model has no mask of its nulls, and is smaller and"
        " faster (repeatable)",
    )
    frames.add_argument(
        "--extensions",
        action="store_true",
        help="use ops of onnxruntime-extensions for patterns that ONNX Runtime cannot follow by itself; whoever runs"
        " the file needs that package too",
    )


def _add_onnx(onnx: argparse._ArgumentGroup) -> None:
    onnx.add_argument(
        "--opset",
        type=int,
        help="choose the version of ONNX to write: of an ONNX file 7 to the newest, up or down; else 13 to 26"
        " (default: 21)",
    )
    onnx.add_argument(
        "--ir-version", type=int, help="choose the version of the file format (default: that of the opset's time)"
    )
    onnx.add_argument("--simplify", action="store_true", help="write fewer nodes, of the same names and opset")
    onnx.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PASS",
        help="leave a pass of --simplify out (repeatable): inputs, initializers, shapes, neutral, constants, branches,"
        " moves, weights, scalings, pads, recurrence, idioms, attention, equal",
    )
    onnx.add_argument(
        "--allow-custom-ops", action="store_true", help="write TensorFlow ops without a rule as custom ops"
    )


def _add_bits(bits: argparse._ArgumentGroup) -> None:
    bits.add_argument(
        "--quantize",
        choices=["float16", "dynamic", "int8", "int4"],
        help="make the file smaller: int8 needs --calibrate; onnx takes int8, and int4 for the weights of products, in"
        " blocks; tflite all others",
    )
    bits.add_argument(
        "--calibrate", metavar="DATA", help="calibrate int8 and int4 with these inputs (.npz, a folder, …)"
    )
    bits.add_argument(
        "--float16", action="store_true", help="compute in 16 bits in an onnx file, but where that loses too much"
    )
    bits.add_argument("--bfloat16", action="store_true", help="the same in bfloat16")
    bits.add_argument(
        "--keep-float",
        metavar="NAMES",
        type=lambda text: [name for name in text.split(",") if name],
        default=[],
        help="leave nodes of an onnx file in 32 bits: names of them, of their weights or results, patterns of these, or"
        " ops, such as 'head.*,Softmax'",
    )
    bits.add_argument(
        "--max-loss",
        metavar="SHARE",
        type=share,
        help="leave as many layers in floats as it takes to lose at most so much, such as 1%%: of accuracy with"
        " --labels, else of the outputs",
    )
    bits.add_argument("--labels", metavar="FILE.npy", help="the right class of each row of --calibrate")
    bits.add_argument("--block-size", type=int, metavar="N", help="numbers in a block of int4 (default: 32)")
    bits.add_argument(
        "--standard-blocks",
        action="store_true",
        help="write blocks of int4 as ONNX itself has them from opset 21 on (default: as ONNX Runtime has them)",
    )
    bits.add_argument(
        "--io",
        choices=["float32", "int8", "uint8", "float16", "bfloat16"],
        default="float32",
        help="choose what a tflite file in int8, or an onnx file in 16 bits, takes and gives (default: float32)",
    )


def _add_tensorflow(tensorflow: argparse._ArgumentGroup) -> None:
    tensorflow.add_argument(
        "--cast",
        choices=["none", "up", "down", "both"],
        default="none",
        help="compute in a wider or narrower dtype where TensorFlow has no kernel (default: refuse)",
    )
    tensorflow.add_argument(
        "--select-tf-ops",
        action="store_true",
        help="allow TensorFlow's ops in a tflite file, which need the larger runtime",
    )
    for side in ("input", "output"):
        tensorflow.add_argument(
            f"--{side}s-nhwc",
            action="append",
            metavar="NAME",
            help=f"hand over this {side} channels last (repeatable)",
        )


def _add_torch_and_jax(others: argparse._ArgumentGroup) -> None:
    others.add_argument(
        "--fallback",
        metavar="RUNTIME",
        help="keep what PyTorch has no rule for as ONNX inside the module, run by this runtime: onnxruntime",
    )
    others.add_argument(
        "--bounds",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="fix how many results there are at most of a node in JAX, where data decide; the function then gives "
        "after its outputs how many there are (repeatable)",
    )


def seconds(text: str) -> float:
    """A time that is given on the command line."""
    number = float(text)
    if not 0 < number < LONGEST:
        raise ValueError
    return number


def share(text: str) -> float:
    """1% or 0.01."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
