"""What is better and worse in the results of a zoo than in those of another time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onward.report.zoo.verdicts import RANKS, is_peer
from onward.zoo.results import Cell, Results

FIGURES = {"nodes": "nodes", "transposes": "transposes", "size_bytes": "bytes"}
"""Of results, those that are the same each time unless a conversion has changed."""
LEAST = 0.02
"""The least change of a figure that is told, relative."""


@dataclass(frozen=True)
class Change:
    """A cell, then and now."""

    before: Cell
    after: Cell


@dataclass(frozen=True)
class Figure(Change):
    """One that is as right as it was, with a figure that is another."""

    name: str
    old: int
    new: int


@dataclass(frozen=True)
class Changes:
    """Of the cells that both times have, for the same file."""

    worse: list[Change] = field(default_factory=list)
    better: list[Change] = field(default_factory=list)
    other: list[Change] = field(default_factory=list)
    """Neither: one limit instead of another."""
    figures: list[Figure] = field(default_factory=list)
    compared: int = 0
    new: int = 0
    """Cells that were not there, or of a file that has changed."""
    gone: int = 0

    @property
    def regressed(self) -> bool:
        """Whether Onward does worse; how other converters do is not counted."""
        return any(not is_peer(change.after.target) for change in self.worse)


def changes(old: Results, new: Results) -> Changes:
    found = Changes(gone=len(old.cells.keys() - new.cells.keys()))
    compared = 0
    for key, after in sorted(new.cells.items()):
        before = old.cells.get(key)
        if before is None or before.sha256 != after.sha256:
            continue
        compared += 1
        change, step = Change(before, after), RANKS[after.verdict] - RANKS[before.verdict]
        if step:
            (found.worse if step > 0 else found.better).append(change)
        elif after.verdict != before.verdict:
            found.other.append(change)
        elif after.verdict == "same":
            found.figures.extend(_figures(before, after))
    lists = found.worse, found.better, found.other, found.figures
    return Changes(*lists, compared=compared, new=len(new.cells) - compared, gone=found.gone)


def _figures(before: Cell, after: Cell) -> Iterator[Figure]:
    for name, words in FIGURES.items():
        old, new = getattr(before, name), getattr(after, name)
        if old is not None and new is not None and abs(new - old) > LEAST * max(old, 1):
            yield Figure(before, after, words, old, new)
