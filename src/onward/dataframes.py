"""Models that take data frames: run on frames, joined with the model that follows, and taken apart again."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.editing.levelled import levelled
from onward.editing.merge import behind
from onward.errors import InvalidDataError, OnwardError, RunFailure
from onward.formats.dataframe.schema import PREFIX, ColumnSchema, TableSchema, schema_of, write_schema
from onward.formats.tables import feeds as plain_feeds
from onward.graph.build import Builder
from onward.graph.unused import remove_unused
from onward.hub.wording import quote
from onward.model import Model, load
from onward.runners.libraries import register_libraries

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Ready:
    """What a model needs to run, made once."""

    session: Any
    schema: TableSchema | None
    inputs: frozenset[str]
    outputs: Sequence[str]


_READY: weakref.WeakKeyDictionary[Model, _Ready] = weakref.WeakKeyDictionary()


def run(model: Model | str | os.PathLike[str], frame: Any) -> Any:
    """What a model gives for a frame of pandas, Polars or narwhals, as a frame of the same library.

    It runs on ONNX Runtime. Columns that the model does not take are passed over. Of a model that follows the data
    processing, each output is a column, or several where it has several numbers for a row.

    >>> import onward, pandas
    >>> def features(df):
    ...     return df.assign(debt=df.loan / df.income)
    >>> rows = pandas.DataFrame({"loan": [10.0, 20.0], "income": [5.0, 8.0]})
    >>> onward.run(onward.from_dataframe(features, rows), rows).debt.tolist()
    [2.0, 2.5]
    """
    model = load(model)
    wrap = None
    if hasattr(frame, "to_native"):
        wrap, frame = type(frame), frame.to_native()
    if hasattr(frame, "collect") and not hasattr(frame, "iloc"):
        frame = frame.collect()
    result = _run(model, frame)
    if wrap is None:
        return result
    import narwhals

    return narwhals.from_native(result, allow_series=True)


def _run(model: Model, frame: Any) -> Any:
    is_polars = not hasattr(frame, "iloc")
    library: Any
    if is_polars:
        from onward.formats.dataframe import polars as library
    else:
        from onward.formats.dataframe import pandas as library
    ready = _ready(model)
    schema = ready.schema
    given = plain_feeds(frame) if schema is None else library.feeds(frame, schema)
    outputs = _outputs(ready, {name: array for name, array in given.items() if name in ready.inputs})
    if schema is not None and not schema.boundary:
        return library.frame_of(outputs, schema)
    columns = _as_columns(outputs)
    if is_polars:
        import polars

        return polars.DataFrame({name: array.tolist() for name, array in columns.items()})
    import pandas

    return pandas.DataFrame(columns)


def _as_columns(outputs: Mapping[str, Array]) -> dict[str, Array]:
    made: dict[str, Array] = {}
    for name, array in outputs.items():
        flat = array.reshape(len(array), math.prod(array.shape[1:]))
        if flat.shape[1] == 1:
            made[name] = flat[:, 0]
        else:
            made |= {f"{name}_{i}": flat[:, i] for i in range(flat.shape[1])}
    return made


def _ready(model: Model) -> _Ready:
    ready = _READY.get(model)
    if ready is None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.force_spinning_stop", "1")  # what follows in Python needs the cores
        register_libraries(options, model.ir)
        session = onnxruntime.InferenceSession(model.to_proto().SerializeToString(), options)
        names = frozenset(value.name or "" for value in model.ir.graph.inputs)
        ready = _Ready(session, schema_of(model.ir), names, [output.name for output in session.get_outputs()])
        _READY[model] = ready
    return ready


def _outputs(ready: _Ready, given: Mapping[str, Array]) -> dict[str, Array]:
    try:
        results = ready.session.run(ready.outputs, dict(given))
    except Exception as error:
        raise RunFailure(_reason(str(error))) from error
    return dict(zip(ready.outputs, results, strict=True))


def _reason(message: str) -> str:
    """What the name of the failing node says, where it is one that fails on purpose; else the whole message."""
    start, colon = message.find(f"Name:'{PREFIX}"), ": Gather"
    if start >= 0 and colon in message[start:]:
        return message[start + len(f"Name:'{PREFIX}") :].split(colon)[0]
    return f"ONNX Runtime could not run the model: {message}"


def pipeline(prep: Model | str | os.PathLike[str], model: Model | str | os.PathLike[str]) -> Model:
    """One model of data processing and the model that follows it: raw columns in, predictions out.

    Inputs of the model are fed by the columns of the same name, or, where it takes one array, by all columns side by
    side, in their order. The one of the older opset is upgraded.

    >>> import onward, pandas
    >>> from sklearn.linear_model import LinearRegression
    >>> def features(df):
    ...     return pandas.DataFrame({"debt": df.loan / df.income})
    >>> rows = pandas.DataFrame({"loan": [10.0, 20.0], "income": [5.0, 8.0]})
    >>> fitted = LinearRegression().fit(features(rows), [1.0, 2.0])
    >>> prep = onward.from_dataframe(features, rows)
    >>> both = onward.pipeline(prep, onward.from_sklearn(fitted, features(rows)))
    >>> onward.run(both, rows).predict.round(6).tolist()
    [1.0, 2.0]
    """
    first, second = load(prep), load(model)
    schema = schema_of(first.ir)
    if schema is None or schema.boundary:
        raise OnwardError("the first of the two is no data processing by itself: make it with onward.from_dataframe")
    first, second = levelled(first, second)
    op = Builder(first.ir)
    op.scope = PREFIX
    graph = first.ir.graph
    values = {value.name or "": value for value in graph.outputs}
    boundary = _joined(op, schema, second.ir)
    fed = {value: boundary[value.name or ""] for value in second.ir.graph.inputs if value.name in boundary}
    graph.outputs.extend(behind(op, first, second, fed))
    _remove_unused_but(first.ir, [values[c.null] for c in schema.outputs if c.null and values[c.tensor].uses()])
    inputs = _without_unread(graph, schema.inputs)
    known = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    outputs = [
        replace(column, null=column.null if column.null in known else "")
        for column in schema.outputs
        if column.tensor in known
    ]
    names = {tensor.name or "": name for name, tensor in boundary.items()}
    write_schema(first.ir, TableSchema(schema.library, inputs, outputs, names))
    return first


def _remove_unused_but(model: ir.Model, masks: Sequence[ir.Value]) -> None:
    """Leave out what nothing reads, but for masks of columns that the model takes: `split` gives them out again."""
    predictions = list(model.graph.outputs)
    model.graph.outputs.extend(masks)
    remove_unused(model)
    model.graph.outputs[:] = predictions


def _without_unread(graph: ir.Graph, columns: Sequence[ColumnSchema]) -> list[ColumnSchema]:
    """The columns that are left where those are left out of which nothing is read; one stays, to count the rows by."""
    outputs = set(graph.outputs)
    read = {value.name for value in graph.inputs if value.uses() or value in outputs}
    kept = [column for column in columns if column.tensor in read or column.null in read] or list(columns[:1])
    wanted = read | {column.tensor for column in kept}
    for value in list(graph.inputs):
        if value.name not in wanted:
            graph.inputs.remove(value)
            graph.initializers.pop(value.name or "", None)
    return kept


def _joined(op: Builder, schema: TableSchema, model: ir.Model) -> dict[str, ir.Value]:
    """By input of the model, the value that feeds it; the outputs of the data processing are none any more."""
    graph = op.graph
    values = {value.name: value for value in graph.outputs}
    columns = {column.name: column for column in schema.outputs}
    given = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    graph.outputs.clear()
    made: dict[str, ir.Value] = {}
    if len(given) == 1 and (given[0].name not in columns or not _is_column(given[0])):
        made[given[0].name or ""] = _side_by_side(op, schema, values, given[0])
        return made
    for value in given:
        if value.name in columns and not _is_column(value):
            raise OnwardError(
                f"the model takes {quote(value.name or '')} of shape {value.shape}, where the data processing gives a"
                " column of shape (rows, 1)"
            )
        if value.name not in columns:
            raise OnwardError(
                f"the model takes {quote(value.name or '')}, which the data processing does not give; "
                f"it gives {', '.join(map(quote, columns))}"
            )
        made[value.name or ""] = _fed(op, columns[value.name], values, value.dtype)
    return made


def _is_column(value: ir.Value) -> bool:
    """Whether an input can be a single column: (rows, 1)."""
    return value.shape is not None and value.shape.rank() == 2 and value.shape[1] == 1


def _fed(op: Builder, column: ColumnSchema, values: Mapping[str | None, ir.Value], dtype: Any) -> ir.Value:
    tensor = op.tensor(values[column.tensor])
    if (tensor.dtype == ir.DataType.STRING) != (dtype == ir.DataType.STRING):
        raise OnwardError(f"column {quote(column.name)} is of {column.type}, and the model takes {dtype.name.lower()}")
    if column.type.meaning:
        raise OnwardError(f"column {quote(column.name)} is a {column.type}, which no model takes: make numbers of it")
    if column.null and not column.type.is_text:
        raise OnwardError(f"column {quote(column.name)} may be null, which the model has no input for: use fillna")
    return tensor.cast(dtype).value


def _side_by_side(
    op: Builder, schema: TableSchema, values: Mapping[str | None, ir.Value], target: ir.Value
) -> ir.Value:
    shape = target.shape
    width = None if shape is None or shape.rank() != 2 else shape[1]
    if shape is None or shape.rank() != 2 or (isinstance(width, int) and width != len(schema.outputs)):
        raise OnwardError(
            f"the model takes {quote(target.name or '')} of shape {shape}, and the data processing gives "
            f"{len(schema.outputs)} columns"
        )
    parts = [_fed(op, column, values, target.dtype) for column in schema.outputs]
    return op.Concat(*parts, axis=1).value


def split(both: Model | str | os.PathLike[str]) -> tuple[Model, Model]:
    """The data processing and the model behind it, of a file that has both: the reverse of `onward.pipeline`.

    >>> import onward, pandas
    >>> from sklearn.linear_model import LinearRegression
    >>> def features(df):
    ...     return pandas.DataFrame({"debt": df.loan / df.income})
    >>> rows = pandas.DataFrame({"loan": [10.0, 20.0], "income": [5.0, 8.0]})
    >>> fitted = LinearRegression().fit(features(rows), [1.0, 2.0])
    >>> prep = onward.from_dataframe(features, rows)
    >>> both = onward.pipeline(prep, onward.from_sklearn(fitted, features(rows)))
    >>> data, model = onward.split(both)
    >>> [value.name for value in model.ir.graph.inputs]
    ['debt']
    """
    source = load(both)
    schema = schema_of(source.ir)
    if schema is None or not schema.boundary:
        raise OnwardError("the model has no data processing with a model behind it, so there is nothing to split")
    data, model = load(source.to_proto()), load(source.to_proto())
    made = _end_at(data.ir, [tensor for column in schema.outputs for tensor in (column.tensor, column.null) if tensor])
    outputs = [replace(column, tensor=made[column.tensor], null=made.get(column.null, "")) for column in schema.outputs]
    inputs = _without_unread(data.ir.graph, schema.inputs)
    write_schema(data.ir, TableSchema(schema.library, inputs, outputs))
    _begin_at(model.ir, schema.boundary)
    model.ir.metadata_props.pop("onward.data_processing", None)
    return data, model


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    found = {value.name or "": value for value in graph.inputs}
    return found | {value.name or "": value for node in graph for value in node.outputs}


def _end_at(model: ir.Model, tensors: list[str]) -> dict[str, str]:
    """Make these tensors the outputs; by name, what each is called now: an input that is given out has another name."""
    values = _values(model.graph)
    missing = [name for name in tensors if name not in values]
    if missing:
        raise InvalidDataError(
            f"the data processing no longer has {quote(missing[0])}: it was changed since it was made"
        )
    model.graph.outputs.clear()
    taken = {value.name for value in model.graph.inputs}
    op = Builder(model)
    op.scope = PREFIX
    made: dict[str, str] = {}
    for name in tensors:
        value = values[name]
        if name in taken:
            value = op.Identity(op.tensor(value)).value
            value.name = op.names.value(f"{name}.out")
        made[name] = value.name or ""
        model.graph.outputs.append(value)
    _cleaned(model)
    return made


def _begin_at(model: ir.Model, boundary: Mapping[str, str]) -> None:
    graph = model.graph
    values = _values(graph)
    fresh = []
    for tensor, name in boundary.items():
        if tensor not in values:
            raise InvalidDataError(f"the boundary {quote(tensor)} is no longer in the model: it was changed since")
        old = values[tensor]
        new = ir.Value(name=name, type=old.type, shape=old.shape)
        old.replace_all_uses_with(new)
        fresh.append(new)
    known = {value.name for value in fresh}
    graph.inputs.extend(fresh)
    for node in graph:
        for value in node.outputs:
            if value.name in known:
                value.name = f"{value.name}/inner"
    _cleaned(model, keep={id(value) for value in fresh})


def _cleaned(model: ir.Model, keep: set[int] | None = None) -> None:
    remove_unused(model)
    passes.RemoveUnusedOpsetsPass()(model)
    outputs = {id(value) for value in model.graph.outputs}
    for value in list(model.graph.inputs):
        if keep is not None and id(value) not in keep and not value.uses() and id(value) not in outputs:
            model.graph.inputs.remove(value)
            model.graph.initializers.pop(value.name or "", None)
