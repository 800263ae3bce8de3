"""`onward zoo`: many models on many targets."""

from __future__ import annotations

import argparse

from onward.cli.zoo import report

EXAMPLES = """examples:
  onward zoo report zoo/ --out site/                  pages of what a run found
  onward zoo report zoo/ --out site/ --against last/  and what is better and worse than last time"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "zoo",
        help="convert and prove many models on many targets, and show what came of it",
        description="Convert and prove many models on many targets, and show what came of it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    report.add(actions)
