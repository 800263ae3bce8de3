"""Texts of a zoo, which may be any, as files take them: names of pages, and texts without halves of characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from onward.zoo.results import Kept, Results, gathered, record

LONGEST = 100
TAKEN = ("index", "con", "prn", "aux", "nul")
"""By our own pages, and by systems."""


def page_names(names: Iterable[str], folder: str) -> dict[str, str]:
    """By name, its page in this folder: `models/magika-model.onnx.html`. Names that would share a page are numbered."""
    taken, found = set(TAKEN), {}
    for name in sorted(names):
        plain = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-._")[:LONGEST] or "unnamed"
        page, number = plain, 1
        while page.casefold() in taken:
            number += 1
            page = f"{plain}-{number}"
        taken.add(page.casefold())
        found[name] = f"{folder}/{page}.html"
    return found


def writable(results: Results) -> Results:
    """The same, with a question mark for each half of a character, which no file can hold."""
    everything: list[Kept] = [*results.models.values(), *results.cells.values()]
    return gathered(_whole(record(kept)) for kept in everything)


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return [_whole(item) for item in value]
        case dict():
            return {_whole(name): _whole(item) for name, item in value.items()}
    return value
