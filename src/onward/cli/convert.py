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
from onward.cli.convert_options import add_options
from onward.cli.source import source_options
from onward.cli.steps import Steps
from onward.cli.streams import escape
from onward.conversion.progress import Progress, limited, titled
from onward.errors import ConversionError, OnwardError
from onward.gate.budget import announce

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


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "convert",
        help="convert a model from any framework to any other, through ONNX",
        description="Convert a model, check the result against the original, and write it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(command)
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
