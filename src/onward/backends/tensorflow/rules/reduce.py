"""Reductions over axes, ArgMax and ArgMin, running sums and products."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.elementwise import in_float, is_float
from onward.backends.shared.reduce import known_axes, reductions
from onward.backends.tensorflow.dtypes import UNSIGNED, scalar
from onward.backends.tensorflow.target import TARGET, ops, rule, tf
from onward.spec.reduce import IndexOf, Reduce, Running

_D = ir.DataType


class Axes:
    """What a reduction is over, as arguments for a TensorFlow function that takes `axis` and `keepdims`."""

    def __init__(self, e: Emitter, x: Expr, axes: Expr | None, p: Reduce) -> None:
        known = known_axes(e, axes)
        self.none = known == [] and bool(p.noop_with_empty_axes)
        """Whether nothing at all is reduced."""
        self._keep = {"keepdims": True} if p.keepdims else {}
        self._over: dict[str, Any] = {}
        if known is None and axes is not None:
            self._over = {"axis": axes if p.noop_with_empty_axes else ops.axes_or_all(axes, x)}
        elif known:
            self._over = {"axis": known[0] if len(known) == 1 else known}

    def apply(self, function: Expr, x: Expr) -> Expr:
        """`function(x, axis=…, keepdims=…)`, or `x` where nothing is reduced."""
        return x if self.none else function(x, **self._over, **self._keep)


def _l2(e: Emitter, x: Expr, over: Axes) -> Expr:
    return in_float(e, x, lambda x: tf.abs(x) if over.none else over.apply(ops.euclidean_norm, x))


def _by_kind(e: Emitter, x: Expr, over: Axes, of_bools: Expr, of_numbers: Expr) -> Expr:
    return over.apply(of_bools if e.dtype(x) == _D.BOOL else of_numbers, x)


TARGET.rules.take(
    reductions(
        Axes,
        {
            "ReduceSum": lambda e, x, over: over.apply(tf.reduce_sum, x),
            "ReduceL1": lambda e, x, over: over.apply(tf.reduce_sum, x if e.dtype(x) in UNSIGNED else tf.abs(x)),
            "ReduceL2": _l2,
            "ReduceSumSquare": lambda e, x, over: over.apply(tf.reduce_sum, tf.square(x)),
            "ReduceLogSum": lambda e, x, over: in_float(e, x, lambda x: tf.math.log(over.apply(tf.reduce_sum, x))),
            "ReduceLogSumExp": lambda e, x, over: in_float(e, x, lambda x: over.apply(tf.reduce_logsumexp, x)),
            "ReduceMean": lambda e, x, over: over.apply(tf.reduce_mean if is_float(e, x) else ops.integer_mean, x),
            "ReduceProd": lambda e, x, over: over.apply(tf.reduce_prod, x),
            "ReduceMax": lambda e, x, over: _by_kind(e, x, over, tf.reduce_any, tf.reduce_max),
            "ReduceMin": lambda e, x, over: _by_kind(e, x, over, tf.reduce_all, tf.reduce_min),
        },
    )
)


def _index_of(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, p: IndexOf) -> Expr:
        found = ops.last_index(function, x, p.axis) if p.select_last_index else function(x, p.axis)
        return tf.expand_dims(found, p.axis) if p.keepdims else found


_index_of("ArgMax", tf.argmax)
_index_of("ArgMin", tf.argmin)


def _running(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, axis: Expr, p: Running) -> Expr:
        return function(x, scalar(e, axis), **options(exclusive=bool(p.exclusive), reverse=bool(p.reverse)))


_running("CumSum", tf.cumsum)
_running("CumProd", tf.math.cumprod)
