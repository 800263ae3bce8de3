"""Rows of a table that are kept as they are made: a run that was stopped goes on."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def table(
    heads: Sequence[str], starts: Iterable[Sequence[str]], rest_of: Callable[..., list[str]], kept: Path | None
) -> list[str]:
    """The lines of a table in Markdown: a row for each start, with what `rest_of` makes of it.

    Rows that are in the file `kept` are not made again.
    """
    found: list[list[str]] = json.loads(kept.read_text()) if kept and kept.exists() else []
    rows = [list(heads), ["---"] * len(heads)]
    for start in map(list, starts):
        row = next((row for row in found if row[: len(start)] == start), None)
        if row is None:
            row = [*start, *rest_of(*start)]
            found.append(row)
            if kept:
                kept.write_text(json.dumps(found))
        rows.append(row)
        print(*row, flush=True)
    return ["| " + " | ".join(row) + " |" for row in rows]
