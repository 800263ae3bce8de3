"""Reductions over axes, ArgMax and ArgMin, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.dtypes import UNSIGNED, dtype_of, is_float, scalar
from onward.backends.tensorflow.target import dtype, ops, rule, tf

_D = ir.DataType


class Axes:
    """What a reduction is over, as arguments for a TensorFlow function that takes `axis` and `keepdims`."""

    def __init__(self, e: Emitter, x: Expr, axes: Expr | None, keepdims: int, noop: int) -> None:
        known = [] if axes is None or e.shape(axes) == (0,) else e.static_ints(axes)
        self.none = known == [] and bool(noop)
        """Whether nothing at all is reduced."""
        self._keep = {"keepdims": True} if keepdims else {}
        self._over: dict[str, Any] = {}
        if known is None and axes is not None:
            self._over = {"axis": axes if noop else ops.axes_or_all(axes, x)}
        elif known:
            self._over = {"axis": known[0] if len(known) == 1 else known}

    def apply(self, function: Expr, x: Expr) -> Expr:
        """`function(x, axis=…, keepdims=…)`, or `x` where nothing is reduced."""
        return x if self.none else function(x, **self._over, **self._keep)


def _reduction(op: str) -> Callable[[Callable[[Emitter, Expr, Axes], Expr]], Any]:
    """Registers `reduce(e, x, axes)` as the rule of a Reduce… op."""

    def register(reduce: Callable[[Emitter, Expr, Axes], Expr]) -> Any:
        @rule(op)
        def apply(
            e: Emitter,
            x: Expr,
            axes: Expr | None = None,
            *,
            keepdims: int = 1,
            noop_with_empty_axes: int = 0,
        ) -> Expr:
            return reduce(e, x, Axes(e, x, axes, keepdims, noop_with_empty_axes))

        return reduce

    return register


def _in_float(e: Emitter, x: Expr, compute: Callable[[Expr], Expr]) -> Expr:
    """A float function; of integers it is computed in double precision and cut off."""
    if is_float(e, x):
        return compute(x)
    return tf.cast(compute(tf.cast(x, tf.float64)), dtype(dtype_of(e, x)))


@_reduction("ReduceSum")
def reduce_sum(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_sum, x)


@_reduction("ReduceL1")
def reduce_l1(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_sum, x if e.dtype(x) in UNSIGNED else tf.abs(x))


@_reduction("ReduceSumSquare")
def reduce_sum_square(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_sum, tf.square(x))


@_reduction("ReduceL2")
def reduce_l2(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _in_float(e, x, lambda x: tf.abs(x) if over.none else over.apply(ops.euclidean_norm, x))


@_reduction("ReduceLogSum")
def reduce_log_sum(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _in_float(e, x, lambda x: tf.math.log(over.apply(tf.reduce_sum, x)))


@_reduction("ReduceLogSumExp")
def reduce_log_sum_exp(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _in_float(e, x, lambda x: over.apply(tf.reduce_logsumexp, x))


@_reduction("ReduceMean")
def reduce_mean(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_mean if is_float(e, x) else ops.integer_mean, x)


@_reduction("ReduceProd")
def reduce_product(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_prod, x)


@_reduction("ReduceMax")
def reduce_max(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_any if e.dtype(x) == _D.BOOL else tf.reduce_max, x)


@_reduction("ReduceMin")
def reduce_min(e: Emitter, x: Expr, over: Axes) -> Expr:
    return over.apply(tf.reduce_all if e.dtype(x) == _D.BOOL else tf.reduce_min, x)


def _index_of(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Expr:
        found = ops.last_index(function, x, axis) if select_last_index else function(x, axis)
        return tf.expand_dims(found, axis) if keepdims else found


_index_of("ArgMax", tf.argmax)
_index_of("ArgMin", tf.argmin)


def _running(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, axis: Expr, *, exclusive: int = 0, reverse: int = 0) -> Expr:
        given = {"exclusive": exclusive, "reverse": reverse}
        return function(x, scalar(e, axis), **{name: True for name, value in given.items() if value})


_running("CumSum", tf.cumsum)
_running("CumProd", tf.math.cumprod)
