"""`onward view`: a page to look into a model with."""

from __future__ import annotations

import argparse
from pathlib import Path

from onward.cli.plugins import add_plugins
from onward.cli.source import add_source, source_options
from onward.cli.trust import add_trust

EPILOG = """examples:
  onward view model.onnx --open                     writes model.view.html, and shows it in the browser
  onward view model.tflite --to keras --out m.html  any format; beside each node the lines of Keras that it becomes
  onward view net/                                  a package of generated source: its code and its weights"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "view",
        help="look into a model: its graph, weights and generated source, as a page",
        description="Write one page with the graph of a model of any format, modules that open, the shapes, attributes,"
        " weights and generated source of each node, and all that the file says of itself. Runs nothing.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "model",
        help="the model: a file or folder of any framework, or package.module:callable; other than ONNX is shown as the"
        " ONNX model that it becomes, a package of generated source by its code and weights",
    )
    command.add_argument("--out", metavar="FILE", help="the page to write (default: NAME.view.html, here)")
    command.add_argument(
        "--to",
        metavar="BACKEND",
        help="show the source of this backend beside the nodes: torch, tensorflow, keras, jax, or none (default: torch,"
        " where it is installed)",
    )
    command.add_argument("--open", action="store_true", help="show the page in the browser")
    add_source(command)
    add_trust(command)
    add_plugins(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from onward.conversion.view import view

    found = view(args.model, to=args.to, **source_options(args), trust=args.trust)
    found = found.save(args.out or f"{_stem(args.model, found.name)}.view.html")
    print(found.path)
    if args.open:
        found.open()


def _stem(model: str, name: str) -> str:
    """The name of a file that tells the model."""
    path = Path(model)
    return (path.resolve().name if path.is_dir() else path.stem) if path.exists() else name
