"""Runs a model as generated TensorFlow source."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import RunFailure
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.narrow import dtype_of
from onward.runners.runner import Runner, register

MODES = {
    "function": "through tf.function, with unknown dimensions left open",
    "savedmodel": "as a SavedModel, written and opened again",
    "tflite": "as a TensorFlow Lite file, written and opened again",
}


def prepare(model: Model, mode: str) -> Run:
    from onward.backends.tensorflow.convert import generate
    from onward.backends.tensorflow.load import run

    if mode in ("savedmodel", "tflite"):
        return written(model, mode)
    return runner_of(run(generate(model)), model.ir.graph, traced=mode == "function")


def written(model: Model, mode: str) -> Run:
    """Runs what is written for a model, under the names and in the dtypes of the ONNX file."""
    from onward.backends.tensorflow.convert import generate
    from onward.backends.tensorflow.saved_model import write_saved_model
    from onward.backends.tensorflow.tflite import generate_for_tflite, write_tflite
    from onward.formats import open_artifact

    graph = model.ir.graph
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        if mode == "tflite":
            write_tflite(generate_for_tflite(model), graph, path)
        else:
            write_saved_model(generate(model), graph, path)
        opened = open_artifact(path)
    outputs = [(value.name or "", dtype_of(value)) for value in graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        found = opened.run(inputs)
        return {name: _carried(found[name], dtype) for name, dtype in outputs}

    return run


def _carried(array: Any, dtype: np.dtype[Any] | None) -> Any:
    """An output in the dtype of the file, of which it may be carried by another."""
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def runner_of(net: Any, graph: ir.Graph, traced: bool = False) -> Run:
    """Runs a generated module on numpy inputs by name."""
    from onward.backends.tensorflow.target import DTYPES

    fed = [value for value in graph.inputs if not value.is_initializer()]
    outputs = [(value.name or "", dtype_of(value)) for value in graph.outputs]
    if traced:
        net = _traced(net, fed)

    def run(inputs: Inputs) -> Outputs:
        if replaced := inputs.keys() - {value.name for value in fed}:
            raise RunFailure(f"the input {min(replaced)!r} has a default, which the generated module keeps as a weight")
        found = net(*(to_tensor(inputs.get(value.name or ""), DTYPES.get(value.dtype)) for value in fed))  # type: ignore[arg-type]
        values = found if len(outputs) > 1 else (found,)
        return {name: from_tensor(value, dtype) for (name, dtype), value in zip(outputs, values, strict=True)}

    return run


def _traced(net: Any, fed: Sequence[ir.Value]) -> Any:
    """A function that is traced for the types of the inputs: tensors as the file says, dimensions of others open."""
    import tensorflow as tf

    from onward.backends.tensorflow.saved_model import signature_of

    function = tf.function(lambda *inputs: net(*inputs), autograph=False)

    def open_dims(tensor: Any) -> Any:
        return None if tensor is None else tf.TensorSpec([None] * len(tensor.shape), tensor.dtype)

    def run(*arguments: Any) -> Any:
        specs = [
            signature_of(value) if isinstance(value.type, ir.TensorType) else tf.nest.map_structure(open_dims, given)
            for value, given in zip(fed, arguments, strict=True)
        ]
        return function.get_concrete_function(*specs)(*arguments)

    return run


def to_tensor(value: Any, dtype: str | None) -> Any:
    """Numpy arrays as tensors; sequences and optionals element by element."""
    import tensorflow as tf

    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [to_tensor(item, dtype) for item in value]
    if isinstance(value, dict):
        return {key: v if isinstance(v, str | int | float) else to_tensor(v, None) for key, v in value.items()}
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return tf.constant(array.tolist(), tf.string, shape=array.shape)
    kind = None if dtype in (None, "string") else getattr(tf, dtype)
    return tf.constant(array if kind is None else array.astype(kind.as_numpy_dtype))


def from_tensor(value: Any, dtype: np.dtype[Any] | None) -> Any:
    """The inverse of `to_tensor`."""
    import tensorflow as tf

    if isinstance(value, list | tuple):
        return [from_tensor(item, dtype) for item in value]
    if isinstance(value, dict):
        return {key: from_tensor(item, None) for key, item in value.items()}
    if isinstance(value, tf.experimental.Optional):
        return from_tensor(value.get_value(), dtype) if value.has_value() else None
    if isinstance(value, tf.RaggedTensor | tf.experimental.ExtensionType):
        return [from_tensor(item, dtype) for item in value]
    if not tf.is_tensor(value):
        return value
    array = np.asarray(value.numpy())
    if value.dtype == tf.string:
        flat = [text.decode() for text in array.reshape(-1).tolist()]
        return np.array(flat, object).reshape(array.shape)
    return _carried(array, dtype)


register(
    Runner(
        "tensorflow",
        "TensorFlow, as generated source",
        "tensorflow",
        prepare,
        MODES,
    )
)
