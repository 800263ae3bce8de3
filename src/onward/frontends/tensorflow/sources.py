"""What can be converted: each kind of source as a concrete function, and what that function captures."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from onward.backends.tensorflow.remarks import without_remarks
from onward.errors import OnwardError
from onward.formats import graph_def, saved_model
from onward.formats.tensorflow_ops import reached
from onward.formats.tensorflow_records import CALLS, HANDING_ON
from onward.frontends.tensorflow.values import Table, Value, Variable

TABLES = {"HashTableV2", "MutableHashTableV2", "MutableDenseHashTableV2"}


def concrete(
    source: Any,
    signature: str | Sequence[Any] | None = None,
    inputs: graph_def.Names | None = None,
    outputs: Sequence[str] | None = None,
    checkpoint: pathlib.Path | None = None,
) -> Any:
    """The concrete function that a source is, or has under the name of a signature or between tensors of a graph."""
    tf = saved_model.import_tensorflow()
    if isinstance(source, str | os.PathLike):
        return _of_file(pathlib.Path(source), signature, inputs, outputs, checkpoint)
    if inputs or outputs:
        raise OnwardError("names of inputs and outputs are for the graph in a .pb file: leave them out")
    if hasattr(source, "structured_input_signature"):
        return source
    if not callable(source):
        raise OnwardError(f"{type(source).__name__} is neither a function nor the path of a SavedModel or a graph")
    function = next((f for f in (source, source.__call__) if hasattr(f, "get_concrete_function")), tf.function(source))
    if isinstance(signature, str):
        raise OnwardError(f"a function has no signature {signature!r}: give the tf.TensorSpec of each argument")
    if signature is None and getattr(function, "input_signature", None) is None:
        raise OnwardError(
            "the function does not say what it takes: give `signature=`, a tf.TensorSpec for each argument"
        )
    return function.get_concrete_function(*(signature or ()))


def _of_file(
    path: pathlib.Path,
    signature: Any,
    inputs: graph_def.Names | None,
    outputs: Sequence[str] | None,
    checkpoint: pathlib.Path | None,
) -> Any:
    if graph_def.recognise(path):
        if signature is not None:
            raise OnwardError(f"{path} is a graph, which has no signatures: name its inputs and outputs")
        return graph_def.graph_function(path, inputs, outputs, checkpoint)
    if not saved_model.recognise(path):
        raise OnwardError(f"{path} is not a SavedModel, which has a saved_model.pb, nor a graph of TensorFlow 1")
    if inputs or outputs or checkpoint:
        raise OnwardError(
            f"{path} is a SavedModel, which has its variables, and its inputs and outputs by `signature=`"
        )
    return saved_model.signature_of(path, signature)


def held(function: Any) -> dict[str, Value]:
    """Variables and tables that TensorFlow 1 keeps in the graph itself, by the names of their tensors."""
    model: Any = getattr(function, "_onward_keeps", None)
    if not hasattr(model, "prune"):
        return {}
    tables = _tables(function.graph)
    operations = function.graph.get_operations()
    kept = [op.outputs[0].name for op in operations if op.type in graph_def.VARIABLES or op.name in tables]
    if not kept:
        return {}
    with model.graph.as_default(), without_remarks():
        read = {name: _read(model.graph.get_tensor_by_name(name), tables) for name in kept}
        values = model.prune([], read)
    trained = {variable.name for variable in model.graph.get_collection("trainable_variables")}
    found: dict[str, Value] = {}
    for name, value in values().items():
        is_table = function.graph.get_tensor_by_name(name).op.name in tables
        found[name] = Table(value) if is_table else Variable(name.split(":")[0], value.numpy(), name in trained)
    return found


def _tables(graph: Any) -> set[str]:
    """The operations that give a table: those that make one, and calls of functions that do nothing else."""
    library = {function.signature.name: function for function in graph.as_graph_def().library.function}
    found = set()
    for operation in graph.get_operations():
        if operation.type in TABLES:
            found.add(operation.name)
        elif operation.type in CALLS and not operation.inputs and len(operation.outputs) == 1:
            inside = {node.op for node in reached([operation.node_def], library)} - {*CALLS, *HANDING_ON, "NoOp"}
            if inside and inside <= TABLES:
                found.add(operation.name)
    return found


def _read(tensor: Any, tables: Container[str]) -> Any:
    """The handle of a table, what a variable holds."""
    import tensorflow as tf

    if tensor.op.name in tables:
        return tensor
    if tensor.dtype == tf.resource:
        return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=tensor.op.get_attr("dtype"))
    return tf.identity(tensor)


def _held_by(handle: Any) -> Sequence[Any]:
    """Shape and dtype of what a variable holds of which only the handle is known; nothing for a table."""
    data = getattr(handle, "_handle_data", None)
    return data.shape_and_type if data is not None and data.is_set else ()


def resources(function: Any, values: Mapping[int, Any] | None = None, fixed: Container[int] = ()) -> list[Any]:
    """What a concrete function captures, in the order of its last inputs: variables, tables, constants.

    Variables have other values than their own where some are given, by the ids of the variables; the `fixed` ones are
    not trained.
    """
    import tensorflow as tf

    handles = {id(variable.handle): variable for variable in function.graph.variables}
    found: list[Any] = []
    inputs = function.graph.inputs[len(function.graph.inputs) - len(function.captured_inputs) :]
    for captured, tensor in zip(function.captured_inputs, inputs, strict=True):
        variable = handles.get(id(captured))
        if variable is not None:
            array = values[id(variable)] if values is not None else variable.numpy()
            name = variable.name.split(":")[0]
            trained = bool(variable.trainable) and id(variable) not in fixed
            found.append(Variable(name, array, trained, handle=captured))
        elif captured.dtype == tf.resource and (kinds := _held_by(captured)):
            array = tf.raw_ops.ReadVariableOp(resource=captured, dtype=kinds[0].dtype).numpy()
            found.append(Variable(tensor.op.name, array, trainable=False, handle=captured))
        elif captured.dtype == tf.resource:
            found.append(Table(captured))
        else:
            array = captured.numpy()
            found.append(np.asarray(array, object) if captured.dtype == tf.string else np.asarray(array))
    return found
