"""`onward extract`: a part of an ONNX file as a file of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """examples:
  onward extract model.onnx --to features --out encoder.onnx                  all that computes a value
  onward extract model.onnx --from features --out head.onnx                   all that is computed from it
  onward extract model.onnx --from x --from "*/mask" --to y --out part.onnx   between values, by name or pattern"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "extract",
        help="cut a part out of an ONNX file, as a file of its own",
        description="Write the part of an ONNX file that computes some values from others. The types and shapes of its"
        " inputs are inferred; functions, graphs inside nodes, external data and training information come along.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", help="the .onnx file")
    command.add_argument(
        "--from",
        dest="inputs",
        action="append",
        default=[],
        metavar="NAME",
        help="begin at a value of the graph, or at all whose names match a pattern (default: the inputs; repeatable)",
    )
    command.add_argument(
        "--to",
        dest="outputs",
        action="append",
        default=[],
        metavar="NAME",
        help="end at a value of the graph, or at all whose names match a pattern (default: the outputs; repeatable)",
    )
    command.add_argument("--out", required=True, metavar="FILE", help="the .onnx file to write")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from onward.cli.graphs.written import write
    from onward.conversion.output import check_output
    from onward.editing.extract import extracted
    from onward.model import load

    out = Path(args.out)
    check_output(out, is_file=True)
    part, remarks = extracted(load(args.model), args.inputs, args.outputs)
    write(part, remarks, out)
