"""Ops of TensorFlow inside a model of TensorFlow Lite, each a node of TensorFlow in the options of an op `Flex…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onward.errors import InvalidModelError, UnsupportedError
from onward.formats.tflite import flex_node
from onward.frontends.tensorflow.values import Value
from onward.frontends.tflite.read import dtype_of
from onward.graph.build import Tensor

if TYPE_CHECKING:
    from onward.frontends.tflite.translate import Call

PREFIX = "CUSTOM Flex"
NO_TENSORS = {13: "resource", 14: "variant"}
"""How TensorFlow calls what is no tensor, by the number in the schema of TensorFlow Lite."""


def is_flex(op_type: str) -> bool:
    return op_type.startswith(PREFIX)


def written(call: Call, values: Sequence[Value | None]) -> list[Value]:
    """What the rule of the TensorFlow op writes, which is given a graph that has this op alone."""
    import tensorflow as tf

    taken = [value for value in values if value is not None]
    if len(taken) < len(values):
        raise UnsupportedError("an op of TensorFlow lacks one of its inputs")
    node = flex_node(call.custom)
    with tf.Graph().as_default() as graph:
        definition = graph.as_graph_def()
        given = {f"given{i}": _placeholder(*pair) for i, pair in enumerate(zip(call.inputs, taken, strict=True))}
        node.name = "node"
        node.ClearField("input")
        node.input.extend(given)
        definition.node.append(node)
        try:
            (operation,) = tf.import_graph_def(definition, given, [node.name], name="")
        except ValueError as error:
            raise InvalidModelError(f"TensorFlow does not take its {node.op}: {error}") from error
    return call.graph.translator.run(graph, taken, operation.outputs, list(given.values()))


def _placeholder(tensor: Any, value: Value) -> Any:
    import tensorflow as tf

    dtype = NO_TENSORS[tensor.type] if tensor.type in NO_TENSORS else dtype_of(tensor).numpy()
    sizes = value.dims if isinstance(value, Tensor) else None
    shape = None if sizes is None else [size if isinstance(size, int) else None for size in sizes]
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), shape)
