"""Running results along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor
from onward.graph.scan import scan


def _first(op: Builder, x: Tensor, axis: int) -> tuple[Tensor, list[int]]:
    """With an axis in front, and the order that puts it back."""
    rank = op.rank(x, "what is accumulated")
    axis %= rank
    there = [axis, *(i for i in range(rank) if i != axis)]
    return op.transpose(x, there), [there.index(i) for i in range(rank)]


@rule("cumprod")
def cumprod(op: Builder, x: Tensor, dim: int, *, dtype: int = -1) -> Tensor:
    if dtype not in (-1, None):
        x = x.cast(ir.DataType(dtype))
    elif not x.dtype.is_floating_point():
        x = x.cast(ir.DataType.INT64)
    if x.rank == 0:
        return op.Identity(x)
    rows, back = _first(op, x, dim)
    start = op.Expand(op.like(1, x), op.Slice(op.Shape(rows), op.ints([1]), op.ints([len(back)])))

    def step(states: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        product = states[0] * row[0]
        return [product], [product]

    return op.transpose(scan(op, step, [start], [rows])[1], back)


def _extreme(op: Builder, x: Tensor, dim: int, is_better: Callable[[Tensor, Tensor], Tensor]) -> Sequence[Tensor]:
    """The best so far, and where it is: the last of equal ones, and not a number once there was one."""
    if x.rank == 0:
        return op.Identity(x), op.index(0)
    rows, back = _first(op, x, dim)
    head = op.Gather(rows, op.index(0), axis=0)
    places = op.Range(op.index(0), op.Gather(op.Shape(rows), op.index(0)), op.index(1))
    nowhere = op.Expand(op.index(0), op.Shape(head))

    def step(states: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        better = is_better(row[0], states[0])
        if x.dtype.is_floating_point():
            better = op.Or(better, op.IsNaN(row[0]))
        found = op.Where(better, row[0], states[0]), op.Where(better, row[1], states[1])
        return found, found

    _, _, values, indices = scan(op, step, [head, nowhere], [rows, places])
    return op.transpose(values, back), op.transpose(indices, back)


@rule("cummax")
def cummax(op: Builder, x: Tensor, dim: int) -> Sequence[Tensor]:
    return _extreme(op, x, dim, lambda new, best: new >= best)


@rule("cummin")
def cummin(op: Builder, x: Tensor, dim: int) -> Sequence[Tensor]:
    return _extreme(op, x, dim, lambda new, best: new <= best)
