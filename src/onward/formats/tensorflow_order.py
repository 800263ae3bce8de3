"""The order of results where a function of TensorFlow leaves it open, as `runners.settled` has it for ONNX models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

OPEN = ("TopK", "TopKV2")
RENAMED = "_settled"
"""Added to the names of functions that are called: others of the same name are known to TensorFlow already."""


class Settled:
    """A concrete function in which `top_k` sorts where it need not: it is one of the orders that TensorFlow allows."""

    def __init__(self, function: Any, definition: Any) -> None:
        import tensorflow as tf

        graph = function.graph
        self._function = function

        def built(*arguments: Any) -> Any:
            given = {tensor.name: argument for tensor, argument in zip(graph.inputs, arguments, strict=True)}
            names = [tensor.name for tensor in graph.outputs]
            return tf.graph_util.import_graph_def(definition, input_map=given, return_elements=names, name="")

        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in graph.inputs]
        self._built = tf.compat.v1.wrap_function(built, specs)

    def __call__(self, inputs: Sequence[Any]) -> Any:
        """What the function gives for inputs in the order of its graph, in the same structure."""
        import tensorflow as tf

        flat = self._built(*inputs, *self._function.captured_inputs)
        return tf.nest.pack_sequence_as(self._function.structured_outputs, flat, expand_composites=True)


def settled(function: Any) -> Settled | None:
    """None where no order is open, or the graph is too large to be looked into."""
    try:
        definition = function.graph.as_graph_def()
    except ValueError:  # it has more than 2 GB
        return None
    called = definition.library.function
    open_orders = [node for node in _nodes(definition) if node.op in OPEN and not node.attr["sorted"].b]
    if not open_orders:
        return None
    for node in open_orders:
        node.attr["sorted"].b = True
    names = {one.signature.name for one in called}
    for one in called:
        one.signature.name += RENAMED
    for node in _nodes(definition):
        for attribute in node.attr.values():
            for use in (attribute.func, *attribute.list.func):
                if use.name in names:
                    use.name += RENAMED
    return Settled(function, definition)


def _nodes(definition: Any) -> Iterable[Any]:
    yield from definition.node
    for one in definition.library.function:
        yield from one.node_def
