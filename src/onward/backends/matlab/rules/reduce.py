"""Reductions, the places of extremes, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.matlab.rules.elementwise import is_real
from onward.backends.matlab.rules.shape import dims_of, reshaped
from onward.backends.matlab.target import axis_dim, ops, rank_of, row, rule
from onward.backends.shared.reduce import known_axes
from onward.spec.reduce import IndexOf, Reduce, Running

_D = ir.DataType


def _total(e: Emitter, x: Expr) -> Expr:
    return ops.total if is_real(e, x) else ops.total_of_integers


REDUCTIONS: dict[str, Callable[[Emitter, Expr, Expr], Expr]] = {
    "Sum": lambda e, x, dims: _total(e, x)(x, dims),
    "Mean": lambda e, x, dims: (ops.mean if is_real(e, x) else ops.mean_of_integers)(x, dims),
    "Max": lambda e, x, dims: ops.largest(x, dims),
    "Min": lambda e, x, dims: ops.smallest(x, dims),
    "Prod": lambda e, x, dims: ops.product(x, dims),
    "L1": lambda e, x, dims: _total(e, x)(Name("abs")(x), dims),
    "L2": lambda e, x, dims: ops.norm2(x, dims),
    "SumSquare": lambda e, x, dims: (
        ops.total(x**2, dims) if is_real(e, x) else ops.total_of_integers(ops.multiply_integers(x, x), dims)
    ),
    "LogSum": lambda e, x, dims: ops.log_of_total(x, dims),
    "LogSumExp": lambda e, x, dims: ops.log_sum_exp(x, dims),
}


def _reduction(op: str, reduce: Callable[[Emitter, Expr, Expr], Expr]) -> None:
    @rule(f"Reduce{op}")
    def apply(e: Emitter, x: Expr, axes: Expr | None = None, *, p: Reduce) -> Expr:
        along, rank = known_axes(e, axes), rank_of(e, x)
        if along is None:
            assert axes is not None
            return _unknown(e, x, axes, reduce, p)
        if not along:
            if p.noop_with_empty_axes:
                return reduce(e, x, Name("[]"))
            along = list(range(rank))
        axis = sorted({a % rank for a in along}) if rank else []
        y = reduce(e, x, row(rank - a for a in reversed(axis)))
        if p.keepdims:
            return y
        dims = dims_of(e, x)
        return reshaped(
            e, y, [n for i, n in enumerate(dims) if i not in axis], [1 if i in axis else n for i, n in enumerate(dims)]
        )


def _unknown(e: Emitter, x: Expr, axes: Expr, reduce: Callable[[Emitter, Expr, Expr], Expr], p: Reduce) -> Expr:
    """Where axes are computed when the model runs."""
    rank = rank_of(e, x)
    dims = e.let_host(ops.axes_to_dims(axes, rank, bool(p.noop_with_empty_axes)), "dims")
    y = reduce(e, x, dims)
    if p.keepdims:
        return y
    rank_of(e, e.node.outputs[0])
    return ops.without_dims(y, dims, rank)


for _op, _reduce in REDUCTIONS.items():
    _reduction(_op, _reduce)


def _index_of(op: str, sign: str) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, p: IndexOf) -> Expr:
        y = ops.place_of(x, axis_dim(e, x, p.axis), sign, bool(p.select_last_index))
        if p.keepdims:
            return y
        dims = dims_of(e, x)
        axis = p.axis % len(dims)
        return reshaped(e, y, [n for i, n in enumerate(dims) if i != axis])


_index_of("ArgMax", "max")
_index_of("ArgMin", "min")


def _running(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, axis: Expr, p: Running) -> Expr:
        known = e.static_ints(axis)
        dim: Any = ops.axes_to_dims(axis, rank_of(e, x), True) if known is None else axis_dim(e, x, known[0])
        return function(x, dim, bool(p.exclusive), bool(p.reverse))


_running("CumSum", ops.running_total)
_running("CumProd", ops.running_product)
