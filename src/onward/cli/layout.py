"""`onward layout`: channels first or last, with fewer transposes, as an ordinary ONNX model."""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.steps import Steps
from onward.cli.streams import escape
from onward.errors import OnwardError, VerificationError

if TYPE_CHECKING:
    from onward.layout.onnx_to_onnx import Relaid
    from onward.model import Model
    from onward.verification.results import Report

EPILOG = """examples:
  onward layout model.onnx --to nhwc --out nhwc.onnx                       images in and out channels last
  onward layout from_tensorflow.onnx --to nchw --out nchw.onnx             channels first, transposes gone
  onward layout model.onnx --to nhwc --inputs-nhwc image --out out.onnx    this input only
  onward layout model.onnx --to nchw --same-io --out out.onnx              fewer transposes, the same interface

exit codes: 0 written, 1 the result differs (nothing is written), 2 bad input"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "layout",
        help="move channels first or last, and remove transposes",
        description="Write the same function with images channels first or last, and as few transposes as it needs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", help="the .onnx file")
    command.add_argument("--to", required=True, choices=["nhwc", "nchw"], help="the layout of images in and out")
    command.add_argument("--out", required=True, metavar="FILE", help="the .onnx file to write")
    for side in ("input", "output"):
        command.add_argument(
            f"--{side}s-nhwc",
            action="append",
            metavar="NAME",
            help=f"hand over this {side} channels last, and leave the other {side}s as they are (repeatable)",
        )
    command.add_argument("--same-io", action="store_true", help="leave inputs and outputs as they are")
    command.add_argument("--no-verify", action="store_true", help="skip the check of the result against the original")
    command.add_argument("--seed", type=int, default=0, help="choose the random inputs that verification makes up")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from onward.layout.onnx_to_onnx import relaid
    from onward.layout.orders import Layout
    from onward.model import load

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if args.same_io and (args.inputs_nhwc or args.outputs_nhwc):
        raise OnwardError("--same-io leaves inputs and outputs as they are: leave out --inputs-nhwc and --outputs-nhwc")
    model = load(args.model)
    result = relaid(model, None if args.same_io else Layout(args.to), args.inputs_nhwc, args.outputs_nhwc)
    if not args.no_verify:
        with Steps(console) as begin:
            begin("verifying")
            report = compare(model, result, args.seed)
        console.print(verdict(report))
    result.model.save(Path(args.out))
    for kind, names in (("input", result.moved.inputs), ("output", result.moved.outputs)):
        for name, order in names.items():
            console.print(f"{kind} {escape(name)}: its axes are {list(order)} of those it had")
    console.print(f"transposes: {result.before} before, {result.after} after")
    console.print(f"[green]done:[/] {escape(args.out)}")


def compare(model: Model, result: Relaid, seed: int = 0) -> Report:
    """Run both on ONNX Runtime, on the same inputs, each in the layout it takes."""
    from onward.runners import prepare
    from onward.verification.check import reordered
    from onward.verification.sides import Side
    from onward.verification.verify import verify

    execute = cache(lambda: prepare("onnxruntime", result.model))  # within the verification: it may be refused

    run = reordered(lambda inputs: execute()(inputs), result.moved.inputs, result.moved.outputs)
    return verify(model, Side("the result", run), source="onnxruntime", seed=seed)


def verdict(report: Report) -> str:
    """A sentence that says how original and result compare; raises where they differ."""
    worst, side = report.worst, report.sides[0]
    if report.status == "same":
        error = f"worst error {worst.metrics.worst:.1e}, allowed {worst.tolerance.worst:.1e}" if worst else "no outputs"
        return f"[green]verified:[/] {error}, over {len(side.trials)} sets of inputs against {report.source}"
    failure = side.failure or next((trial.failure for trial in side.trials if trial.failure), "")
    problem = f"does not run: {failure}" if failure else "differs"
    if worst and not failure:
        problem += f": {worst.name}: {worst.reason}"
    raise VerificationError(f"the result {problem}; nothing was written")
