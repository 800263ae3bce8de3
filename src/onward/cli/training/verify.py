"""`onward train verify`: does a training go on in other frameworks as on ONNX Runtime?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from onward.cli.plugins import add_plugins
from onward.cli.steps import Steps
from onward.cli.streams import output, until_unread
from onward.errors import OnwardError

EPILOG = """examples:
  onward train verify trainable.onnx --on onnxruntime,torch,keras,tensorflow,jax
  onward train verify trainable.onnx --on onnxruntime,torch --steps 200 --data train.npz --html page.html

Each framework runs what `onward train export` writes for it, from the same weights, state and step, on the same
batches. How far losses, gradients and states may be apart follows from the noise of the training: how far it is from
itself where it starts one bit off. Where one differs, the step, the part (forward, loss, gradient, state, update)
and the tensor are named.

exit codes: 0 the same, 1 different, 2 could not be run"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "verify",
        help="prove that a training goes on in other frameworks as on ONNX Runtime",
        description="Train on ONNX Runtime and in other frameworks, from one start and on one data set, and compare.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", help="the trainable .onnx file")
    command.add_argument(
        "--on",
        default="onnxruntime,torch",
        metavar="FRAMEWORKS",
        help="compare these, with commas between, with onnxruntime (default: onnxruntime,torch)",
    )
    command.add_argument("--steps", type=int, default=50, metavar="N", help="make so many steps (default: 50)")
    command.add_argument("--data", metavar="NPZ", help="train on these arrays (default: made-up data)")
    command.add_argument("--batch", type=int, default=32, help="samples in each step, with --data (default: 32)")
    command.add_argument("--seed", type=int, default=0, help="choose the order of the data, or what is made up")
    command.add_argument("--checkpoint", metavar="FILE", help="start from this checkpoint of `onward train run`")
    command.add_argument("--index", type=int, metavar="N", help="choose the training info, if the file has several")
    add_plugins(command)
    show = command.add_argument_group("report")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    show.add_argument("--html", metavar="FILE", help="write a page with the curves; it opens without a network")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from onward.cli.training.export import continued
    from onward.training.info.read import load
    from onward.training.verification.verify import verify

    names = [name.strip() for name in args.on.split(",")]
    if "" in names:
        raise OnwardError(f"--on {args.on}: write it as names with commas between, such as --on onnxruntime,torch")
    with Steps(Console(stderr=True)) as begin:
        start = continued(load(args.model, index=args.index), args.checkpoint)
        report = verify(
            start, names, steps=args.steps, data=args.data, batch=args.batch, seed=args.seed, progress=begin
        )
    report.model = Path(args.model).name
    if args.html:
        from onward.report.training_page import write_page

        write_page(report, Path(args.html))
    with until_unread():
        if args.json:
            print(json.dumps(report.to_json(), indent=2))
        else:
            from onward.report.training_text import show

            show(report, output())
    return {"same": 0, "different": 1, "failed": 2}[report.status]
