"""What the columns of a model are: kept in the model's metadata, so that any program can feed it.

`onward.data_processing` is JSON: the library, the columns that go in and come out, and the tensors at which the data
processing ends and a model begins, if one follows. `needs` names packages whose ops are in the graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.formats.dataframe.types import TICKS, ColumnType
from onward.graph.names import EXTENSIONS, PROCESSING

KEY = "onward.data_processing"
PREFIX = PROCESSING
VERSION = 1
OWN_NAME = r"[A-Za-z0-9_]*(\[[A-Za-z0-9_, ]*\])?"
"""What libraries call their types: `Int64`, `datetime64[ns]`, `string[pyarrow]`. A library is asked for the type of
that name, so nothing else is taken from a file."""


@dataclass(frozen=True)
class ColumnSchema:
    """A column, and the tensors that hold it."""

    name: str
    type: ColumnType
    tensor: str
    null: str = ""
    """The tensor of booleans that tells where it is null; '' if there is none."""
    own: str = ""
    """What the library calls its type, such as `Int64` of pandas; '' for what follows from the type."""


@dataclass(frozen=True)
class TableSchema:
    library: str
    inputs: Sequence[ColumnSchema]
    outputs: Sequence[ColumnSchema]
    boundary: Mapping[str, str] = field(default_factory=dict)
    """By tensor that the data processing ends at, the input of the model that follows; empty if none does."""
    is_series: bool = False
    """Whether the result is a single column by itself, not a frame."""


def schema_of(model: ir.Model) -> TableSchema | None:
    """Of a model with data processing, what its columns are."""
    text = model.metadata_props.get(KEY)
    if text is None:
        return None
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise ValueError(f"version {found['version']} is not known")
        return TableSchema(
            str(found["library"]),
            [_read(column) for column in found["inputs"]],
            [_read(column) for column in found["outputs"]],
            {str(key): str(value) for key, value in found.get("boundary", {}).items()},
            bool(found.get("series", False)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidModelError(f"the metadata {KEY} is damaged: {error}") from error


def write_schema(model: ir.Model, schema: TableSchema) -> None:
    model.metadata_props[KEY] = json.dumps(
        {
            "version": VERSION,
            "library": schema.library,
            "inputs": [_written(column) for column in schema.inputs],
            "outputs": [_written(column) for column in schema.outputs],
            **({"boundary": dict(schema.boundary)} if schema.boundary else {}),
            **({"series": True} if schema.is_series else {}),
            **({"needs": ["onnxruntime-extensions"]} if EXTENSIONS in model.opset_imports else {}),
        },
        ensure_ascii=False,
    )


def _written(column: ColumnSchema) -> dict[str, Any]:
    type = column.type
    made: dict[str, Any] = {"name": column.name, "dtype": type.dtype.name.lower(), "tensor": column.tensor}
    optional = {
        "meaning": type.meaning,
        "unit": type.unit,
        "null": column.null,
        "masked": type.masked,
        "categories": None if type.categories is None else list(type.categories),
        "ordered": type.ordered,
        "own": column.own,
    }
    return made | {key: value for key, value in optional.items() if value or value == []}


def _read(found: Mapping[str, Any]) -> ColumnSchema:
    categories = found.get("categories")
    unit, meaning = str(found.get("unit", "")), str(found.get("meaning", ""))
    if meaning not in ("", "datetime", "duration", "date", "time") or (unit and unit not in TICKS):
        raise ValueError(f"a column of {meaning or 'numbers'} in {unit or 'no unit'}")
    if categories is not None and not all(isinstance(item, str | int | float) for item in categories):
        raise ValueError("categories are texts or numbers")
    type = ColumnType(
        ir.DataType[str(found["dtype"]).upper()],
        meaning,
        unit,
        None if categories is None else tuple(categories),
        bool(found.get("ordered", False)),
        bool(found.get("masked", False)),
    )
    own = str(found.get("own", ""))
    if not re.fullmatch(OWN_NAME, own):
        raise ValueError(f"{own!r} is no name of a type")
    return ColumnSchema(str(found["name"]), type, str(found["tensor"]), str(found.get("null", "")), own)
