"""`onward site`: documentation, ops, scoreboard, models and speed as one static site, from stored results."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.zoo.results import Results

ZOO, SCOREBOARD, DOCS = Path("benchmarks/zoo-results.jsonl"), Path("benchmarks/scoreboard.json"), Path("mkdocs.yml")
HISTORY = Path("benchmarks/zoo-history.json")
"""Where things lie in the repository of Onward."""
EXAMPLES = """examples:
  onward site --out site/                                    in the repository: from the results that it keeps
  onward site --out site/ --zoo zoo/ --no-docs               results of your own, without documentation
  onward site --out site/ --scoreboard board/scoreboard.json

A part whose source is not there is left out, unless you have named it. Nothing is converted or measured."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "site",
        help="write documentation, ops, scoreboard, models and speed as one static site",
        description="Write one static site from stored results: documentation, ops with their backends and gradients,"
        " the scoreboard, the models of a zoo, speed. It needs no server and fetches nothing from elsewhere.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write the site to")
    command.add_argument(
        "--zoo", type=Path, metavar="PATH", help=f"results of `onward zoo run`: a folder or file (default: {ZOO})"
    )
    command.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="how the models went in earlier runs: a history.json of a site, to which that in --out is added"
        f" (default: {HISTORY}, unless --zoo is given)",
    )
    command.add_argument(
        "--scoreboard",
        type=Path,
        metavar="FILE",
        help=f"results of `onward scoreboard`: its scoreboard.json (default: {SCOREBOARD})",
    )
    command.add_argument(
        "--docs",
        type=Path,
        metavar="FILE",
        help=f"build the documentation of this file by mkdocs, which runs the plugins that it names (default: {DOCS})",
    )
    command.add_argument("--no-docs", action="store_true", help="leave the documentation out")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from onward.report.site.write import OWN, Sources, write
    from onward.report.zoo import history
    from onward.writing import new_folder

    messages = Console(stderr=True)

    def say(words: str) -> None:
        messages.print(words, highlight=False, markup=False, soft_wrap=True)

    zoo, board = _chosen(args.zoo, ZOO), _chosen(args.scoreboard, SCOREBOARD)
    docs = None if args.no_docs else _docs(args.docs, say)
    for name, found in (("--zoo", zoo), ("--scoreboard", board)):
        if found is None:
            say(f"left out: there are no results at the default place of {name}")
    results, data = _results(zoo), _board(board)
    if args.history is not None and not args.history.is_file():
        raise OnwardError(f"--history {args.history}: there is no such file")
    earlier = args.history or (HISTORY if args.zoo is None else None)
    runs = history.read_history(args.out / "zoo/history.json")
    if earlier is not None:
        runs = history.together(history.read_history(earlier), runs)
    with new_folder(args.out, OWN) as folder:
        parts = write(folder, Sources(results, data, docs), runs)
    messages.print(f"[green]done:[/] {args.out / 'index.html'}", highlight=False, soft_wrap=True)
    say(f"parts: {', '.join(parts)}")
    return 0


def _chosen(named: Path | None, default: Path) -> Path | None:
    """What the user named, else what is at the default place."""
    return named or (default if default.exists() else None)


def _docs(named: Path | None, say: Callable[[str], None]) -> Path | None:
    from onward.report.site.documentation import is_installed

    config = _chosen(named, DOCS)
    if config is None:
        say(f"left out: there is no {DOCS} here to build documentation from")
    elif not config.is_file():
        raise OnwardError(f"--docs {config}: there is no such file")
    elif named is None and not is_installed():
        say("left out: the documentation, as mkdocs-material is not installed: pip install 'onward[docs]'")
        return None
    return config


def _results(path: Path | None) -> Results | None:
    from onward.cli.zoo.report import known

    return None if path is None else known(path)


def _board(path: Path | None) -> Mapping[str, Any] | None:
    from onward.scoreboard import board

    return None if path is None else board.read(path)
