"""What a model gave for a batch, as columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from onward.scoring.tensors import column_of
from onward.scoring.texts import arrow_type

Array = npt.NDArray[Any]
WIDEST = 256
"""Numbers of a row that become columns of their own; more are one column of lists."""


def chosen_outputs(graph: ir.Graph, schema: TableSchema | None, wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tensors to compute, and the columns of a data processing that they are; all, if nothing is wanted."""
    if schema is not None and not schema.boundary:
        columns = {column.name: column for column in schema.outputs}
        found = [columns[name] for name in _known(wanted, columns)] if wanted else list(schema.outputs)
        return [name for column in found for name in (column.tensor, column.null) if name], [c.name for c in found]
    outputs = {value.name or "": value for value in graph.outputs}
    names = list(_known(wanted, outputs)) if wanted else list(outputs)
    for name in names:
        type = outputs[name].type
        if type is not None and not isinstance(type, ir.TensorType):
            tensors = [n for n, v in outputs.items() if isinstance(v.type, ir.TensorType)]
            advice = f": choose others, {option('outputs', ','.join(tensors), plural=True)}" if tensors else ""
            raise UnsupportedError(f"the output {quote(name)} is no tensor, which a table has no column for{advice}")
    return names, []


def _known(wanted: Sequence[str], names: Mapping[str, object]) -> Sequence[str]:
    for name in wanted:
        if name not in names:
            listed = ", ".join(map(quote, names))
            raise InvalidDataError(f"the model gives no {quote(name)}{meant(name, names)}; it gives {listed}")
    return wanted


def check_rows(outputs: Mapping[str, Array], rows: int) -> None:
    """Refuse outputs that have not a row for each row of the batch."""
    for name, array in outputs.items():
        shape = np.shape(array)
        if not shape or shape[0] != rows:
            gives = f"{shape[0]:,} rows" if shape else "a single number"
            advice = f"leave it out with {option('outputs', plural=True)}"
            raise UnsupportedError(
                f"the output {quote(name)} has {gives} for a batch of {rows:,}: it is not one result for each row, so"
                f" it cannot be scored in batches; {advice}, or run the model on the whole table in Python: onward.run"
            )


def columns_of(outputs: Mapping[str, Array], schema: TableSchema | None, chosen: Sequence[str], lists: bool) -> Any:
    """A table; with `lists`, an output is a single column whatever its shape."""
    if schema is not None and not schema.boundary:
        found = [column for column in schema.outputs if column.name in chosen]
        return pa.table({column.name: _column(outputs, column) for column in found})
    made: dict[str, Any] = {}
    for name, array in outputs.items():
        width = math.prod(array.shape[1:])
        if not width:
            raise UnsupportedError(
                f"the output {quote(name)} has rows of shape {list(array.shape[1:])}, which hold nothing: leave it out"
                f" with {option('outputs', plural=True)}"
            )
        if width == 1 and not (lists and array.ndim > 1):
            columns = {name: column_of(array.reshape(-1))}
        elif lists or width > WIDEST:
            columns = {name: column_of(array)}
        else:
            flat = array.reshape(len(array), width)
            columns = {f"{name}_{i}": column_of(flat[:, i]) for i in range(width)}
        if both := columns.keys() & made.keys():
            raise UnsupportedError(
                f"two outputs give a column {quote(min(both))}: choose one of them with"
                f" {option('outputs', plural=True)}, or write .npz, where {quote(name)} is one array"
            )
        made |= columns
    return pa.table(made)


def _column(outputs: Mapping[str, Array], column: ColumnSchema) -> Any:
    type, values = column.type, np.asarray(outputs[column.tensor]).reshape(-1)
    lost = np.asarray(outputs[column.null]).reshape(-1) if column.null else None
    if type.is_time:
        lost = values == NAT
    elif type.nan_is_null:
        lost = np.isnan(values)
    kind = arrow_type(type)
    if type.is_text:
        return _labelled(pa.array([str(value) for value in values], kind, mask=lost), column)
    plain = pa.array(values, mask=lost)
    return _labelled(plain if plain.type == kind else plain.view(kind), column)


def _labelled(values: Any, column: ColumnSchema) -> Any:
    """Labels of a fixed set as Arrow has them."""
    type = column.type
    if type.categories is None or not type.categories:
        return values
    labels = pa.array(list(type.categories), values.type)
    return pa.DictionaryArray.from_arrays(pc.index_in(values, value_set=labels), labels, ordered=type.ordered)
