"""Names of files for names that a model or an op may have, which may be any text."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
