"""What a model is fed with, from the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pyarrow as pa
import pyarrow.compute as pc

from onward.advice.nearest import meant
from onward.advice.options import option
from onward.errors import InvalidDataError, UnsupportedError
from onward.formats.dataframe.schema import ColumnSchema, TableSchema
from onward.formats.dataframe.types import NAT
from onward.hub.wording import quote
from onward.scoring.tensors import array_of, is_list, joined, numbers
from onward.scoring.texts import arrow_type, parsed, tensor_type

Array = npt.NDArray[Any]
SHOWN = 8
"""Columns that a message lists."""


@dataclass(frozen=True)
class Tensor:
    """An input of a model that was not made of a function on data frames."""

    name: str
    dtype: ir.DataType
    inner: tuple[int | None, ...] | None
    """The sizes behind the rows, as far as the model says them; None where not even their number is known."""
    fixed: int | None
    """How many rows it takes; None for any number."""
    columns: tuple[str, ...]
    is_chosen: bool = False
    """Whether the user named the columns, which then stand side by side."""


def tensors(graph: ir.Graph, chosen: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[Tensor]:
    """The inputs, with the columns that feed them; one with a default is left out where no column has its name."""
    inputs = {value.name or "": value for value in graph.inputs}
    if unknown := [name for name in chosen if name not in inputs]:
        raise InvalidDataError(f"the model has no input {quote(unknown[0])}{meant(unknown[0], inputs)}")
    if len(inputs) == 1 and names == [""]:  # the one array of a .npy file
        chosen = {next(iter(inputs)): [""]}
    made = []
    for name, value in inputs.items():
        if name in graph.initializers and name not in (*chosen, *names):
            continue
        if not isinstance(value.type, ir.TensorType) or value.dtype is None:
            raise UnsupportedError(f"the input {quote(name)} is no tensor, which rows of a table cannot be")
        if value.dtype != ir.DataType.STRING and value.dtype.numpy().kind not in "biuf":
            raise UnsupportedError(f"the input {quote(name)} is of {value.dtype.name}, which tables do not hold")
        columns = tuple(chosen.get(name, (name,)))
        if missing := [column for column in columns if column not in names]:
            raise InvalidDataError(_absent(missing[0], names, name if name not in chosen else ""))
        sizes = None if value.shape is None else [dim if isinstance(dim, int) else None for dim in value.shape]
        if sizes is not None and not sizes:
            raise UnsupportedError(f"the input {quote(name)} is a single number, not rows: this model cannot be scored")
        inner = None if sizes is None else tuple(sizes[1:])
        is_side_by_side = name in chosen and columns != ("",)
        made.append(Tensor(name, value.dtype, inner, sizes[0] if sizes else None, columns, is_side_by_side))
    return made


def _absent(column: str, names: Sequence[str], whole: str = "") -> str:
    listed = ", ".join(quote(name) for name in names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    advice = f"; {option('column', {whole: 'a,b,c'})} feeds an input with columns side by side" if whole else ""
    return (
        f"the data has no column {quote(column)}, which the model takes{meant(column, names)}{advice}; it has {listed}"
    )


def tensor_feeds(table: Any, wanted: Sequence[Tensor], is_text: bool) -> dict[str, Array]:
    return {tensor.name: _fed(table, tensor, is_text) for tensor in wanted}


def _fed(table: Any, tensor: Tensor, is_text: bool) -> Array:
    arrays = []
    for name in tensor.columns:
        column = table.column(name)
        if is_text and tensor.dtype != ir.DataType.STRING:
            column = parsed(column, tensor_type(tensor.dtype), name, "")
        arrays.append(_values(column, name, tensor.dtype))
    if tensor.is_chosen:
        if wide := [name for name, array in zip(tensor.columns, arrays, strict=True) if array.ndim > 1]:
            if len(arrays) > 1:
                raise InvalidDataError(f"column {quote(wide[0])} has lists, which do not stand beside other columns")
            return _shaped(arrays[0], tensor)
        return _shaped(np.stack(arrays, axis=1), tensor)
    return _shaped(arrays[0], tensor)


def _values(column: Any, name: str, dtype: ir.DataType) -> Array:
    """A column in the dtype that the model takes, if it holds all of it."""
    column = joined(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if dtype == ir.DataType.STRING:
        return _strings(column, name)
    inner = column.type
    while is_list(inner):
        inner = inner.value_type
    is_number = pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_boolean(inner)
    if not is_number:
        raise InvalidDataError(f"column {quote(name)} holds {column.type}, and the model takes {dtype.name.lower()}")
    wanted = np.dtype(dtype.numpy())
    if not is_list(column.type) and column.null_count:
        if wanted.kind != "f":
            raise InvalidDataError(f"column {quote(name)} is null, which {wanted} cannot be")
        column = column.cast(pa.float64()) if pa.types.is_boolean(inner) else column
    array = array_of(column)
    if array is None:
        raise InvalidDataError(f"column {quote(name)} has lists of different lengths, or none in some rows")
    return _cast(array, wanted, name)


def _cast(array: Array, wanted: np.dtype[Any], name: str) -> Array:
    if array.dtype == wanted:
        return array
    with np.errstate(all="ignore"):
        made = array.astype(wanted)
    lost = np.isinf(made) & ~np.isinf(array.astype(np.float64)) if wanted.kind == "f" else made != array
    if np.any(lost):
        value = array.reshape(-1)[int(np.argmax(np.ravel(lost)))]
        raise InvalidDataError(f"column {quote(name)} has {value}, which {wanted} does not hold")
    return made


def _strings(column: Any, name: str) -> Array:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InvalidDataError(f"column {quote(name)} holds {column.type}, and the model takes text")
    if column.null_count and pc.any(pc.equal(column, "")).as_py():
        raise InvalidDataError(f"column {quote(name)} has missing texts and empty ones, which ONNX cannot tell apart")
    return np.asarray(pc.fill_null(column, "").to_numpy(zero_copy_only=False), dtype=object)


def _shaped(array: Array, tensor: Tensor) -> Array:
    inner, found = tensor.inner, array.shape[1:]
    if inner is None or _fits(found, inner):
        return array
    if array.ndim == 1 and len(inner) == 1 and inner[0] in (1, None):
        return array.reshape(-1, 1)
    known = [size for size in inner if size is not None]
    if len(known) == len(inner) and math.prod(known) == math.prod(found):
        return array.reshape(len(array), *known)
    words = " × ".join("?" if size is None else str(size) for size in inner) or "one number"
    has = " × ".join(map(str, found)) or "one number"
    raise InvalidDataError(
        f"the input {quote(tensor.name)} takes rows of {words}, and the columns give {has}: "
        f"{option('column', {tensor.name: 'a,b,c'})} feeds it with columns side by side"
    )


def _fits(found: Sequence[int], inner: Sequence[int | None]) -> bool:
    return len(found) == len(inner) and all(b in (a, None) for a, b in zip(found, inner, strict=True))


def check_columns(schema: TableSchema, names: Sequence[str]) -> None:
    for column in schema.inputs:
        if column.name not in names:
            raise InvalidDataError(_absent(column.name, names))


def frame_feeds(table: Any, schema: TableSchema, is_text: bool) -> dict[str, Array]:
    """By the contract of columns: plain ones as they are, others by the library that the function was written for."""
    made: dict[str, Array] = {}
    others: dict[str, Any] = {}
    for column in schema.inputs:
        values = table.column(column.name)
        if is_text:
            values = parsed(values, arrow_type(column.type), column.name, schema.library)
        values = joined(values)
        plain = _plain(values, column, schema.library)
        if plain is None:
            others[column.name] = values
        else:
            made |= {name: array.reshape(-1, 1) for name, array in plain.items()}
    if others:
        rest = TableSchema(schema.library, [column for column in schema.inputs if column.name in others], [])
        made |= _by_library(pa.table(others), rest)
    return made


def _plain(column: Any, wanted: ColumnSchema, library: str) -> dict[str, Array] | None:
    """What a column is fed as if it is of the model's own type; None where that takes thought."""
    type = wanted.type
    if type.categories is not None or column.type != arrow_type(type):
        return None
    if type.is_time:
        return {wanted.tensor: numbers(pc.fill_null(column.cast(pa.int64()), NAT))}
    if type.is_text and (wanted.null or not column.null_count):
        texts = np.asarray(pc.fill_null(column, "").to_numpy(zero_copy_only=False), dtype=object)
        gaps = {wanted.null: numbers(pc.is_null(column))} if column.null_count else {}
        return {wanted.tensor: texts} | gaps
    if type.meaning or type.is_text or column.null_count:
        return None
    if type.is_float and not (type.nan_is_null or library == "polars"):
        return None
    return {wanted.tensor: numbers(column)}


def _by_library(table: Any, schema: TableSchema) -> dict[str, Array]:
    if schema.library == "polars":
        import polars

        from onward.formats.dataframe import polars as frames

        return frames.feeds(polars.DataFrame(table), schema)
    from onward.formats.dataframe.pandas import feeds

    return feeds(table.to_pandas(ignore_metadata=True, integer_object_nulls=True), schema)
