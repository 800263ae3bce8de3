"""`onward convert`: a model in one framework becomes a model in another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onward.errors import ConversionError, OnwardError, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from onward.backends.torch.convert import Source
    from onward.model import Model
    from onward.verify.check import Check

STEPS = ("reading", "generating source", "verifying against ONNX Runtime", "writing")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "convert",
        help="convert an ONNX model to a framework's source code and weights",
        description="Convert an ONNX model, check the result against ONNX Runtime, and write it as a Python package.",
        epilog="example: onward convert model.onnx --to torch --out resnet/",
    )
    command.add_argument("model", help="the .onnx file")
    command.add_argument("--to", required=True, choices=["torch"], help="the framework to convert to")
    command.add_argument("--out", required=True, metavar="FOLDER", help="where the package is written")
    command.add_argument(
        "--trainable",
        action="append",
        metavar="PATTERN",
        help="only weights whose name matches are trained, such as 'head.*' (may be given more than once)",
    )
    command.add_argument("--no-verify", action="store_true", help="do not run the result beside the original")
    command.add_argument("--seed", type=int, default=0, help="for the inputs that verification makes up")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from onward.model import load

    console = Console(stderr=True)
    check_output(Path(args.out))
    require_torch()
    from onward.backends.torch.convert import generate, write_package

    with step(console, 1):
        model = load(args.model)
    with step(console, 2):
        source = generate(model, args.trainable or True)
    if not args.no_verify:
        with step(console, 3):
            verdict = verify(model, source, args.seed)
        console.print(verdict, highlight=False, soft_wrap=True)
    with step(console, 4):
        folder = write_package(source, args.out)
    names = ", ".join(sorted(p.name for p in folder.iterdir() if p.is_file()))
    console.print(f"[green]done:[/] {folder}/ ({names})", highlight=False, soft_wrap=True)


def check_output(folder: Path) -> None:
    """Fail before the work is done, not after."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise OnwardError(f"{place} is a file; --out names a folder")


def require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise OnwardError("PyTorch is not installed: pip install 'onward[torch]'") from error


@contextmanager
def step(console: object, number: int) -> Iterator[None]:
    """Show which step is running; a failure says which step it was."""
    from rich.console import Console

    assert isinstance(console, Console)
    title = f"step {number} of {len(STEPS)}: {STEPS[number - 1]}"
    try:
        with console.status(title):
            yield
    except OnwardError as error:
        raise type(error)(f"{title}: {error}") from error
    except Exception as error:
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ConversionError(f"{title}: {problem} (a defect of Onward; `onward --traceback …` shows where)") from error


def verify(model: Model, source: Source, seed: int) -> str:
    """Run original and result on the same inputs; a sentence that says how they compare."""
    from onward.backends.torch.load import run as execute
    from onward.verify.check import check, reference
    from onward.verify.runners.torch import run_module

    try:
        truth = reference(model, seed)
    except UnsupportedError as error:
        return f"[yellow]not verified:[/] {error}"
    net = execute(source)
    outcome = check(truth, lambda inputs, names: run_module(net, inputs, names))
    if outcome.differences:
        raise VerificationError(
            f"the result differs from ONNX Runtime at {outcome.differences[0]}; nothing was written"
        )
    return summary(outcome)


def summary(outcome: Check) -> str:
    sets = f"{outcome.sets} set{'s' if outcome.sets > 1 else ''} of inputs"
    return (
        f"[green]verified:[/] worst error {outcome.error.worst:.1e} over {sets}"
        f" (ONNX Runtime's own noise on this model: {outcome.noise.worst:.1e})"
    )
