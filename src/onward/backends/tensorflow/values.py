"""Values between numpy and generated TensorFlow code, and a module as a traced function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.narrow import carried


def traced(net: Any, fed: Sequence[ir.Value]) -> Any:
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
    return carried(array, dtype)
