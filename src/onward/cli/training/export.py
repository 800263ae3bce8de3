"""`onward train export`: a training goes on in another framework."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.convert import DIFFERENT, NOT_VERIFIED, coloured
from onward.cli.plugins import add_plugins
from onward.cli.steps import Steps
from onward.errors import VerificationError

if TYPE_CHECKING:
    from rich.console import Console

    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable
    from onward.verification.check import Verdict

EXAMPLES = """examples:
  onward train export trainable.onnx --to torch --out net/ && python -m net.train data.npz
  onward train export trainable.onnx --to keras --out net/ && python -m net.train data.npz
  onward train export trainable.onnx --to torch --out net/ --checkpoint tuned.checkpoint     after some training

exit codes: 0 done, 1 the training differs (nothing is written), 2 bad input, 3 written, but it could not be checked,
4 written by --keep, though the training differs"""


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
    check = command.add_argument_group("check of the result: a few steps there and on ONNX Runtime")
    check.add_argument("--no-verify", action="store_true", help="skip the check")
    check.add_argument("--data", metavar="NPZ", help="compare on these arrays (default: made-up data)")
    check.add_argument("--keep", action="store_true", help="write the result even if the training differs")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from onward.backends.backend import backend, require
    from onward.conversion.output import check_output
    from onward.training import export
    from onward.training.info.read import load
    from onward.writing import MANIFEST, written_in

    check_output(Path(args.out), is_file=False)
    framework = backend(args.to)
    require(framework)
    console = Console(stderr=True)
    trainable = continued(load(args.model, index=args.index), args.checkpoint)
    found = None if args.no_verify else _checked(trainable, args, console)
    with Steps(console) as begin:
        begin(f"writing the training as {framework.title} source")
        folder = getattr(export, f"to_{args.to}_package")(trainable, args.out, force=args.force)
    names = ", ".join([*written_in(folder), MANIFEST])
    if found is not None:
        console.print(coloured(found), highlight=False, soft_wrap=True)
    console.print(f"[green]done:[/] {folder}/ ({names})", highlight=False, soft_wrap=True)
    return 0 if found is None else {"verified": 0, "different": DIFFERENT}.get(found.status, NOT_VERIFIED)


def _checked(trainable: Trainable | Trainer, args: argparse.Namespace, console: Console) -> Verdict:
    """What a few steps there and on ONNX Runtime come to; an error where they differ, unless that is to be kept."""
    from onward.training.verification.proof import proven

    with Steps(console) as begin:
        found = proven(trainable, args.to, data=args.data, progress=begin)
    if found.status == "different" and not args.keep:
        raise VerificationError(f"{found.words}; nothing was written; --keep writes it all the same")
    return found


def continued(trainable: Trainable, path: str | None) -> Trainable | Trainer:
    """As it is in a checkpoint, if there is one."""
    if path is None:
        return trainable
    from onward.training.runtime import checkpoint
    from onward.training.runtime.trainer import Trainer

    trainer = Trainer(trainable)
    checkpoint.load(path, trainer)
    return trainer
