"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax.elementwise import FLOAT, HALVES, maximum, minimum
from onward.frontends.lax.sizes import part
from onward.frontends.writer import Writer
from onward.graph.build import Tensor
from onward.graph.scan import give

Pair = Callable[[Tensor, Tensor], Tensor]


def cumulative(op: Writer, x: Tensor, pair: Pair, axis: int, reverse: bool = False) -> Tensor:
    """What an associative function makes of all elements up to each: of two, of four, of eight, …"""
    length = x.dims[axis] if x.dims is not None else None
    if not isinstance(length, int):
        return _scanned(op, x, pair, axis, reverse)
    step = 1
    while step < length:
        before, after = part(op, x, axis, 0, length - step), part(op, x, axis, step, length)
        joined = pair(after, before) if reverse else pair(before, after)
        pieces = (joined, part(op, x, axis, length - step, length)) if reverse else (part(op, x, axis, 0, step), joined)
        x = op.Concat(*pieces, axis=axis)
        step *= 2
    return x


def _scanned(op: Writer, x: Tensor, pair: Pair, axis: int, reverse: bool) -> Tensor:
    """Along an axis of a length that is not known, one after the other."""
    rank = op.rank(x, "a running result")
    far = 2**31 - 1
    first = op.Slice(x, op.ints([-1 if reverse else 0]), op.ints([far if reverse else 1]), op.ints([axis]))
    rest = (
        op.Slice(x, op.ints([0]), op.ints([-1]), op.ints([axis]))
        if reverse
        else op.Slice(x, op.ints([1]), op.ints([far]), op.ints([axis]))
    )
    start = op.squeeze(first, [axis])
    graph = ir.Graph([], [], nodes=[], name=op.names.node(f"{op.scope}running"))
    graph.inputs.extend([op.input_like(start.value), op.input_like(start.value)])
    with op.inside(graph):
        state, item = (op.tensor(value) for value in graph.inputs)
        found = pair(state, item)
        give(op, graph, [found, op.Identity(found)])
    direction = [int(reverse)]
    _, others = op.many(
        "Scan",
        2,
        start,
        rest,
        body=graph,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis % rank],
        scan_input_directions=direction,
        scan_output_directions=direction,
    )
    y = op.Concat(*((others, first) if reverse else (first, others)), axis=axis)
    y.value.shape = x.value.shape
    return y


def cumsum(op: Writer, x: Tensor, axis: int, reverse: bool = False) -> Tensor:
    """Numbers of fewer bits are summed in more, and wrap when they are narrowed."""
    return op.CumSum(x, op.index(axis), reverse=int(reverse) or None)


def cumprod(op: Writer, x: Tensor, axis: int, reverse: bool = False) -> Tensor:
    wide = x.cast(FLOAT) if x.dtype in HALVES else x
    return cumulative(op, wide, lambda a, b: a * b, axis, reverse).cast(x.dtype)


def cummax(op: Writer, x: Tensor, axis: int, reverse: bool = False) -> Tensor:
    return cumulative(op, x, lambda a, b: maximum(op, a, b), axis, reverse)


def cummin(op: Writer, x: Tensor, axis: int, reverse: bool = False) -> Tensor:
    return cumulative(op, x, lambda a, b: minimum(op, a, b), axis, reverse)


def cumlogsumexp(op: Writer, x: Tensor, axis: int, reverse: bool = False) -> Tensor:
    """Logarithms of sums, each sum taken apart from its largest term."""
    if x.dtype.is_integer():
        raise UnsupportedError("logarithms of sums of whole numbers are not supported")
    wide = x.cast(FLOAT) if x.dtype in HALVES else x

    def pair(a: Tensor, b: Tensor) -> Tensor:
        top = op.Max(a, b)
        size = op.Abs(top)
        calm = op.where(op.Not(size < float("inf")), 0.0, top)
        total = op.Log(op.Exp(a - calm) + op.Exp(b - calm)) + calm
        return total

    return cumulative(op, wide, pair, axis, reverse).cast(x.dtype)
