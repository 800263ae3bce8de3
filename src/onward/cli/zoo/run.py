"""`onward zoo run`: many models on many targets, each converted and proved."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.streams import output, until_unread

if TYPE_CHECKING:
    from collections import Counter

    from rich.console import Console

    from onward.zoo.results import Verdict
    from onward.zoo.run import Ran, Told

TO = "torch,tensorflow,keras,tflite,jax,onnx"
REFRESH = 0.2
"""Seconds between two pictures of the progress bar."""
SHOWN = 40
"""Cells that are listed because something is wrong."""
LONGEST = 300
COLOURS = {"same": "green", "different": "red", "failed": "red", "crash": "red"}
EPILOG = """examples:
  onward zoo run models.csv --to torch,jax --also train --out zoo/     stop it and start it again: it goes on
  onward zoo run my_models/ --to torch --jobs 4 --out zoo/             a folder with models of any format
  onward zoo run models.csv --on ray://head:10001 --out zoo/           on a Ray cluster"""
CODES = """exit codes: 0 every cell is the same, refused in words, or cannot be verified; 1 a cell is different or
failed; 2 bad input, or no room for results; 130 interrupted; what is done is kept in any case"""


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = actions.add_parser(
        "run",
        help="convert models, prove the results, and keep what comes of each",
        description="Each model is converted to each target in a process of its own with limits, verified, timed beside"
        " its source, and kept as a line of results.jsonl. A run that was stopped goes on where it stopped. Every kind"
        " of failure is a result.",
        epilog=f"{EPILOG}\n\n{CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a .csv list of models in packages or at paths, a folder of models, or a model",
    )
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="keep the results here")
    command.add_argument("--to", default=TO, metavar="TARGETS", help=f"convert to these, '' for none (default: {TO})")
    command.add_argument("--also", default="", metavar="WHAT", help="do this as well: train (make it trainable)")
    command.add_argument("--only", default="", metavar="REGEX", help="take only models whose name matches")
    again = command.add_argument_group("what was done before")
    again.add_argument("--fresh", action="store_true", help="do everything again")
    again.add_argument(
        "--keep-versions",
        action="store_true",
        help="keep results of other versions of Onward and its packages: each says of which it is",
    )
    where = command.add_argument_group("where, and within what limits")
    where.add_argument(
        "--on",
        default="local",
        metavar="PLACE",
        help="local (default), ray (a cluster that runs on this machine, else a new one), ray://local (a new one), or"
        " ray://HOST:PORT",
    )
    where.add_argument("--jobs", type=int, metavar="N", help="do N at a time (default: one for each processor)")
    where.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="limit each cell (300)")
    where.add_argument("--memory", metavar="SIZE", help="limit the memory of each cell, such as 8GB")
    command.add_argument("--quiet", action="store_true", help="hide the progress bar")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from onward.cli.verify import nbytes
    from onward.zoo.run import FILE, Options, run_all

    options = Options(
        args.sources,
        args.out,
        _names(args.to),
        _names(args.also),
        args.on,
        args.jobs,
        args.timeout,
        nbytes(args.memory) if args.memory else None,
        args.only,
        args.fresh,
        args.keep_versions,
    )
    messages = Console(stderr=True)
    try:
        with progress(messages, args.quiet) as told:
            ran = run_all(options, told)
    except KeyboardInterrupt:
        words = f"stopped: what is done is kept in {options.out / FILE}; the same command goes on from there"
        messages.print(words, highlight=False, markup=False, soft_wrap=True)
        raise
    with until_unread():
        show(output(), ran)
    before = len(ran.cells) - ran.new
    reused = f", {before:,} from before" if before else ""
    messages.print(f"[green]done:[/] {options.out / FILE} ({ran.new:,} new{reused})", highlight=False, soft_wrap=True)
    return 0 if ran.is_good else 1


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@contextmanager
def progress(console: Console, quiet: bool) -> Iterator[Told]:
    """A bar that is drawn by this thread, as processes are forked from it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, auto_refresh=False, transient=True, disable=quiet) as bar:
        task = bar.add_task("", total=None)
        drawn = 0.0

        def told(done: int, total: int, verdicts: Counter[Verdict]) -> None:
            nonlocal drawn
            words = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.most_common())
            bar.update(task, description=words, completed=done, total=total)
            if time.monotonic() - drawn > REFRESH or done == total:
                drawn = time.monotonic()
                bar.refresh()

        yield told


def show(console: Console, ran: Ran) -> None:
    """How often which verdict, by target, and what is wrong."""
    from rich.table import Table

    from onward.report.wording import printable
    from onward.zoo.results import VERDICTS
    from onward.zoo.run import WRONG

    counts = ran.counts()
    seen = [verdict for verdict in VERDICTS if any(count[verdict] for count in counts.values())]
    table = Table("target", title=f"{len(ran.entries):,} models")
    for verdict in seen:
        table.add_column(verdict, justify="right", style=COLOURS.get(verdict, ""))
    for target, count in counts.items():
        table.add_row(target, *(f"{count[verdict]:,}" if count[verdict] else "" for verdict in seen))
    console.print(table)
    wrong = [cell for cell in ran.cells.values() if cell.verdict in WRONG]
    for cell in wrong[:SHOWN]:
        line = f"{cell.model} to {cell.target}: {cell.verdict}: {cell.message}"
        console.print(printable(line, LONGEST), markup=False, highlight=False, soft_wrap=True)
    if len(wrong) > SHOWN:
        console.print(f"and {len(wrong) - SHOWN:,} more", highlight=False)
