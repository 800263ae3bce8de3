"""`onward convert`: a model in one framework becomes a model in another."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onward.advice.extras import missing_packages
from onward.backends.backend import formats
from onward.cli.plugins import add_plugins
from onward.cli.source import add_source, source_options
from onward.cli.steps import Steps
from onward.cli.streams import escape
from onward.cli.trust import add_trust
from onward.conversion.parts import PARTS
from onward.conversion.progress import Progress, limited, titled
from onward.errors import ConversionError, OnwardError
from onward.gate.budget import SECONDS, announce

if TYPE_CHECKING:
    from rich.console import Console

    from onward.verification.check import Verdict

NOT_VERIFIED = 3
"""The exit code where a result is written of which it is not known whether it is right."""
DIFFERENT = 4
"""The exit code where a result is written that differs, as the user asked for."""
EPILOG = """examples:
  onward convert model.onnx --to torch --out resnet/
  onward convert net.keras --to tflite --out net.tflite --inputs images/     check on your own data
  onward convert models:Net --input "x:float32[batch,3,224,224]" --to onnx
  onward convert features.py:features --sample train.parquet --to onnx --trust     a function on data frames
  onward convert net.py:apply --spec "f32[b,224,224,3]" --to onnx --trust          a function of JAX
  onward convert models:llama --cache --to onnx                              one step of decoding
  onward convert model.onnx --to onnx --simplify --dim batch=1 --out small.onnx
  onward convert model.onnx --to onnx --opset 13 --out old.onnx              the same file for an older runtime

exit codes: 0 done, 1 the result differs (nothing is written), 2 bad input, 3 written, but it could not be checked,
4 written by --keep, though the result differs"""
LONGEST = 1e7
"""Seconds that a step may be given: four months."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "convert",
        help="convert a model from any framework to any other, through ONNX",
        description="Convert a model, check the result against the original, and write it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    add_source(command)
    command.add_argument(
        "--freeze",
        action="append",
        default=[],
        metavar="COLUMN.METHOD",
        help="keep an aggregate of the sample, such as age.median, as a constant of a function on data frames; else"
        " it is that of whatever rows the model is given (repeatable)",
    )
    command.add_argument(
        "--never-null",
        action="append",
        default=[],
        metavar="COLUMN",
        help="take a column of a function on data frames to have no nulls, now and later: the model has no mask of its"
        " nulls, and is smaller and faster (repeatable)",
    )
    command.add_argument(
        "--extensions",
        action="store_true",
        help="let a function on data frames use ops of onnxruntime-extensions, for patterns that ONNX Runtime cannot"
        " follow by itself; whoever runs the file needs that package too",
    )
    command.add_argument(
        "--part",
        choices=PARTS,
        help="choose what to convert of a file with data processing and a model (default: all, or the model alone"
        " where the target does not take the data processing)",
    )
    command.add_argument(
        "--opset",
        type=int,
        help="choose the version of ONNX to write: of an ONNX file 7 to the newest, up or down; else 13 to 26"
        " (default: 21)",
    )
    command.add_argument(
        "--ir-version", type=int, help="choose the version of the file format (default: that of the opset's time)"
    )
    command.add_argument(
        "--simplify", action="store_true", help="write an ONNX file with fewer nodes, of the same names and opset"
    )
    command.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PASS",
        help="leave a pass of --simplify out (repeatable): initializers, shapes, neutral, constants, branches, moves,"
        " weights, scalings, pads, recurrence, idioms, attention, equal",
    )
    command.add_argument(
        "--allow-custom-ops", action="store_true", help="write TensorFlow ops without a rule as custom ops"
    )
    command.add_argument(
        "--trainable",
        action="append",
        metavar="PATTERN",
        help="train only weights whose name matches, such as 'head.*' (repeatable)",
    )
    command.add_argument(
        "--quantize",
        choices=["float16", "dynamic", "int8", "int4"],
        help="make a tflite or onnx file smaller: int8 needs --calibrate; onnx takes int8, and int4 for the weights of"
        " products, in blocks; tflite all others",
    )
    command.add_argument(
        "--float16", action="store_true", help="compute in 16 bits in an onnx file, but where that loses too much"
    )
    command.add_argument("--bfloat16", action="store_true", help="the same in bfloat16")
    command.add_argument(
        "--keep-float",
        metavar="NAMES",
        type=lambda text: [name for name in text.split(",") if name],
        default=[],
        help="leave nodes of an onnx file in 32 bits: names of them, of their weights or results, patterns of these, or"
        " ops, such as 'head.*,Softmax'",
    )
    command.add_argument(
        "--max-loss",
        metavar="SHARE",
        type=share,
        help="leave as many layers in floats as it takes to lose at most so much, such as 1%%: of accuracy with"
        " --labels, else of the outputs",
    )
    command.add_argument("--labels", metavar="FILE.npy", help="the right class of each row of --calibrate")
    command.add_argument("--block-size", type=int, metavar="N", help="numbers in a block of int4 (default: 32)")
    command.add_argument(
        "--standard-blocks",
        action="store_true",
        help="write blocks of int4 as ONNX itself has them from opset 21 on (default: as ONNX Runtime has them)",
    )
    command.add_argument(
        "--io",
        choices=["float32", "int8", "uint8", "float16", "bfloat16"],
        default="float32",
        help="choose what a tflite file in int8, or an onnx file in 16 bits, takes and gives (default: float32)",
    )
    command.add_argument(
        "--calibrate", metavar="DATA", help="calibrate int8 and int4 with these inputs (.npz, a folder, …)"
    )
    command.add_argument(
        "--select-tf-ops",
        action="store_true",
        help="allow TensorFlow's ops in a tflite file, which need the larger runtime",
    )
    command.add_argument(
        "--cast",
        choices=["none", "up", "down", "both"],
        default="none",
        help="compute in a wider or narrower dtype where TensorFlow has no kernel (default: refuse)",
    )
    command.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="fix the size of a dynamic dimension (repeatable); TensorFlow Lite may ask for it",
    )
    command.add_argument(
        "--bounds",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="fix how many results there are at most of a node in JAX, where data decide; the function then gives "
        "after its outputs how many there are (repeatable)",
    )
    command.add_argument(
        "--fallback",
        metavar="RUNTIME",
        help="keep what PyTorch has no rule for as ONNX inside the module, run by this runtime: onnxruntime",
    )
    for side in ("input", "output"):
        command.add_argument(
            f"--{side}s-nhwc",
            action="append",
            metavar="NAME",
            help=f"hand over this {side} channels last in TensorFlow (repeatable)",
        )
    add_trust(command)
    add_plugins(command)
    command.add_argument(
        "--force", action="store_true", help="write over files that were edited since Onward wrote them"
    )
    command.add_argument(
        "--timeout",
        type=seconds,
        default=SECONDS,
        metavar="SECONDS",
        help=f"limit the time of each step (default: {SECONDS:g})",
    )
    check = command.add_argument_group("check of the result against the original")
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
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from onward.cli.verify import dims
    from onward.conversion.convert import converted
    from onward.conversion.request import Request

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow is told to keep its remarks
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    request = Request(
        source=args.model,
        to=args.to,
        out=Path(args.out or named_after(args.model, args.to)),
        **source_options(args),
        freeze=args.freeze,
        never_null=args.never_null,
        extensions=args.extensions,
        part=args.part,
        opset=args.opset,
        ir_version=args.ir_version,
        simplify=args.simplify,
        without=args.without,
        allow_custom_ops=args.allow_custom_ops,
        dims=dims(args.dim),
        bounds=dims(args.bounds, "bounds"),
        trainable=args.trainable or True,
        inputs_nhwc=args.inputs_nhwc or (),
        outputs_nhwc=args.outputs_nhwc or (),
        cast=args.cast,
        quantize=args.quantize,
        io=args.io,
        calibrate=args.calibrate,
        float16=args.float16,
        bfloat16=args.bfloat16,
        keep_float=args.keep_float,
        labels=args.labels,
        max_loss=args.max_loss,
        block_size=args.block_size,
        standard_blocks=args.standard_blocks,
        select_tf_ops=args.select_tf_ops,
        fallback=args.fallback,
        verify=not args.no_verify,
        verify_on=args.verify_on,
        inputs=args.inputs,
        atol=args.atol,
        rtol=args.rtol,
        quick=args.quick,
        keep=args.keep,
        force=args.force,
        report=None if args.report is None else Path(args.report),
        timeout=args.timeout,
        seed=args.seed,
    )
    done = converted(request, OnConsole(console))
    for line in done.trainable:
        console.print(escape(line))
    for line in done.notes:
        console.print(re.sub(r"^cast:", "[yellow]cast:[/]", escape(line)))
    console.print(f"[green]done:[/] {escape(done.written)}")
    return DIFFERENT if done.difference else NOT_VERIFIED if done.doubt else 0


def named_after(model: str, to: str) -> str:
    """Where to write a model if nobody says: what is there already is never written over."""
    path = Path(model)
    name = model.rpartition(":")[2] if not path.exists() and ":" in model else path.resolve().stem
    known = formats()
    out = Path(name + (known[to][1].suffix if to in known else ".onnx"))
    if out.exists():
        raise OnwardError(f"{out} exists already; give --out")
    return str(out)


def seconds(text: str) -> float:
    """A time that is given on the command line."""
    number = float(text)
    if not 0 < number < LONGEST:
        raise ValueError
    return number


def share(text: str) -> float:
    """1% or 0.01."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


class OnConsole(Progress):
    """Shows which step is running and how long each took; a failure says which step it was."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, number: int, seconds: float | None = None, what: str = "") -> Iterator[None]:
        title = titled(number, what)
        announce(doing=title)
        try:
            with Steps(self._console) as begin, limited(number, seconds, what), missing_packages():
                begin(title)
                yield
        except OnwardError as error:
            raise type(error)(f"{title}: {error}") from error
        except Exception as error:
            problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ConversionError(
                f"{title}: {problem} (a defect of Onward; `onward --traceback …` shows where)"
            ) from error

    def found(self, verdict: Verdict, leg: str) -> None:
        self._console.print(f"{escape(leg)}{', ' if leg else ''}{coloured(verdict)}")


def coloured(verdict: Verdict) -> str:
    """A verdict as it is printed; one that differs got here because it is to be kept all the same."""
    if verdict.status == "different":
        return f"[red]{escape(verdict.words)}[/], kept as asked"
    colour = "green" if verdict.status == "verified" else "yellow"
    words = escape(str(verdict)).replace(verdict.status, f"[{colour}]{verdict.status}[/]", 1)
    return words.replace(escape(verdict.warning), f"[yellow]{escape(verdict.warning)}[/]") if verdict.warning else words
