"""`onward train export`: a training goes on in another framework."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.plugins import add_plugins
from onward.cli.steps import Steps

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable

EXAMPLES = """examples:
  onward train export trainable.onnx --to torch --out net/ && python -m net.train data.npz
  onward train export trainable.onnx --to keras --out net/ && python -m net.train data.npz
  onward train export trainable.onnx --to torch --out net/ --checkpoint tuned.checkpoint     after some training"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "export",
        help="write a trainable model as source code that trains it in another framework",
        description="Write model, loss, optimizer with its state, and a training loop as a Python package.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", help="the trainable .onnx file")
    frameworks = ["torch", "keras", "tensorflow", "jax"]
    command.add_argument("--to", required=True, choices=frameworks, help="the framework to write source code for")
    command.add_argument("--out", required=True, metavar="FOLDER", help="the folder to write the package to")
    command.add_argument("--checkpoint", metavar="FILE", help="continue from this checkpoint of `onward train run`")
    command.add_argument(
        "--force", action="store_true", help="write over files that were edited since Onward wrote them"
    )
    command.add_argument("--index", type=int, metavar="N", help="choose the training info, if the file has several")
    add_plugins(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from onward.backends.backend import backend, require
    from onward.conversion.convert import check_output
    from onward.training import export
    from onward.training.info.read import load
    from onward.writing import MANIFEST, written_in

    check_output(Path(args.out), is_file=False)
    framework = backend(args.to)
    require(framework)
    console = Console(stderr=True)
    with Steps(console) as begin:
        begin(f"writing the training as {framework.title} source")
        trainable = _continued(load(args.model, index=args.index), args.checkpoint)
        folder = getattr(export, f"to_{args.to}_package")(trainable, args.out, force=args.force)
    names = ", ".join([*written_in(folder), MANIFEST])
    console.print(f"[green]done:[/] {folder}/ ({names})", highlight=False, soft_wrap=True)


def _continued(trainable: Trainable, path: str | None) -> Trainable | Trainer:
    """As it is in a checkpoint, if there is one."""
    if path is None:
        return trainable
    from onward.training.runtime import checkpoint
    from onward.training.runtime.trainer import Trainer

    trainer = Trainer(trainable)
    checkpoint.load(path, trainer)
    return trainer
