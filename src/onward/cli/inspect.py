"""`onward inspect`: what a model contains, and what each backend supports of it."""

from __future__ import annotations

import argparse
import json

from onward.cli.plugins import add_plugins
from onward.cli.source import add_source, source_options
from onward.cli.streams import output
from onward.cli.trust import add_trust


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "inspect",
        help="show what a model contains and what each backend supports of it",
        description="Show a model's inputs, outputs, size and ops, and how each backend supports them. Runs nothing.",
        epilog="example: onward inspect model.onnx --json",
    )
    command.add_argument(
        "model",
        help="the model: a file or folder of any framework, or package.module:callable; other than ONNX is"
        " shown as the ONNX model that it becomes, a package of generated source by its weights",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    command.add_argument("--weights", action="store_true", help="list the weights, too")
    add_source(command)
    add_trust(command)
    add_plugins(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from onward.conversion.inspect import inspect

    found = inspect(
        args.model,
        weights=args.weights,
        **source_options(args),
        trust=args.trust,
    )
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        from onward.report.inspect_text import show

        show(found, output())
