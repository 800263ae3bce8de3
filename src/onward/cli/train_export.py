"""`onward train export`: a training goes on in another framework."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "export",
        help="write a trainable model as source code that trains it in PyTorch",
        description="Write model, loss, optimizer with its state, and a training loop as a Python package.",
        epilog="example: onward train export trainable.onnx --to torch --out net/ && python -m net.train data.npz",
    )
    command.add_argument("model", help="the trainable .onnx file")
    command.add_argument("--to", required=True, choices=["torch"], help="the framework to go on in")
    command.add_argument("--out", required=True, metavar="FOLDER", help="where the package is written")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from onward.cli.convert import check_output, require_torch
    from onward.training.export import to_torch_package
    from onward.training.info import load

    check_output(Path(args.out))
    require_torch()
    console = Console(stderr=True)
    with console.status("writing the training as PyTorch source"):
        folder = to_torch_package(load(args.model), args.out)
    names = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
    console.print(f"[green]done:[/] {folder}/ ({names})", highlight=False, soft_wrap=True)
