"""`onward partition`: a model divided among a runtime and a fallback."""

from __future__ import annotations

import argparse
from pathlib import Path

from onward.cli.plugins import add_plugins
from onward.cli.steps import Steps
from onward.cli.streams import output, until_unread
from onward.errors import OnwardError

EPILOG = """examples:
  onward partition model.onnx --for openvino --out split/              what OpenVINO takes, and the rest
  onward verify model.onnx split/                                      the parts, run as one model
  onward partition model.onnx --for tensorrt --table trt.csv --out split/    from a table of ops, without the runtime"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "partition",
        help="divide a model among a runtime and a fallback",
        description="Divide an ONNX model into parts that a runtime takes and parts that the fallback runs. Each part "
        "is compiled, run and compared before anything is written.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", help="the .onnx file")
    command.add_argument(
        "--for",
        dest="target",
        required=True,
        metavar="RUNTIME",
        help="the runtime: openvino, torch, tensorflow:tflite, … (onward verify --list shows them); with --table any",
    )
    command.add_argument(
        "--out", required=True, metavar="FOLDER", help="write the parts, plan.json and report.html here"
    )
    command.add_argument(
        "--fallback", default="onnxruntime", metavar="RUNTIME", help="what runs the rest (onnxruntime)"
    )
    command.add_argument(
        "--table", metavar="FILE", help="a .csv file with a column 'op': what a runtime takes that is not here"
    )
    command.add_argument(
        "--min-nodes", type=int, default=1, metavar="N", help="give parts with fewer nodes to the fallback (1)"
    )
    data = command.add_argument_group("data (by default made up to fit the graph)")
    data.add_argument(
        "--inputs", metavar="PATH", help="read inputs from a .npz, .npy or image file, or a folder of these"
    )
    data.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="fix the size of a dynamic dimension (repeatable)",
    )
    data.add_argument("--seed", type=int, default=0, help="choose the random data")
    add_plugins(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    from onward.cli.verify import dims
    from onward.conversion.partition import write
    from onward.partitioning.divide import divide
    from onward.partitioning.timing import measure
    from onward.report.partition_page import listed, summary
    from onward.report.wording import printable

    if not args.model.endswith(".onnx"):
        raise OnwardError(
            f"{args.model}: convert it to ONNX first: onward convert {args.model} --to onnx --out model.onnx"
        )
    with Steps(Console(stderr=True)) as begin:
        made = divide(
            args.model,
            args.target,
            fallback=args.fallback,
            table=args.table,
            min_nodes=args.min_nodes,
            inputs=args.inputs,
            dims=dims(args.dim),
            seed=args.seed,
            progress=begin,
        )
        times = None
        if made.result is not None:
            begin("measuring times")
            times = measure(made)
        write(made, times, args.out)
    with until_unread():
        console = output()
        for line in summary(made, times):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        if found := listed(made):
            table = Table("op", "nodes", f"why it is not on {printable(made.target, 40)}")
            for op, why, count in found:
                table.add_row(printable(op, 60), str(count), printable(why, 200))
            console.print(table)
        console.print(f"written to {Path(args.out)}", soft_wrap=True, highlight=False, markup=False)
