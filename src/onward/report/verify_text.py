"""A verification in the terminal: the verdict first, then each side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from onward.report.verify_words import (
    VERDICTS,
    Row,
    arbitration_words,
    compared,
    culprit_words,
    information,
    measured,
    problems,
    rows,
    verdict,
    verdict_of,
    worst,
    worst_element,
)
from onward.report.wording import counted, duration, listing, number, printable, share, sizes
from onward.verification.results import Report, SideResult, Status

STYLES: dict[Status, str] = {"same": "green", "different": "red", "failed": "yellow"}
MOST_ROWS = 12
"""Of a side's outputs, unless all are asked for; those that differ are always shown first."""


def show(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Print it. `verbose` adds the outputs left out of a long table, more figures of each, and the environment."""
    style = STYLES[report.status]
    console.print(Text(f"{VERDICTS[report.status]}: {verdict(report)}", style=f"bold {style}"), soft_wrap=True)
    facts = [f"{counted(len(report.data), 'data set')}", duration(report.seconds)]
    _line(console, " · ".join(filter(None, [worst(report), *facts])), "dim")
    for side in report.sides:
        console.print()
        _side(side, console, verbose)
    if report.notes:
        console.print()
    for note in report.notes:
        _line(console, f"Note: {printable(note, 1000)}")
    if verbose and report.environment:
        console.print()
        _line(console, ", ".join(f"{printable(k)} {printable(v)}" for k, v in report.environment.items()), "dim")


def _side(side: SideResult, console: Console, verbose: bool) -> None:
    style = STYLES[side.status]
    heading = Text.assemble((printable(side.name), "bold"), "  ", (VERDICTS[side.status].lower(), style))
    if side.trials:
        heading.append(f", {counted(compared(side), 'data set')} compared", style="dim")
    console.print(heading, soft_wrap=True)
    found = rows(side)
    shown = found if verbose else found[:MOST_ROWS]
    if shown:
        console.print(_indented(_table(shown)))
        left = found[len(shown) :]
        if left:
            differing = sum(row.different > 0 for row in left)
            words = f"{differing} of them different" if differing else "all the same"
            _line(console, f"… and {counted(len(left), 'more output')}, {words}; --verbose shows them", "dim", 2)
        for words in _reasons_for_tolerance(shown):
            _line(console, words, "dim", 2)
        for row in shown:
            if row.output.status == "same" and row.output.reason:
                _line(console, f"{printable(row.output.name)}: {printable(row.output.reason)}", "dim", 2)
    if verbose:
        for row in shown:
            _line(console, _details(row), "dim", 2)
    found_wrong = list(problems(side))
    listed = found_wrong if verbose else found_wrong[:MOST_ROWS]
    for where, what in listed:
        _line(console, f"{where}: {what}" if where else what, style, 2)
    if len(found_wrong) > len(listed):
        _line(console, f"… and {len(found_wrong) - len(listed):,} more; --verbose shows them", style, 2)
    for style, words in zip_longest(["bold"], arbitration_words(side), fillvalue=""):
        _line(console, words, style, 2)
    if side.culprit:
        for style, words in zip_longest(["bold"], culprit_words(side.culprit), fillvalue=""):
            _line(console, words, style, 2)


def _table(found: list[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("output", min_width=8, max_width=24, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for title in ("error", "allowed", "max abs", "beyond"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("worst element", min_width=14, overflow="fold")
    for row in found:
        output, style = row.output, STYLES[row.output.status]
        cells = [Text(printable(output.name)), Text(verdict_of(output), style=style)]
        if measured(output):
            cells += [
                Text(number(output.metrics.worst), style=style),
                Text(number(output.tolerance.worst)),
                Text(number(output.metrics.max_abs)),
                Text(share(output.metrics.mismatched)),
                Text(worst_element(output)),
            ]
        table.add_row(*cells)
    return table


def _reasons_for_tolerance(found: list[Row]) -> Iterator[str]:
    """Each reason once, with the outputs it holds for unless it holds for all."""
    by_reason: dict[str, list[str]] = {}
    for row in found:
        if row.output.tolerance.why and measured(row.output):
            by_reason.setdefault(row.output.tolerance.why, []).append(row.output.name)
    for why, names in by_reason.items():
        some = [printable(name, 24) for name in names[:3]] + (["others"] if len(names) > 3 else [])
        yield f"allowed{f' for {listing(some)}' if len(by_reason) > 1 else ''}: {printable(why, 300)}"


def _details(row: Row) -> str:
    figures = [f"{name} {value}" for name, value in information(row.output.metrics)]
    what = f"{printable(row.output.dtype)} {sizes(row.output.shape)}".strip()
    return f"{printable(row.output.name)}: " + ", ".join([what, f"worst in {printable(row.data)}", *figures])


def _indented(table: Table) -> Padding:
    return Padding(table, (0, 0, 0, 2))


def _line(console: Console, words: str, style: str = "", indent: int = 0) -> None:
    for line in Text(words, style=style).wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)
