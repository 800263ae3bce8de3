"""Sizes and paddings of sliding windows, known when a gradient is written or only when it runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from onward.errors import UnsupportedError
from onward.graph.build import Builder, Tensor
from onward.spec.window import Window


class Ints:
    """Whole numbers, one an axis: known now, or a tensor of them. Arithmetic on known ones writes no nodes."""

    __slots__ = ("_tensor", "known", "op")

    def __init__(self, op: Builder, known: Sequence[int] | None, tensor: Tensor | None = None) -> None:
        self.op = op
        self.known = None if known is None else list(known)
        self._tensor = tensor

    @property
    def tensor(self) -> Tensor:
        if self._tensor is None:
            assert self.known is not None
            self._tensor = self.op.ints(self.known)
        return self._tensor

    def _with(self, other: Ints | Sequence[int] | int, node: str, function: Callable[[int, int], int]) -> Ints:
        if isinstance(other, int):
            other = Ints(self.op, [other] * len(self.known) if self.known is not None else [other])
        elif not isinstance(other, Ints):
            other = Ints(self.op, other)
        if self.known is not None and other.known is not None:
            return Ints(self.op, [function(a, b) for a, b in zip(self.known, other.known, strict=True)])
        return Ints(self.op, None, getattr(self.op, node)(self.tensor, other.tensor))

    def __add__(self, other: Ints | Sequence[int] | int) -> Ints:
        return self._with(other, "Add", operator.add)

    def __sub__(self, other: Ints | Sequence[int] | int) -> Ints:
        return self._with(other, "Sub", operator.sub)

    def __mul__(self, other: Ints | Sequence[int] | int) -> Ints:
        return self._with(other, "Mul", operator.mul)

    def __floordiv__(self, other: int) -> Ints:
        """Rounded towards zero."""
        return self._with(other, "Div", lambda a, b: int(a / b))

    def __neg__(self) -> Ints:
        return self * -1

    def at_least(self, low: int) -> Ints:
        return self._with(low, "Max", max)

    def is_(self, number: int) -> bool:
        """Whether all are surely this number."""
        return self.known is not None and set(self.known) <= {number}


def spatial(x: Tensor, rank: int) -> Ints:
    """The sizes of the last `rank` axes."""
    dims = x.dims
    known = None if dims is None else [d for d in dims[-rank:] if isinstance(d, int)]
    if known is not None and len(known) == rank:
        return Ints(x.op, known)
    return Ints(x.op, None, x.op.Shape(x, start=-rank))


def extents(kernel: Ints, dilations: Sequence[int]) -> Ints:
    """How many elements a window spans, gaps included."""
    return (kernel - 1) * Ints(kernel.op, dilations) + 1


def covered(steps: Ints, kernel: Ints, window: Window) -> Ints:
    """How many elements all windows together span."""
    return (steps - 1) * Ints(steps.op, window.strides) + extents(kernel, window.dilations)


def beginning(window: Window, kernel: Ints, sizes: Ints, steps: Ints, pool: bool = False) -> Ints:
    """The padding before each axis of the input, where it is the automatic one of sizes unknown until now."""
    if window.begin is not None:
        return Ints(sizes.op, window.begin)
    span = (steps - 1) * Ints(sizes.op, window.strides) + (kernel if pool else extents(kernel, window.dilations))
    total = span - sizes if pool else (span - sizes).at_least(0)
    return (total + 1 if window.lower else total) // 2


def moved(x: Tensor, begin: Ints, sizes: Ints, rank: int) -> Tensor:
    """`x` with `begin` elements of zeros before each of its last `rank` axes (taken off, where negative), and then
    filled up with zeros or cut off to `sizes`."""
    op = x.op
    end = sizes - begin - spatial(x, rank)
    if begin.is_(0) and end.is_(0):
        return x
    if x.rank is None:
        raise UnsupportedError("windows over a tensor whose rank is not known are not supported")
    others = [0] * (x.rank - rank)
    if begin.known is not None and end.known is not None:
        return op.Pad(x, op.ints([*others, *begin.known, *others, *end.known]))
    none = op.ints(others)
    return op.Pad(x, op.Concat(none, begin.tensor, none, end.tensor, axis=0))
