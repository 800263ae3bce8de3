"""Reshapes that leave batch and channels alone, or have nothing to move: these need no tensor in another order."""

from __future__ import annotations

import math

import numpy as np

from onward.canon.known import Dim, Items
from onward.layout.change import Case, Change, Fixed, Picked, constant
from onward.layout.orders import RANKS, Layout, Order, identity, moves_nothing, order_of


def reshape(c: Case) -> Change:
    given, result = c.dims(c.input(0)), c.dims(c.node.outputs[0])
    if c.main is c.node.outputs[0]:
        return _from_other_rank(c, result)
    if len(result) in RANKS and _keeps_channels(c, given, result):
        order = order_of(len(result), c.meaning, c.meaning.other)
        return Change({0: c.order}, {0: order}, operands={1: arranged_shape(c, given, c.order, order)})
    if moves_nothing(given, c.order):
        return Change(
            {0: c.order}, operands={1: arranged_shape(c, given, c.order, identity(len(result)))}, takes_any=True
        )
    raise Fixed


def _from_other_rank(c: Case, result: list[Dim]) -> Change:
    """A tensor without a layout becomes one with one, such as a vector of gates for channels."""
    items = _items(c)
    if not moves_nothing(result, c.order) or any(n == 0 and c.order[i] != i for i, n in enumerate(items)):
        raise Fixed
    return Change(outputs={0: c.order}, operands={1: c.vector(1, c.order)})


def _keeps_channels(c: Case, given: list[Dim], result: list[Dim]) -> bool:
    into = 1 if c.meaning is Layout.FIRST else len(result) - 1
    items = _items(c)
    copies = not c.node.attributes.get_int("allowzero", 0)

    def keeps(axis: int, target: int) -> bool:
        is_copied = copies and items[target] == 0 and axis == target
        return is_copied or (given[axis] is not None and given[axis] == result[target])

    return (keeps(0, 0) or (items[0] == -1 and fills(given[1:], result[1:]))) and keeps(c.channel, into)


def fills(given: list[Dim], result: list[Dim]) -> bool:
    """Whether axes hold the same number of elements, so that what is left over is the same, too."""
    sizes = [[dim for dim in dims if isinstance(dim, int)] for dims in (given, result)]
    known = len(sizes[0]) == len(given) and len(sizes[1]) == len(result)
    return known and math.prod(sizes[0]) == math.prod(sizes[1]) != 0


def _items(c: Case) -> Items:
    value = c.input(1)
    items = c.known.of(value)
    if items is None or items.ndim != 1:
        raise Fixed
    return items


def arranged_shape(c: Case, given: list[Dim], stored: Order, order: Order) -> np.ndarray | Picked:
    """The shape asked for, in the order of the stored result; a zero, which copies, may copy from elsewhere now.

    `given` are the dimensions of the tensor that is reshaped, `stored` is its order.
    """
    items = list(_items(c))
    copies = not c.node.attributes.get_int("allowzero", 0)
    wanted = [items[axis] for axis in order]
    is_constant = constant(c.input(1)) is not None
    for place, axis in enumerate(order):
        if wanted[place] == 0 and copies and (place >= len(stored) or stored[place] != axis):
            dim = given[axis]
            if not is_constant or not isinstance(dim, int) or dim == 0:
                raise Fixed
            wanted[place] = dim
    return c.integers(wanted, like=1) if is_constant else Picked(order)
