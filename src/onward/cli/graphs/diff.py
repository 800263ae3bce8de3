"""`onward diff`: what was added, removed and changed from one ONNX file to another."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """examples:
  onward diff old.onnx new.onnx                      nodes, weights, inputs, outputs, metadata
  onward diff old.onnx new.onnx --html diff.html     a page with both graphs side by side
  onward diff old.onnx new.onnx --json | jq .changes

exit codes: 0 no difference, 1 there are differences, 2 bad input"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "diff",
        help="show what was added, removed and changed from one ONNX file to another",
        description="Compare two ONNX files as graphs: nodes are matched by what they compute, by name and by their"
        " neighbours, weights by content. Runs nothing; `onward verify` tells whether both compute the same.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("first", help="the .onnx file to compare from")
    command.add_argument("second", help="the .onnx file to compare to")
    command.add_argument("--html", metavar="FILE", help="write a page with both graphs side by side")
    command.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    command.add_argument("--all", action="store_true", help="list every change; else a dozen of each kind")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import json

    from onward.cli.streams import output, until_unread
    from onward.editing.diff import diff
    from onward.report.difference.page import page
    from onward.report.difference.text import show
    from onward.writing import make_folder, refusals, write_text

    found = diff(args.first, args.second)
    if args.html:
        with refusals(Path(args.html)):
            make_folder(Path(args.html).parent)
        write_text(args.html, page(found))
    with until_unread():
        if args.json:
            print(json.dumps(found.to_json(), indent=2))
        else:
            show(found, output(), everything=args.all)
    return 0 if found.same else 1
