"""`onward scoreboard`: every runner on ONNX's own suite, as a web page."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from onward.cli.streams import output, until_unread
from onward.errors import OnwardError
from onward.writing import write_text

if TYPE_CHECKING:
    from rich.console import Console

    from onward.scoreboard.run import Progress
    from onward.scoreboard.store import What

WHAT = ("suite", "unknown", "dtypes")
REFRESH = 0.1
"""Seconds between two pictures of the progress bar."""
SHOWN = 20
"""Changes of each kind that are listed."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "scoreboard",
        help="run ONNX's own suite on every runner, and write the results as a web page",
        description="Run the backend suite of the installed onnx package on every runner that is installed, with known "
        "and unknown shapes, and every op in every dtype. A run that was stopped goes on where it stopped.",
        epilog="example: onward scoreboard --out site/ --on torch,onnxruntime --only test_resize",
    )
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write the page to")
    command.add_argument(
        "--on",
        default="",
        metavar="RUNNERS",
        help="choose runners, such as torch,torch:compile,onnxruntime (default: all installed)",
    )
    command.add_argument(
        "--what", default=",".join(WHAT), help="choose from suite, unknown (shapes), dtypes (default: all)"
    )
    command.add_argument("--only", default="", metavar="REGEX", help="run only tests, ops and dtypes that match")
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="run this many processes at a time")
    command.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="limit the time of each test")
    command.add_argument("--fresh", action="store_true", help="run everything again")
    command.add_argument("--compare", type=Path, metavar="OLD.json", help="show what changed since that scoreboard")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary in Markdown too")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 1 where something fails that passed in the scoreboard compared with."""
    from rich.console import Console

    from onward.report.scoreboard_site import write
    from onward.report.scoreboard_text import markdown
    from onward.scoreboard import board
    from onward.scoreboard.run import check, run_all

    messages, results = Console(stderr=True), output()
    options = _options(args)
    check(options)
    old = board.read(args.compare) if args.compare else None
    with _progress(messages) as progress:
        found = run_all(options, progress)
    data = board.board(found)
    changes = board.changes(old, data) if old is not None else None
    history = board.add_history(options.out / "history.json", data)
    page = write(options.out, data, history, changes)[0]
    if args.markdown:
        write_text(args.markdown, markdown(data))
    with until_unread():
        _show(results, data)
        if changes is not None:
            _show_changes(results, changes)
    reused = len(found.results) - found.ran
    before = f", {reused:,} taken from before" if reused else ""
    messages.print(f"[green]done:[/] {page} ({found.ran:,} run{before})", highlight=False, soft_wrap=True)
    return int(any(change["to"] != "pass" for change in changes or ()))


def _options(args: argparse.Namespace) -> Any:
    from onward.scoreboard.run import Options

    what = tuple(dict.fromkeys(filter(None, args.what.split(","))))
    if not what or set(what) - set(WHAT):
        raise OnwardError(f"--what {args.what!r}: there are {', '.join(WHAT)}")
    if args.jobs < 1 or args.timeout <= 0:
        raise OnwardError("--jobs and --timeout have to be positive")
    on = tuple(dict.fromkeys(filter(None, args.on.split(","))))
    return Options(args.out, on, cast("tuple[What, ...]", what), args.only, args.jobs, args.timeout, args.fresh)


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """A bar that is drawn by this thread, as processes are forked from it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None)
        drawn = 0.0

        def tell(what: str, done: int, total: int) -> None:
            nonlocal drawn
            bar.update(task, description=what, completed=done, total=total or None)
            if time.monotonic() - drawn > REFRESH or done == total:
                drawn = time.monotonic()
                bar.refresh()

        yield tell


def _show(console: Console, data: Mapping[str, Any]) -> None:
    from rich.table import Table

    from onward.report.scoreboard_page import TITLES

    table = Table(title=f"ONNX {next(iter(data['runners'].values()))['versions']['onnx']}")
    table.add_column("runner")
    for what in data["totals"]:
        table.add_column("\n".join(TITLES[what]), justify="right")
    for runner in data["runners"]:
        cells = [f"{totals['runners'][runner]['pass']:,} of {totals['tests']:,}" for totals in data["totals"].values()]
        table.add_row(runner, *cells)
    console.print(table)


def _show_changes(console: Console, changes: Sequence[Mapping[str, str]]) -> None:
    for passing, title, colour in ((False, "newly failing", "red"), (True, "newly passing", "green")):
        found = [change for change in changes if (change["to"] == "pass") == passing]
        console.print(f"[{colour}]{title}: {len(found):,}[/]", highlight=False)
        for change in found[:SHOWN]:
            line = f"  {change['runner']} · {change['what']} · {change['test']}: {change['from']} → {change['to']}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if len(found) > SHOWN:
            console.print(f"  and {len(found) - SHOWN:,} more, which the page lists", highlight=False)
