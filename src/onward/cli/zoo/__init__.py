"""`onward zoo`: many models on many targets."""

from __future__ import annotations

import argparse

from onward.cli.zoo import report, run

EXAMPLES = """examples:
  onward zoo run models.csv --to torch,jax --also train --out zoo/     stop it and start it again: it goes on
  onward zoo run my_models/ --to torch --jobs 4 --out zoo/             a folder with models of any format
  onward zoo run models.csv --on ray://head:10001 --out zoo/           on a Ray cluster
  onward zoo report zoo/ --out site/ --against last/                   pages; what is better and worse than last time"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "zoo",
        help="convert and prove many models on many targets, and show what came of it",
        description="Convert many models to many targets, prove each result, and show what came of it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    run.add(actions)
    report.add(actions)
