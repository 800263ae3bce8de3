"""`onward merge`: two ONNX files as one, the second behind the first."""

from __future__ import annotations

import argparse
from pathlib import Path

from onward.errors import OnwardError

EPILOG = """examples:
  onward merge encoder.onnx head.onnx --join features=x --out both.onnx
  onward merge detector.onnx classifier.onnx --join crops=image --join size=size --out both.onnx
  onward merge a.onnx b.onnx --join ids=ids --out both.onnx       an input of both is one"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "merge",
        help="join two ONNX files to one",
        description="Write one ONNX file that gives values of the first to inputs of the second. Types and sizes are"
        " checked, the file of the older opset is upgraded, and names that both have get a prefix in the second.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("first", help="the .onnx file that runs first")
    command.add_argument("second", help="the .onnx file that runs behind it")
    command.add_argument(
        "--join",
        action="append",
        required=True,
        metavar="VALUE=INPUT",
        help="give a value of the first file to an input of the second (repeatable)",
    )
    command.add_argument(
        "--prefix", metavar="TEXT", help="what to put before names that both have (default: the second file's name, /)"
    )
    command.add_argument("--out", required=True, metavar="FILE", help="the .onnx file to write")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from onward.cli.graphs.written import write
    from onward.conversion.output import check_output
    from onward.editing.merge import merged
    from onward.model import load

    out = Path(args.out)
    check_output(out, is_file=True)
    made, remarks = merged(load(args.first), load(args.second), joins(args.join), args.prefix)
    write(made, remarks, out)


def joins(given: list[str]) -> dict[str, list[str]]:
    """By value of the first model, the inputs that it feeds."""
    found: dict[str, list[str]] = {}
    for text in given:
        value, equals, target = text.partition("=")
        if not (value and equals and target):
            raise OnwardError(f"--join {text}: write VALUE=INPUT, a value of the first file and an input of the second")
        found.setdefault(value, []).append(target)
    return found
