"""`onward zoo report`: the results of a zoo as pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.streams import output, until_unread
from onward.errors import OnwardError

if TYPE_CHECKING:
    from rich.console import Console

    from onward.report.zoo.changes import Change, Changes
    from onward.zoo.results import Results

SHOWN = 20
"""Changes of each kind that are listed."""
EXAMPLES = """examples:
  onward zoo report zoo/ --out site/                          open site/index.html
  onward zoo report zoo/ --out site/ --against last-week/     what is better and worse
  onward zoo report zoo/ --out site/ --markdown docs/zoo.md   a summary in Markdown too

exit codes: 0 done, 1 a result of Onward's own is worse than in --against, 2 bad input"""


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = actions.add_parser(
        "report",
        help="write the results of a run as pages",
        description="Write what a run found as a folder of pages, which open without a server or a network: a table of"
        " models and targets, a page for each model and each op, speed, how it went from run to run, and all results"
        " as one Parquet file. Other files in the folder stay.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("results", type=Path, help="the folder of a run, or a results.jsonl")
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write the pages to")
    command.add_argument(
        "--against",
        type=Path,
        metavar="OLD",
        help="say what is better and worse than in these results: the folder of a run or of pages, or a results.jsonl",
    )
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary in Markdown too")
    command.add_argument("--title", default="", help="set the headline of the summary")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 1 where a result of Onward's own is worse."""
    from rich.console import Console

    from onward.report.zoo import history, site
    from onward.report.zoo.changes import changes
    from onward.report.zoo.summary import markdown
    from onward.writing import new_folder, write_text

    messages, results = Console(stderr=True), output()
    found = known(args.results)
    compared = changes(known(args.against), found) if args.against else None
    runs = history.with_run(history.read_history(args.out / site.HISTORY), found)
    with new_folder(args.out, site.OWN) as folder:
        is_table = site.write(folder, found, runs, compared)
    if args.markdown:
        write_text(args.markdown, markdown(found, args.title) if args.title else markdown(found))
    with until_unread():
        show(results, found)
        if compared is not None:
            show_changes(results, compared)
    if not is_table:
        words = f"no {site.PARQUET}: that needs pyarrow, pip install 'onward[dataframe]'"
        messages.print(words, highlight=False, markup=False, soft_wrap=True)
    messages.print(f"[green]done:[/] {args.out / 'index.html'}", highlight=False, soft_wrap=True)
    return int(compared is not None and compared.regressed)


def known(path: Path) -> Results:
    """The results at a path, of which there has to be one."""
    from onward.report.zoo.names import writable
    from onward.zoo.results import read

    found = writable(read(path))
    if not found.cells:
        raise OnwardError(f"{path}: there are no results in it; `onward zoo run` writes them")
    return found


def show(console: Console, found: Results) -> None:
    """Counts by target."""
    from collections import Counter

    from rich.table import Table

    from onward.report.wording import counted
    from onward.report.zoo.verdicts import ORDER, title

    verdicts = [v for v in ORDER if any(cell.verdict == v for cell in found.cells.values())]
    table = Table(title=f"{counted(len(found.models), 'model')}, {counted(len(found.cells), 'result')}")
    for name in ("target", "models", *verdicts):
        table.add_column(name, justify="left" if name == "target" else "right")
    for target in found.targets:
        counts = Counter(cell.verdict for cell in found.cells.values() if cell.target == target)
        table.add_row(title(target), f"{counts.total():,}", *(f"{counts[v]:,}" for v in verdicts))
    console.print(table)


def show_changes(console: Console, found: Changes) -> None:
    blocks: Sequence[tuple[str, str, Sequence[Change]]] = (
        ("worse", "red", found.worse),
        ("better", "green", found.better),
        ("neither", "yellow", found.other),
    )
    console.print(f"{found.compared:,} results compared, {found.new:,} new, {found.gone:,} gone", highlight=False)
    for name, colour, listed in blocks:
        console.print(f"[{colour}]{name}: {len(listed):,}[/]", highlight=False)
        for change in listed[:SHOWN]:
            after = change.after
            line = f"  {after.model} · {after.target}: {change.before.verdict} → {after.verdict}"
            message = f": {after.message}" if after.message else ""
            console.print(line + message, markup=False, highlight=False, soft_wrap=True)
        if len(listed) > SHOWN:
            console.print(f"  and {len(listed) - SHOWN:,} more, which the page lists", highlight=False)
