"""Weights that are stored in 16 bits, whoever reads them: nodes that compute in 32 bits read them behind a Cast."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
import onnx_ir as ir

from onward.bits.candidates import SHAPES, may_be_rounded
from onward.graph.names import Names
from onward.graph.replace import constant
from onward.graph.trained import inherit
from onward.graph.walk import all_graphs
from onward.verification.metrics import Array, epsilon, rms

WORTH = 128
"""From so many numbers on, what is saved is more than what a Cast takes."""

Reads = Collection[tuple[ir.Node, int]]
"""Inputs of nodes, by their places."""


class Storage:
    """Stores weights in 16 bits; each is rounded only once, in however many copies of a model it is."""

    def __init__(self, half: ir.DataType) -> None:
        self._half = half
        self._rounded: dict[int, tuple[ir.TensorProtocol, Array]] = {}
        """By the `id` of the tensor, which is held so that no other one gets it."""
        self._fitting: dict[int, bool] = {}

    def store(self, model: ir.Model, narrow: Reads, is_whole: Callable[[ir.Node], bool]) -> None:
        """Store what only `narrow` reads, and all large weights but those that a whole node reads, in place.

        A Cast gives them back in 32 bits, also to those who could take 16. Weights of bodies move out of them, where
        they are cast once and not in each step.
        """
        names = Names(model)
        for graph in all_graphs(model.graph):
            for value, tensor in list(_floats(graph)):
                uses = [(use.node, use.idx) for use in value.uses() if use.node.op_type not in SHAPES]
                others = [use for use in uses if use not in narrow]
                if value.uses() and (not others or self._may_store(tensor, others, is_whole)):
                    self._put(model, graph, value, tensor, names)

    def _may_store(
        self, tensor: ir.TensorProtocol, others: list[tuple[ir.Node, int]], is_whole: Callable[[ir.Node], bool]
    ) -> bool:
        if tensor.size < WORTH or any(is_whole(node) or not may_be_rounded(node, place) for node, place in others):
            return False
        if id(tensor) not in self._fitting:
            self._fitting[id(tensor)] = self._fits(tensor)
        return self._fitting[id(tensor)]

    def _fits(self, tensor: ir.TensorProtocol) -> bool:
        """Whether its numbers are what they were, but for rounding: none too large for 16 bits, and few too small."""
        rounded, exact = self._array(tensor), tensor.numpy()
        if not np.array_equal(np.isfinite(rounded), np.isfinite(exact)):
            return False
        with np.errstate(invalid="ignore"):
            off = np.nan_to_num(rounded.astype(np.float32) - exact, posinf=0.0, neginf=0.0)
        return rms(off) <= epsilon(self._half.numpy()) * rms(exact)

    def _array(self, tensor: ir.TensorProtocol) -> Array:
        if id(tensor) not in self._rounded:
            with np.errstate(all="ignore"):
                self._rounded[id(tensor)] = tensor, tensor.numpy().astype(self._half.numpy())
        return self._rounded[id(tensor)][1]

    def _put(self, model: ir.Model, graph: ir.Graph, value: ir.Value, tensor: ir.TensorProtocol, names: Names) -> None:
        array, name = self._array(tensor), value.name or ""
        wide = ir.Value(
            name=names.value(f"{name}_float32"), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(array.shape)
        )
        value.replace_all_uses_with(wide)
        producer = value.producer()
        if producer is None:
            graph.initializers.pop(name)
        else:
            graph.remove(producer, safe=True)
            value.name = None
        own = name if graph is model.graph else names.value(f"{name}_{self._half.name.lower()}")
        made = ir.Value(name=own, type=ir.TensorType(self._half), shape=ir.Shape(array.shape))
        made.const_value = ir.tensor(array, name=own)
        made.metadata_props.update(value.metadata_props)
        inherit(made, value)
        model.graph.register_initializer(made)
        cast = ir.Node("", "Cast", [made], [ir.AttrInt64("to", int(ir.DataType.FLOAT))], outputs=[wide])
        cast.name = names.node(f"{own}_float32")
        if len(model.graph):
            model.graph.insert_before(model.graph[0], cast)
        else:
            model.graph.append(cast)


def reading(model: ir.Model) -> Iterator[ir.Node]:
    """The nodes that read constants of 32 bits, those of bodies too."""
    for graph in all_graphs(model.graph):
        for value, tensor in _floats(graph):
            if tensor.size >= WORTH:
                yield from (use.node for use in value.uses() if use.node.op_type not in SHAPES)


def _floats(graph: ir.Graph) -> Iterator[tuple[ir.Value, ir.TensorProtocol]]:
    """The constants of 32 bits, but for those that a graph gives out."""
    found = [*graph.initializers.values(), *(node.outputs[0] for node in graph if node.op_type == "Constant")]
    for value in found:
        tensor = constant(value)
        is_end = value.is_graph_output() or value.is_graph_input()
        if tensor is not None and tensor.dtype == ir.DataType.FLOAT and not is_end:
            yield value, tensor
