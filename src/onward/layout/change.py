"""What becomes of a node when its tensors are stored in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.known import Dim, Known, dims_of
from onward.layout.orders import Layout, Order, identity

Array = np.ndarray[Any, np.dtype[Any]]


class Fixed(Exception):
    """A node that can only be computed on tensors stored as the graph has them."""


@dataclass(frozen=True)
class Picked:
    """The elements of a vector that is computed at run time, in another order."""

    indices: tuple[int, ...]


@dataclass(frozen=True)
class Aligned:
    """An operand of lower rank, whose axes are the last ones of the result: given the axes of the stored result."""

    order: Order


@dataclass
class Change:
    """How a node is written when its main tensor is stored the other way."""

    inputs: dict[int, Order] = field(default_factory=dict)
    """The order of each input that has to be stored in an order of its own; all others stay as they are."""
    outputs: dict[int, Order] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    operands: dict[int, Array | Picked | Aligned] = field(default_factory=dict)
    """Other inputs that are replaced."""
    picked: tuple[int, ...] | None = None
    """The elements of the only output, a vector, that are wanted."""
    burden: int = 0
    """What it costs to compute the node so, in elements moved."""
    domain: str = ""
    """Of the op that computes the node so, where it is another one."""
    takes_any: bool = False
    """Whether the result is as the graph has it, in whichever way the first input is stored."""


def constant(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The content of a value that no caller can replace."""
    if value is None or value.is_graph_input():
        return None
    return ir.convenience.get_const_tensor(value)


@dataclass(frozen=True)
class Case:
    """A node of which it is asked how it would be written if its main tensor were stored the other way."""

    node: ir.Node
    known: Known
    main: ir.Value
    """The tensor whose order is given; the orders of the others follow."""
    meaning: Layout
    order: Order
    """How the main tensor is stored, other than as the graph has it."""

    @property
    def rank(self) -> int:
        return len(self.main.shape or ())

    @property
    def channel(self) -> int:
        """The axis of the channels in the main tensor."""
        return 1 if self.meaning is Layout.FIRST else self.rank - 1

    def input(self, i: int) -> ir.Value | None:
        return self.node.inputs[i] if i < len(self.node.inputs) else None

    def dims(self, value: ir.Value | None) -> list[Dim]:
        dims = None if value is None else dims_of(value)
        if dims is None:
            raise Fixed
        return dims

    def numbers(self, i: int) -> list[int]:
        """A constant input, as numbers."""
        tensor = constant(self.input(i))
        if tensor is None:
            raise Fixed
        return [int(n) for n in tensor.numpy().reshape(-1)]

    def stored(self, axis: int) -> int:
        """Where an axis of the main tensor is stored."""
        return self.order.index(axis % self.rank)

    def integers(self, numbers: Sequence[int], like: int) -> Array:
        """A new constant, of the dtype of an input."""
        value = self.input(like)
        dtype = ir.DataType.INT64 if value is None or value.dtype is None else value.dtype
        return np.array(numbers, dtype.numpy())

    def vector(self, i: int, indices: Sequence[int], before: int = 0) -> Array | Picked:
        """A one-dimensional input with its elements in another order; what a constant lacks in front is `before`."""
        tensor = constant(self.input(i))
        if tensor is not None:
            numbers = tensor.numpy()
            return np.asarray(np.pad(numbers, (len(indices) - len(numbers), 0), constant_values=before)[list(indices)])
        if self.dims(self.input(i)) != [len(indices)]:
            raise Fixed
        return Picked(tuple(indices))

    def following(self, inputs: Sequence[int] = (0,), outputs: Sequence[int] | None = None) -> Change:
        """A change in which these inputs and outputs (all, unless given) are stored like the main tensor."""
        outputs = range(len(self.node.outputs)) if outputs is None else outputs
        present = [i for i in inputs if self.input(i) is not None]
        for value in [*(self.input(i) for i in present), *(self.node.outputs[i] for i in outputs)]:
            if len(self.dims(value)) != self.rank:
                raise Fixed
        return Change(dict.fromkeys(present, self.order), dict.fromkeys(outputs, self.order))


def order_without(order: Order, removed: Sequence[int]) -> Order:
    """The order of the axes that are left."""
    left = [axis for axis in order if axis not in removed]
    return tuple(sorted(left).index(axis) for axis in left)


def is_plain(order: Order) -> bool:
    return order == identity(len(order))
