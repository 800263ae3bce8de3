"""Constants in another order: each is a new initializer, so that nothing is moved at run time."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.trained import inherit
from onward.layout.change import Array, constant
from onward.layout.orders import Order

KEY = "onward.layout.of"
"""Where a permuted weight keeps the name of the weight it was made of."""


class Constants:
    """New initializers of a graph, each made once."""

    def __init__(self, graph: ir.Graph, names: Names) -> None:
        self._graph = graph
        self._names = names
        self._made: dict[tuple[ir.Value, Order], ir.Value] = {}
        self._numbers: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._replaced: dict[ir.Value, None] = {}

    def permuted(self, value: ir.Value, order: Order) -> ir.Value:
        """A constant stored in another order; one of lower rank gets the axes that it lacks, as far as needed."""
        if (value, order) not in self._made:
            tensor = constant(value)
            assert tensor is not None
            array = tensor.numpy()
            array = array.reshape([1] * (len(order) - array.ndim) + list(array.shape)).transpose(order)
            while len(order) > len(tensor.shape) and array.ndim > 1 and array.shape[0] == 1:
                array = array[0]
            self._made[value, order] = self._instead(value, array, tensor.dtype)
        return self._made[value, order]

    def pointwise(self, value: ir.Value, rank: int) -> ir.Value:
        """A matrix that maps the last axis, as the weight of a convolution of size 1 over a tensor of some rank."""
        order = (1, 0, *range(2, rank))
        if (value, order) not in self._made:
            tensor = constant(value)
            assert tensor is not None
            weight = np.expand_dims(tensor.numpy().T, order[2:])
            self._made[value, order] = self._instead(value, weight, tensor.dtype)
        return self._made[value, order]

    def _instead(self, value: ir.Value, array: Array, dtype: ir.DataType) -> ir.Value:
        """A new initializer in place of another one."""
        made = self._initializer(np.ascontiguousarray(array), dtype, f"{value.name}_permuted")
        made.metadata_props[KEY] = value.name or ""
        inherit(made, value)
        self._replaced[value] = None
        return made

    def numbers(self, array: Array, wish: str) -> ir.Value:
        """A small constant, shared by all who need the same."""
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._numbers:
            self._numbers[key] = self._initializer(array, ir.DataType.from_numpy(array.dtype), wish)
        return self._numbers[key]

    def _initializer(self, array: Array, dtype: ir.DataType, wish: str) -> ir.Value:
        name = self._names.value(wish)
        tensor: ir.TensorProtocol
        if dtype == ir.DataType.STRING:
            tensor = ir.StringTensor(array, name=name)
        else:
            tensor = ir.Tensor(array, dtype=dtype, shape=ir.Shape(array.shape), name=name)
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self._graph.register_initializer(value)
        return value

    def remove_replaced(self) -> None:
        """Drop the initializers whose place was taken, and which nobody else reads; the name goes to a single heir."""
        for value in self._replaced:
            if value.is_initializer() and not value.uses() and not value.is_graph_output() and value.graph is not None:
                name, home = value.name or "", value.graph
                home.initializers.pop(name)
                heirs = [made for (source, _), made in self._made.items() if source is value and made.uses()]
                if len(heirs) == 1 and home is self._graph:
                    rename(self._graph, heirs[0], name)


def rename(graph: ir.Graph, value: ir.Value, name: str) -> None:
    """Give an initializer another name."""
    graph.initializers.pop(value.name or "")
    value.name = name
    if value.const_value is not None:
        value.const_value.name = name
    graph.register_initializer(value)
