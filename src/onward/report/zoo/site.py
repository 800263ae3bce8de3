"""Writes the pages of a zoo to a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from onward.report.navigation import Navigation, Part
from onward.report.zoo import history, index_page, model_page, op_pages, speed_page
from onward.report.zoo.changes import Changes
from onward.report.zoo.names import page_names
from onward.report.zoo.tables import write_parquet
from onward.zoo.results import Kept, Results, record, without_source

HISTORY = "history.json"
RECORDS = "results.jsonl"
PARQUET = "results.parquet"
OWN = ("index.html", RECORDS, PARQUET, HISTORY, speed_page.PAGE, "models", "ops")
"""All that is written; whatever else is in the folder stays."""
PARTS = (Part("Models", "index.html"), Part("Ops", op_pages.INDEX), Part("Speed", speed_page.PAGE))
"""Of a zoo that is a site by itself."""


def write(
    folder: Path,
    results: Results,
    runs: Sequence[history.Run] = (),
    changes: Changes | None = None,
    navigation: Navigation | None = None,
    further: speed_page.Further = (),
) -> bool:
    """Into an empty folder; `runs` are those so far, this one among them. Whether there is a Parquet file, too."""
    navigation = navigation or Navigation(PARTS)
    pages = page_names(index_page.models(results), "models")
    ops = page_names(op_pages.used(results), "ops")
    for name in ("models", "ops"):
        (folder / name).mkdir()

    def put(path: str, text: str) -> None:
        (folder / path).write_text(text, encoding="utf-8")

    put("index.html", index_page.page(results, pages, navigation, runs, changes))
    for model, path in pages.items():
        put(path, model_page.page(model, results, pages, ops, navigation, runs))
    put(op_pages.INDEX, op_pages.index(results, ops, navigation))
    for op, path in ops.items():
        put(path, op_pages.page(op, results, pages, ops, navigation))
    put(speed_page.PAGE, speed_page.page(results, pages, navigation, further))
    put(HISTORY, history.text(runs))
    kept: list[Kept] = [*results.models.values(), *(without_source(cell) for cell in results.cells.values())]
    put(RECORDS, "".join(json.dumps(record(each)) + "\n" for each in kept))
    return write_parquet(results, folder / PARQUET)
