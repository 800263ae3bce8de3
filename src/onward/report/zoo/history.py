"""What runs of a zoo found, kept beside the pages: the verdict of every model on every target, a letter each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onward.zoo.results import Results, Verdict

LETTERS: dict[Verdict, str] = {
    "same": "s",
    "not verified": "n",
    "refused": "r",
    "timeout": "t",
    "out of memory": "m",
    "failed": "f",
    "crash": "c",
    "different": "d",
}
WORDS = {letter: verdict for verdict, letter in LETTERS.items()}
NONE = "-"
"""The letter of a cell that was not run."""
MOST_RUNS = 60
"""The latest of them."""


@dataclass(frozen=True)
class Run:
    """What was known at one time."""

    when: str
    """ISO 8601."""
    targets: tuple[str, ...]
    cells: Mapping[str, str]
    """By model, a letter for each of `targets`."""

    def verdict(self, model: str, target: str) -> Verdict | None:
        if target not in self.targets or model not in self.cells:
            return None
        return WORDS.get(self.cells[model][self.targets.index(target)])

    def share(self, target: str) -> float | None:
        """Of the models that were run on a target, those that came out the same."""
        found = Counter(self.verdict(model, target) for model in self.cells)
        total = found.total() - found[None]
        return found["same"] / total if total else None


def read_history(path: Path) -> list[Run]:
    """The runs in a file; none where it is not there or is none of ours."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    runs = [_run(entry) for entry in found] if isinstance(found, list) else []
    return [run for run in runs if run is not None]


def together(*histories: Sequence[Run]) -> list[Run]:
    """The runs of several files, of each time one, in their order."""
    found = {run.when: run for history in histories for run in history}
    return [found[when] for when in sorted(found)][-MOST_RUNS:]


def _run(entry: Any) -> Run | None:
    match entry:
        case {"when": str(when), "targets": list(targets), "cells": dict(cells)}:
            letters = {m: text for m, text in cells.items() if isinstance(text, str) and len(text) == len(targets)}
            return Run(when, tuple(map(str, targets)), letters)
    return None


def with_run(history: Sequence[Run], results: Results) -> list[Run]:
    """The runs so far and this one, which replaces the last if nothing has changed since."""
    targets = results.targets
    cells = {
        model: "".join(LETTERS[found[t].verdict] if t in found else NONE for t in targets)
        for model in results.models.keys() | {model for model, _ in results.cells}
        if (found := results.of(model))
    }
    when = max((cell.when for cell in results.cells.values()), default="")
    run = Run(when or datetime.now(UTC).isoformat(timespec="seconds"), targets, dict(sorted(cells.items())))
    before = list(history)
    if before and (before[-1].targets, before[-1].cells) == (run.targets, run.cells):
        before.pop()
    return [*before, run][-MOST_RUNS:]


def text(history: Sequence[Run]) -> str:
    """As it is stored."""
    return json.dumps([asdict(run) for run in history], separators=(",", ":")) + "\n"
