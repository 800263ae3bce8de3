"""Pipelines with functions on data frames in them: their inputs are columns as such functions take them.

A function goes through the same capture as by itself, and its nodes are marked as data processing. What follows the
functions is the model, which begins at the boundary that the metadata name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError, UnsupportedError
from onward.formats.dataframe.pandas import feeds, frame_of, may_be_null, type_of
from onward.formats.dataframe.schema import PREFIX, ColumnSchema, TableSchema, schema_of, write_schema
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.pandas.capture import captured
from onward.frontends.sklearn.table import Cells, Data, Table
from onward.frontends.sklearn.writer import Writer
from onward.graph.append import appended
from onward.graph.build import Tensor
from onward.graph.names import Unique
from onward.model import Model
from onward.runners.onnxruntime import prepare

GAP = "\ufdd0"
"""What stands for a missing string inside of a graph: a code that no text has, as it is no character."""


class FrameInputs:
    """The inputs of a graph whose data are the columns of a frame."""

    def __init__(self, op: Writer, rows: Any) -> None:
        self._op = op
        op.gap = GAP
        self.inputs: list[ColumnSchema] = []
        self.rows = rows
        names = [str(name) for name in rows.columns]
        cells: dict[str, Cells] = {}
        problems: dict[str, str] = {}
        for place, name in enumerate(names):
            series = rows.iloc[:, place]
            try:
                cells[name] = self._input(name, series)
            except UnsupportedError as error:
                problems[name] = str(error)
        self.table = table_of(op, rows, cells, problems)

    def _input(self, name: str, series: Any) -> Cells:
        type = type_of(series)
        value, null = self._made(name, type.dtype, "batch"), None
        if may_be_null(series) and type.null_is_mask:
            null = self._made(f"{name}.null", ir.DataType.BOOL, None)
        column = ColumnSchema(name, type, value.value.name or "", _name(null), str(series.dtype))
        self.inputs.append(column)
        return Cells(value, null)

    def _made(self, name: str, dtype: ir.DataType, rows: str | None) -> Tensor:
        value = ir.Value(name=self._op.names.value(name), type=ir.TensorType(dtype), shape=ir.Shape([rows, 1]))
        self._op.graph.inputs.append(value)
        return self._op.tensor(value)

    def finish(self) -> None:
        """Leave out inputs that nothing reads, give masks of nulls their default, and write down the columns."""
        graph = self._op.graph
        nulls = {column.null: column for column in self.inputs if column.null}
        used = {value.name for value in graph.inputs if value.uses()}
        kept = [column for column in self.inputs if column.tensor in used or column.null in used]
        wanted = {column.tensor for column in kept} | used
        for value in list(graph.inputs):
            if value.name not in wanted:
                graph.inputs.remove(value)
            elif value.name in nulls:
                value.const_value = ir.Tensor(np.asarray([[False]]), name=value.name)
                graph.register_initializer(value)
        outputs = list(self._boundary(kept))
        names = {tensor: name for column, name in outputs for tensor, name in _named(column, name)}
        made = TableSchema("pandas", kept, [column for column, _ in outputs], names)
        write_schema(self._op.model, made)

    def _boundary(self, inputs: list[ColumnSchema]) -> Iterator[tuple[ColumnSchema, str]]:
        """The columns that the model reads, and what each is called as its input: results of functions, and inputs."""
        known = _processed(self._op.graph)
        read: set[str] = set()
        for node in self._op.graph:
            if node not in known:
                read |= {value.name or "" for value in node.inputs if value is not None}
        read |= {value.name or "" for value in self._op.graph.outputs}
        unique = Unique()
        for column in [*self._op.processed, *inputs]:
            if column.tensor in read or (column.null and column.null in read):
                null = column.null if column.null in read else ""
                yield replace(column, null=null), unique.name(column.name)


def _named(column: ColumnSchema, name: str) -> Iterator[tuple[str, str]]:
    yield column.tensor, name
    if column.null:
        yield column.null, f"{name}.null"


def _processed(graph: ir.Graph) -> set[ir.Node]:
    """Nodes of data processing to which only data processing leads."""
    found: set[ir.Node] = set()
    for node in graph:
        before = {value.producer() for value in node.inputs if value is not None} - {None}
        if (node.name or "").startswith(PREFIX) and before <= found:
            found.add(node)
    return found


def _name(tensor: Tensor | None) -> str:
    return "" if tensor is None else tensor.value.name or ""


def table_of(op: Writer, rows: Any, cells: Mapping[str, Cells], problems: Mapping[str, str]) -> Table:
    """Columns for estimators and functions alike; what no estimator takes is a problem only where one asks for it."""
    tensors: dict[str, Tensor] = {}
    problems = dict(problems)
    for place, label in enumerate(rows.columns):
        name = str(label)
        if name in problems:
            continue
        type = type_of(rows.iloc[:, place])
        if type.meaning:
            problems[name] = f"a {type} is given to an estimator: make numbers of it, in a function before"
        else:
            tensors[name] = _plain(op, cells[name], type)
    return Table(tensors, cells, rows, problems)


def _plain(op: Writer, cells: Cells, type: ColumnType) -> Tensor:
    """As estimators take it: what is null is NaN, or the gap."""
    value, null = cells
    if null is None:
        return value
    if type.is_text:
        return op.Where(null, op.strings(np.asarray([[op.gap]], object)), value)
    return op.where(null, float("nan"), value.cast(op.real))


def applied(op: Writer, model: Any, x: Table) -> Data:
    """What the function of a FunctionTransformer makes of columns."""
    function = partial(model.func, **model.kw_args) if model.kw_args else model.func
    if x.is_series:
        function = _on_series(function, x.names[0])
    rows = x.rows.reset_index(drop=True)
    try:
        made = captured(function, rows, op.model.opset_imports[""])
    except OnwardError as error:
        raise type(error)(f"FunctionTransformer: {error}") from error
    schema = schema_of(made.ir)
    assert schema is not None
    taken = {value.name for value in made.ir.graph.inputs}
    given = {name: array for name, array in feeds(rows, schema).items() if name in taken}
    results = frame_of(prepare(made, "")(given), TableSchema("pandas", schema.inputs, schema.outputs))
    tensors = _spliced(op, made, schema, x)
    cells = {column.name: Cells(tensors[column.tensor], tensors.get(column.null)) for column in schema.outputs}
    for column in schema.outputs:
        value, null = cells[column.name]
        op.processed.append(ColumnSchema(column.name, column.type, _name(value), _name(null), column.own))
    table = table_of(op, _as_wide(results, schema), cells, {})
    return table.chosen(table.names, as_series=True) if schema.is_series else table


def _on_series(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def on_frame(frame: Any) -> Any:
        return function(frame[name])

    return on_frame


def _spliced(op: Writer, made: Model, schema: TableSchema, x: Table) -> dict[str, Tensor]:
    """The outputs of a captured function by name, its nodes now part of the graph."""
    feeds: dict[str, ir.Value] = {}
    for column in schema.inputs:
        cells = x.cells_of(column.name)
        feeds[column.tensor] = cells.value.cast(column.type.dtype).value
        if column.null and cells.null is not None:
            feeds[column.null] = cells.null.value
    names = [value.name or "" for value in made.ir.graph.outputs]
    return {name: op.tensor(value) for name, value in zip(names, appended(op, made.ir, feeds), strict=True)}


def _as_wide(rows: Any, schema: TableSchema) -> Any:
    """The rows in dtypes that can hold what the columns can: a boolean that may be null is an object."""
    wide = [column.name for column in schema.outputs if column.null and column.type.is_bool and not column.type.masked]
    return rows.astype(dict.fromkeys(wide, object)) if wide else rows
