"""The difference of two models in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from onward.editing.differences import PARTS, Change, Difference
from onward.report.difference.words import SIGNS, TITLES, subject, summary
from onward.report.wording import printable

STYLES = {"added": "green", "removed": "red", "changed": "yellow", "renamed": "cyan", "tied": "cyan"}
MOST = 12
"""Changes of one part and kind that are listed, unless all are asked for."""


def show(found: Difference, console: Console, *, everything: bool = False) -> None:
    """Print it, the summary first."""
    console.print(Text(printable(f"{found.first} → {found.second}", 1000), style="bold"), soft_wrap=True)
    console.print(Text(printable(summary(found), 1000), style="green" if found.same else "yellow"), soft_wrap=True)
    for part in PARTS:
        changes = found.of(part)
        if changes:
            console.print()
            console.print(Text(TITLES[part], style="bold"))
        for kind, sign in SIGNS.items():
            listed = [change for change in changes if change.kind == kind]
            shown = listed if everything else listed[:MOST]
            for change in shown:
                _print(change, sign, console)
            if more := len(listed) - len(shown):
                words = f"{sign} {more:,} more {kind} (--all lists them)"
                console.print(Text(words, style="dim"), soft_wrap=True)


def _print(change: Change, sign: str, console: Console) -> None:
    line = Text.assemble((f"{sign} {printable(subject(change), 300)}", STYLES[change.kind]))
    if change.details:
        line.append(f"  {printable('; '.join(change.details), 1000)}", style="dim")
    console.print(line, soft_wrap=True)
