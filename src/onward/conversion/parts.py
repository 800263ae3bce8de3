"""Which part of a file with data processing and a model behind it is converted: `--part model|data|all`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onward.advice.options import option
from onward.conversion.request import Request
from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.conversion.sources import Original
    from onward.formats.dataframe.schema import TableSchema
    from onward.model import Model

PARTS = ("all", "model", "data")
STEP = re.compile(r"^step \d of \d: [a-z ]+: ")
"""Which step it was, at the beginning of a message."""
LONGEST = 200
"""Characters of why a backend does not take the data processing."""


def _schema(model: Model) -> TableSchema | None:
    from onward.formats.dataframe.schema import schema_of

    return schema_of(model.ir)


def check_part(part: str | None) -> None:
    if part is not None and part not in PARTS:
        raise OnwardError(f"{option('part')}: there is no part {part!r}; there are {', '.join(PARTS)}")


def chosen(original: Original, request: Request) -> Original:
    """The part that is asked for; all of it if none is."""
    part = request.part
    if part in (None, "all"):
        return original
    schema = _schema(original.model)
    if schema is not None and not schema.boundary and part == "data":
        return original
    if schema is None or not schema.boundary:
        has = "is data processing alone" if schema is not None else "has no data processing"
        raise OnwardError(f"{request.name}: {option('part', part)} cannot be taken of it: it {has}")
    data, model = _halves(original.model)
    if part == "data":
        return replace(original, model=data, run=None, check=None)
    return _model_alone(original, data, model, ())


def model_alone(original: Original, request: Request, error: OnwardError) -> Original | None:
    """The model without its data processing, which a backend does not take; None where all of it is asked for."""
    schema = _schema(original.model)
    if schema is None or not schema.boundary or request.part == "all":
        return None
    data, model = _halves(original.model)
    names = ", ".join(value.name or "" for value in model.ir.graph.inputs)
    reason = STEP.sub("", str(error))
    reason = reason if len(reason) <= LONGEST else f"{reason[:LONGEST]}…"
    words = (
        f"the model alone: its data processing is left out, as {request.to} does not take it ({reason})",
        f"it takes {names}: {option('part', 'data')} {option('to', 'onnx')} writes what computes them",
    )
    return _model_alone(original, data, model, words)


def is_data_alone(model: Model) -> bool:
    """Whether a model is data processing and nothing else, so that there is nothing to train."""
    schema = _schema(model)
    return schema is not None and not schema.boundary


def with_masks(model: Model) -> Model:
    """The same with masks of nulls that have to be given: frameworks have no inputs with a default.

    Left to their defaults they would be constants, and whatever is missing would be taken for empty.
    """
    schema = _schema(model)
    nulls = {column.null: column.tensor for column in schema.inputs if column.null} if schema is not None else {}
    if not nulls:
        return model
    from onward.model import load

    model = load(model.to_proto())
    graph = model.ir.graph
    shapes = {value.name: value.shape for value in graph.inputs}
    for value in graph.inputs:
        if value.name in nulls and value.name in graph.initializers:
            graph.initializers.pop(value.name)
            value.const_value = None
            value.shape = shapes.get(nulls[value.name], value.shape)
    return model


def _halves(model: Model) -> tuple[Model, Model]:
    from onward.dataframes import split

    return split(model)


def _model_alone(original: Original, data: Model, model: Model, words: tuple[str, ...]) -> Original:
    inputs = None if original.inputs is None else _processed(original.model, data, original.inputs)
    return replace(original, model=model, run=None, check=None, inputs=inputs, remarks=(*original.remarks, *words))


def _processed(whole: Model, data: Model, inputs: Any) -> dict[str, Any]:
    """What the data processing makes of inputs, by the names of the model's own."""
    from onward.runners.onnxruntime import prepare

    schema, own = _schema(whole), _schema(data)
    assert schema is not None and own is not None
    pairs = zip(schema.outputs, own.outputs, strict=True)
    called = {old: new for a, b in pairs for old, new in ((a.tensor, b.tensor), (a.null, b.null))}
    taken = {value.name for value in data.ir.graph.inputs}
    found = prepare(data, "")({name: array for name, array in inputs.items() if name in taken})
    return {name: found[called.get(tensor, tensor)] for tensor, name in schema.boundary.items()}
