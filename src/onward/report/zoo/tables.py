"""The results of a zoo as one table: a row for each model and target."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from onward.zoo.results import Cell, ModelFacts, Results

FACTS = ("format", "task", "licence", "package", "opset", "parameters")
"""Of the model, in each of its rows."""
RENAMED = {"size_bytes": "source_bytes", "nodes": "source_nodes"}
"""Also of the model, where a result has a field of that name."""
LEFT_OUT = ("source",)
"""Generated source, which the pages have."""


def columns(results: Results) -> dict[str, list[Any]]:
    """By name, a value for each cell."""
    cells = [results.cells[key] for key in sorted(results.cells)]
    facts = [results.models.get(cell.model) or ModelFacts(cell.model, "") for cell in cells]
    names = [field.name for field in fields(Cell) if field.name not in LEFT_OUT]
    found = {name: [getattr(cell, name) for cell in cells] for name in names}
    found |= {name: [getattr(one, name) for one in facts] for name in FACTS}
    return found | {new: [getattr(one, name) for one in facts] for name, new in RENAMED.items()}


def write_parquet(results: Results, path: Path) -> bool:
    """Write the table; False where pyarrow, which does that, is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return False
    pq.write_table(pa.table(columns(results)), path, compression="zstd")
    return True
