"""Numbers that follow from shapes and constants: so that a Reshape to (batch, -1, 64) has a known last dimension.

An element is an int, the name of a dimension, or None where nothing is known of it.
"""

import itertools
import math
from typing import Any

import onnx_ir as ir

from onward.graph.values import INTEGERS, LIMIT, Algebra, Items, constant_items, evaluate

Dim = int | str | None

_LEFT_ALONE = {"Expand", "Tile", "Transpose", "ReduceSum", "ReduceMin", "ReduceMax"}
"""Ops that shapes are seldom computed with."""


_FITTED = {"axes", "keep_aspect_ratio_policy"}
"""Attributes with which the sizes of a Resize are not those of its result."""


def dims_of(value: ir.Value) -> list[Dim] | None:
    """Each dimension as a number, a name, or None; None where not even the rank is known."""
    if value.shape is None:
        return None
    return [d if isinstance(d, int) else d.value for d in value.shape]


class Known(Algebra):
    """The elements of small integer values, as far as they are known."""

    def __init__(self) -> None:
        self._items: dict[ir.Value, Items] = {}

    def of(self, value: ir.Value | None) -> Items | None:
        if value is None or value.dtype not in INTEGERS:
            return None
        found = self._items.get(value)
        if found is None:
            tensor = ir.convenience.get_const_tensor(value)
            if tensor is None or tensor.size > LIMIT:
                return None
            found = self._items[value] = constant_items(tensor.numpy())
        return found

    def numbers(self, value: ir.Value) -> Items | None:
        """The elements where all of them are numbers."""
        items = self.of(value)
        return items if items is not None and all(isinstance(i, int) for i in items.flat) else None

    def node(self, node: ir.Node) -> None:
        """Take note of what `node`, whose outputs are typed, computes."""
        is_followed = node.outputs and node.outputs[0].dtype in INTEGERS and node.op_type not in _LEFT_ALONE
        results = evaluate(node, self) if is_followed else None
        for value, items in itertools.zip_longest(node.outputs, results or ()):
            self.forget(value)
            if items is not None:
                self._items[value] = items

    def forget(self, value: ir.Value) -> None:
        self._items.pop(value, None)

    def dim(self, value: ir.Value, axis: int) -> Dim:
        return (dims_of(value) or [])[axis]

    def symbolic(self, op: str, *row: Any) -> Dim:
        """A name stays what it is; of all else nothing is known."""
        if op == "int":
            return row[0]  # type: ignore[no-any-return]
        return row[1] if op == "Where" and row[1] == row[2] else None

    def shape(self, node: ir.Node) -> list[Dim] | None:
        """The shape of the first output of ops whose input says it, where only some of its numbers are known."""
        is_resize = node.op_type == "Resize" and len(node.inputs) == 4 and not _FITTED & {*node.attributes}
        if node.op_type not in ("Reshape", "Expand", "ConstantOfShape") and not is_resize:
            return None
        wanted = self.of(node.inputs[-1])
        if wanted is None or wanted.ndim != 1:
            return None
        if node.op_type in ("ConstantOfShape", "Resize"):
            return list(wanted)
        given = None if node.inputs[0] is None else dims_of(node.inputs[0])
        if given is None:
            return None
        return _expanded(given, wanted) if node.op_type == "Expand" else _reshaped(given, wanted, node)


def _expanded(given: list[Dim], wanted: Items) -> list[Dim]:
    pairs = itertools.zip_longest(reversed(given), reversed(list(wanted)), fillvalue=1)
    return [_broadcast(a, b) for a, b in pairs][::-1]


def _broadcast(a: Dim, b: Dim) -> Dim:
    if a == 1 or a == b:
        return b
    if b == 1:
        return a
    return next((d for d in (a, b) if isinstance(d, int) and d > 1), None)


def _reshaped(given: list[Dim], wanted: Items, node: ir.Node) -> list[Dim]:
    if node.attributes.get_int("allowzero", 0):
        kept: list[Dim] = list(wanted)
    else:
        kept = [given[i] if n == 0 and i < len(given) else n for i, n in enumerate(wanted)]
    return [_remaining(given, kept) if n == -1 else n for n in kept]


def _remaining(given: list[Dim], kept: list[Dim]) -> Dim:
    """What -1 stands for: names on both sides cancel, as long as none of them can be zero times something else."""
    left = list(given)
    divisor = 1
    for dim in kept:
        if isinstance(dim, str):
            if dim not in left:
                return None
            left.remove(dim)
        elif dim is None:
            return None
        elif dim != -1:
            divisor *= dim
    numbers = [d for d in left if isinstance(d, int)]
    if len(numbers) < len(left):
        return left[0] if len(left) == 1 and divisor == 1 else None
    product = math.prod(numbers)
    return product // divisor if divisor and product % divisor == 0 else None
