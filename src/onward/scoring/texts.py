"""Columns of a CSV file, which are texts, as what a model reads them for."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pyarrow as pa
import pyarrow.compute as pc

from onward.errors import InvalidDataError
from onward.formats.dataframe.types import ColumnType
from onward.hub.wording import quote

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""What pandas takes for a missing value; Polars only the empty text."""
MEANINGS = {"date": pa.date32(), "time": pa.time64("ns")}


def arrow_type(type: ColumnType) -> Any:
    """The type of Arrow that a column of a model has; categories are as their labels."""
    if type.is_text:
        return pa.string()
    if type.is_time:
        return pa.timestamp(type.unit) if type.meaning == "datetime" else pa.duration(type.unit)
    return MEANINGS.get(type.meaning) or pa.from_numpy_dtype(type.dtype.numpy())


def tensor_type(dtype: ir.DataType) -> Any:
    return pa.string() if dtype == ir.DataType.STRING else pa.from_numpy_dtype(dtype.numpy())


def parsed(column: Any, type: Any, name: str, library: str) -> Any:
    """Texts as values of a type, with nulls where the library would have them."""
    gaps = pc.is_in(column, value_set=pa.array(["" if library == "polars" else word for word in MISSING]))
    column = pc.if_else(gaps, pa.scalar(None, pa.string()), column)
    if pa.types.is_string(type):
        return column
    try:
        if pa.types.is_duration(type):
            raise pa.ArrowInvalid("a duration has no form in a CSV file: use Parquet")
        return pc.utf8_trim_whitespace(column).cast(type)
    except pa.ArrowException as error:
        said = " ".join(str(error).split())
        raise InvalidDataError(f"column {quote(name)} has to hold {type}: {said}") from error
