"""Gradients of sums and other reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onward.graph.build import Tensor
from onward.graph.scan import scan
from onward.spec.reduce import Reduce, Running
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp
from onward.training.autodiff.vjp.elementwise import constant_of


class Reduction:
    """What the rules of reductions share: the reduced axes put back, so that results broadcast to the input."""

    def __init__(self, c: Context, x: Tensor, axes: Tensor | None, p: Reduce) -> None:
        self.c, self.x, self.axes, self.keepdims = c, x, axes, p.keepdims
        self.is_noop = bool(p.noop_with_empty_axes) and (axes is None or axes.sizes == [0])
        """Nothing is reduced; the function of a single element is applied nevertheless."""

    def back(self, reduced: Tensor) -> Tensor:
        """A reduced tensor with the reduced axes of size 1."""
        op = self.c.op
        if self.keepdims or self.is_noop:
            return reduced
        if self.axes is not None and self.axes.sizes != [0]:
            return op.Unsqueeze(reduced, self.axes)
        if self.x.rank is not None:
            return op.Reshape(reduced, op.ints([1] * self.x.rank))
        return op.Reshape(reduced, op.Expand(op.ints([1]), op.Shape(op.Shape(self.x))))

    def sum(self, tensor: Tensor) -> Tensor:
        return tensor if self.is_noop else self.c.op.ReduceSum(tensor, self.axes, keepdims=1)

    def spread(self, reduced: Tensor) -> Tensor:
        """A tensor with the reduced axes of size 1, repeated over the shape of the input."""
        return reduced if self.is_noop else self.c.op.Expand(reduced, self.x.shape)


Formula = Callable[[Reduction, Tensor, Tensor, Tensor], Gradients]
"""Of the reduction, the gradient with the reduced axes back, the input, and the result with the reduced axes back."""


def rule(*ops: str) -> Callable[[Formula], Formula]:
    """Files the gradient of a reduction, axes and attributes being taken care of."""

    def file(formula: Formula) -> Formula:
        @vjp(*ops)
        def apply(c: Context, g: Tensor, x: Tensor, axes: Tensor | None = None, *, p: Reduce) -> Gradients:
            r = Reduction(c, x, axes, p)
            return formula(r, r.back(g), x, r.back(c.y))

        return formula

    return file


@rule("ReduceSum")
def reduce_sum(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    return r.spread(g)


@rule("ReduceMean")
def reduce_mean(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    op = r.c.op
    if r.is_noop:
        return g
    if x.sizes is not None and r.c.y.sizes is not None:
        return r.spread(g * (math.prod(r.c.y.sizes) / max(1, math.prod(x.sizes))))
    return r.spread(g * (op.Size(g).cast(x.dtype) / op.Size(x).cast(x.dtype)))


@rule("ReduceMax", "ReduceMin")
def reduce_extreme(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    """Elements that tie for the extreme share the gradient evenly."""
    hits = r.c.op.Equal(x, y).cast(g.dtype)
    return hits * (g / r.sum(hits))


@rule("ReduceL1")
def reduce_l1(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    return g * r.c.op.Sign(x)


@rule("ReduceL2")
def reduce_l2(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    """At the origin, where there is no slope, 0."""
    op = r.c.op
    return x * (g / op.where(op.Equal(y, op.like(0, y)), 1, y))


@rule("ReduceSumSquare")
def reduce_sum_square(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    return x * (g * 2)


@rule("ReduceLogSum")
def reduce_log_sum(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    return r.spread(g / r.c.op.Exp(y))


@rule("ReduceLogSumExp")
def reduce_log_sum_exp(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    return g * r.c.op.Exp(x - y)


@rule("ReduceProd")
def reduce_prod(r: Reduction, g: Tensor, x: Tensor, y: Tensor) -> Gradients:
    """The product of the other elements: y / x, and where zeros forbid that, what is left without the zero."""
    op = r.c.op
    if r.is_noop:
        return g
    zero = op.Equal(x, op.like(0, x))
    zeros = r.sum(zero.cast(x.dtype))
    filled = op.where(zero, 1, x)
    product = op.ReduceProd(filled, r.axes, keepdims=1)
    without = op.where(zeros > 1, 0, product)
    return g * op.where(zero, without, op.where(zeros > 0, 0, without / filled))


@vjp("CumSum")
def cum_sum(c: Context, g: Tensor, x: Tensor, axis: Tensor, p: Running) -> Gradients:
    return c.op.CumSum(g, axis, exclusive=p.exclusive, reverse=1 - p.reverse)


@vjp("CumProd")
def cum_prod(c: Context, g: Tensor, x: Tensor, axis: Tensor, p: Running) -> Gradients:
    """The product of what comes before an element, times a sum over what comes behind, which is run up step by step."""
    op, known = c.op, constant_of(axis)
    if known is None or x.rank is None:
        return op.reshape_like(_of_product(_around(g, axis), _around(x, axis), 1, 3, p), x)
    return _of_product(g, x, int(known.flat[0]) % x.rank, x.rank, p)


def _around(x: Tensor, axis: Tensor) -> Tensor:
    """A tensor as one of three axes: those before an axis that is computed, that axis, and those behind it."""
    op = x.op
    shape, one = op.Shape(x), op.ints([1])
    at = op.Reshape(axis.cast(ir.DataType.INT64), one)
    at = op.Mod(at, op.Shape(shape))
    before, length, behind = op.ints([0]), op.Gather(shape, at), at + 1
    first, last = op.Slice(shape, before, at), op.Slice(shape, behind, op.ints([np.iinfo(np.int64).max]))
    sizes = [op.ReduceProd(first), length, op.ReduceProd(last)]
    return op.Reshape(x, op.Concat(*sizes, axis=0), allowzero=1).ranked(3)


def _of_product(g: Tensor, x: Tensor, axis: int, rank: int, p: Running) -> Tensor:
    op = g.op
    order = [axis, *(i for i in range(rank) if i != axis)]
    rows = [op.transpose(t, order) for t in (g, x)]

    def step(states: Sequence[Tensor], now: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        if p.exclusive:
            return [now[0] + now[1] * states[0]], [states[0]]
        total = now[0] + states[0]
        return [now[1] * total], [total]

    start = op.zeros_like(op.Gather(rows[1], op.index(0), axis=0))
    behind = scan(op, step, [start], rows, backwards=not p.reverse)[1]
    before = op.CumProd(x, op.index(axis), exclusive=1, reverse=p.reverse)
    return before * op.transpose(behind, [order.index(i) for i in range(rank)])


no_gradient("integers", "ArgMax", "ArgMin")
