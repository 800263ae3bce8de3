"""Reshapes of tensors in another order: those that leave batch and channels alone, that have nothing to move, or by
which each axis becomes several, or several axes one, as in a channel shuffle.
"""

from __future__ import annotations

import math

import numpy as np

from onward.graph.known import Dim
from onward.graph.values import Items
from onward.layout.change import Case, Change, Fixed, Picked, constant, is_plain
from onward.layout.orders import MOVABLE, RANKS, Layout, Order, identity, moves_nothing, order_of


def reshape(c: Case) -> Change:
    given, result = c.dims(c.input(0)), c.dims(c.node.outputs[0])
    if c.main is c.node.outputs[0]:
        return _from_other_rank(c, result)
    is_standard = c.order == order_of(c.rank, c.meaning, c.meaning.other)
    if is_standard and len(result) in RANKS and _keeps_channels(c, given, result):
        order = order_of(len(result), c.meaning, c.meaning.other)
        return Change({0: c.order}, {0: order}, operands={1: arranged_shape(c, given, c.order, order)})
    if moves_nothing(given, c.order):
        return Change(
            {0: c.order}, operands={1: arranged_shape(c, given, c.order, identity(len(result)))}, takes_any=True
        )
    order = _regrouped(c.order, given, result)
    if len(order) not in MOVABLE and not is_plain(order):
        raise Fixed
    outputs = {0: order} if len(order) in MOVABLE else {}
    return Change({0: c.order}, outputs, operands={1: arranged_shape(c, given, c.order, order)})


def _regrouped(order: Order, given: list[Dim], result: list[Dim]) -> Order:
    """The order of the result of a Reshape whose input is stored in an order."""
    if len(result) > len(given):
        return split_order(order, given, result)
    groups = _groups(result, given)
    if not all(groups):
        raise Fixed
    merged = tuple(sorted(range(len(groups)), key=lambda axis: order.index(groups[axis][0])))
    if [place for axis in merged for place in groups[axis]] != list(order):
        raise Fixed
    return merged


def split_order(order: Order, few: list[Dim], many: list[Dim]) -> Order:
    """The order of a tensor that has some axes of another one in parts; such a Reshape may go either way."""
    groups = _groups(few, many)
    return tuple(place for axis in order for place in groups[axis])


def _groups(few: list[Dim], many: list[Dim]) -> list[list[int]]:
    """For each axis of the shorter shape, those of the longer one that it consists of."""
    groups: list[list[int]] = []
    place = 0
    for axis, dim in enumerate(few):
        if place < len(many) and _is_same(few, many, axis, place):
            groups.append([place])
            place += 1
            continue
        group, product = list[int](), 1
        while isinstance(dim, int) and place < len(many) and (product != dim or not group):
            part = many[place]
            if not isinstance(part, int) or not part or dim % (product * part):
                raise Fixed
            group.append(place)
            product, place = product * part, place + 1
        if product != dim:
            raise Fixed
        groups.append(group)
    if place != len(many):
        raise Fixed
    return groups


def _is_same(few: list[Dim], many: list[Dim], axis: int, place: int) -> bool:
    """Whether two axes are of one size; of a batch that is not known this follows from all others."""
    if few[axis] is not None and few[axis] == many[place]:
        return True
    return axis == place == 0 and not isinstance(few[0], int) and fills(few[1:], many[1:])


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
