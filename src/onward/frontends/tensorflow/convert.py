"""TensorFlow functions and SavedModels as ONNX models."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.formats.checkpoint import Checkpoint
from onward.formats.graph_def import Names
from onward.formats.saved_model import input_names, records_of
from onward.formats.tensorflow_records import Records, lengths_of
from onward.frontends.opset import brought_to, written_opset
from onward.frontends.tensorflow.dtypes import RESOURCE
from onward.frontends.tensorflow.finish import finished
from onward.frontends.tensorflow.original import runner
from onward.frontends.tensorflow.rules.records import INSTEAD, REFUSED, sparse_of
from onward.frontends.tensorflow.sources import concrete, held, resources
from onward.frontends.tensorflow.translate import ASSIGNMENTS, Translator, dtype_of
from onward.frontends.tensorflow.values import Features, Value, Variable
from onward.gate import trusting
from onward.graph.build import Tensor
from onward.model import Model
from onward.registry import import_files
from onward.runners.calls import Run

RULES = "onward.frontends.tensorflow.rules"
RECORDS = ("ParseSequenceExample", "DecodeProto")
"""Ops that read other records of bytes than those with features alone."""
HINTS = {
    ASSIGNMENTS: "a function that changes variables is for onward.training.from_tensorflow",
    RECORDS: REFUSED,
}
"""By how ops begin that have no rule: what to do instead."""


def converted(
    source: Any,
    signature: str | Sequence[Any] | None,
    inputs: Names | None,
    outputs: Sequence[str] | None,
    checkpoint: str | os.PathLike[str] | None,
    opset: int,
    custom_ops: bool,
    trust: bool,
) -> tuple[Model, Callable[[], Run]]:
    """The model, and what opens the function that it is of, to be run beside it."""
    written_opset(opset)  # before anything of it is loaded
    import_files(RULES)
    saved = None if checkpoint is None else pathlib.Path(checkpoint)
    with trusting(trust):
        function = concrete(source, signature, inputs, outputs, saved)
    values, name = None, "model"
    if isinstance(source, str | os.PathLike):
        name = pathlib.Path(source).stem
    elif saved is not None:
        values = Checkpoint(saved).of(function.graph.variables, source)
    return translated(function, opset, custom_ops, name, values=values), lambda: runner(function, values)


def translated(
    function: Any,
    opset: int,
    custom_ops: bool,
    name: str,
    outputs: Sequence[str] | None = None,
    batched: bool = False,
    values: Mapping[int, Any] | None = None,
    fixed: Container[int] | None = None,
) -> Model:
    """The model of a concrete function, whose outputs may have names of their own.

    If it is `batched`, the first axis of every input is the batch; of a single input it is taken for it anyway. Its
    variables have other values than their own where some are given, by the ids of the variables; those that are `fixed`
    are not trained, whatever TensorFlow says.
    """
    translator = Translator(written_opset(opset), custom_ops)
    translator.model.graph.name = name
    translator.knows_variables = fixed is not None
    written(translator, function, outputs, batched, values, fixed or ())
    return brought_to(opset, finished(translator, Model(translator.model)))


def written(
    translator: Translator,
    function: Any,
    outputs: Sequence[str] | None,
    batched: bool,
    values: Mapping[int, Any] | None = None,
    fixed: Container[int] = (),
) -> None:
    """Write the nodes of a concrete function, its inputs and its outputs."""
    graph = function.graph
    translator.libraries.append(graph)
    captured = resources(function, values, fixed)
    own = len(graph.inputs) - len(captured)
    batched = batched or own == 1
    arguments: list[Value] = []
    records = records_of(function)
    for name, tensor in zip(input_names(function), graph.inputs, strict=False):
        if name in records:
            arguments.append(_features(translator, name, records[name], batched))
            continue
        arguments.append(translator.input(name, dtype_of(tensor), _dims(name, tensor, batched)))
    labels = outputs or output_names(function)
    kept = [translator.op.names.value(label) for label in labels]
    arguments += [translator.op.array(value) if isinstance(value, np.ndarray) else value for value in captured]
    inside = {name: _read(translator, value, graph.get_tensor_by_name(name)) for name, value in held(function).items()}
    missing = translator.missing(graph, graph.outputs)
    if missing and not translator.custom_ops:
        listed = "; ".join(f"{op} ({', '.join(where[:3])}{' …' if len(where) > 3 else ''})" for op, where in missing)
        hint = next((f"; {words}" for start, words in HINTS.items() for op, _ in missing if op.startswith(start)), "")
        raise UnsupportedError(
            f"there is no rule for {len(missing)} op{'s' if len(missing) > 1 else ''}: {listed}{hint}"
        )
    given = [*graph.inputs, *map(graph.get_tensor_by_name, inside)]
    results = translator.run(graph, [*arguments, *inside.values()], graph.outputs, given)
    for label, name, result in zip(labels, kept, results, strict=True):
        if not isinstance(result, Tensor):
            raise UnsupportedError(f"output {label!r} is a {type(result).__name__}, which ONNX does not have")
        if result.value.name != label:
            result = translator.op.Identity(result)
            result.value.name = name
        translator.model.graph.outputs.append(result.value)


def _features(translator: Translator, name: str, records: Records, batched: bool) -> Features:
    """What is in records, as an input each; they are as many of each feature."""
    if records.refused:
        listed = ", ".join(map(repr, records.refused))
        raise UnsupportedError(
            f"the records of its input {name!r} hold features of any length, which ONNX has no input for: {listed};"
            f" {INSTEAD}"
        )
    rows = "batch" if batched else f"{name}_dim0"
    inputs: dict[str, Tensor] = {}
    for one in records.declared:
        assert one.dtype is not None and one.dims is not None
        names = [rows, f"{one.name}_width"]
        dims = [names[axis] if dim is None else dim for axis, dim in enumerate(one.dims)]
        inputs[one.name] = translator.input(one.name, one.dtype, dims)
    sparse = [sparse_of(translator.op, inputs[one.name], inputs[lengths_of(one.name)]) for one in records.sparse]
    parts = [part for kind in zip(*sparse, strict=True) for part in kind]
    return Features([*parts, *(inputs[one.name] for one in records.features)])


def _read(translator: Translator, value: Value, tensor: Any) -> Value:
    """A reference to a variable, as TensorFlow 1 has them, is what it holds."""
    is_handle = tensor.dtype.as_datatype_enum == RESOURCE
    return translator.weight(value) if isinstance(value, Variable) and not is_handle else value


def output_names(function: Any) -> list[str]:
    """The keys of a dict, or `output_0` and so on."""
    import tensorflow as tf

    structured = function.structured_outputs
    if isinstance(structured, Mapping):
        keys = [(key, tf.nest.flatten(structured[key])) for key in sorted(structured)]
        if all(len(values) == 1 for _, values in keys):
            return [key for key, _ in keys]
    return [f"output_{i}" for i in range(len(function.graph.outputs))]


def _dims(name: str, tensor: Any, batched: bool) -> list[int | str | None] | None:
    """Dimensions; those that are not known have names of their own, but for the batch, if the first is known as one."""
    if tensor.shape.rank is None:
        return None
    return [
        d if d is not None else "batch" if i == 0 and batched else f"{name}_dim{i}"
        for i, d in enumerate(tensor.shape.as_list())
    ]
