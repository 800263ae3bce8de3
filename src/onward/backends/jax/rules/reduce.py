"""Reductions over axes, ArgMax and ArgMin, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.jax.dtypes import UNSIGNED
from onward.backends.jax.numbers import scalar
from onward.backends.jax.target import TARGET, jax, jnp, lax, ops, rule
from onward.backends.shared.elementwise import in_float, is_float
from onward.backends.shared.reduce import known_axes, reductions
from onward.backends.shared.shape import axis_of
from onward.spec.reduce import IndexOf, Reduce, Running

_D = ir.DataType


class Axes:
    """What a reduction is over, as arguments for a function or method that takes `axis` and `keepdims`."""

    def __init__(self, e: Emitter, x: Expr, axes: Expr | None, p: Reduce) -> None:
        known = known_axes(e, axes)
        self.none = known == [] and bool(p.noop_with_empty_axes)
        """Whether nothing at all is reduced."""
        self._known = known
        self._shape = e.shape(x)
        self._over: list[Any] = []
        if known is None and axes is not None:
            listed = e.numbers(axes)
            self._over = [Name("tuple")(listed) if p.noop_with_empty_axes else ops.axes_or_all(listed)]
        elif known:
            self._over = [known[0] if len(known) == 1 else tuple(known)]
        self._keep = {"keepdims": True} if p.keepdims else {}

    @property
    def may_be_empty(self) -> bool:
        """Whether it is not sure that there is something to reduce."""
        if self._known is None or self._shape is None:
            return True
        return any(not self._shape[i] for i in self._known or range(len(self._shape)))

    def of(self, x: Expr, method: str, **extra: Any) -> Expr:
        """`x.method(axis, keepdims=…)`, or `x` where nothing is reduced."""
        if self.none:
            return x
        called: Expr = getattr(x, method)
        return called(*self._over, **self._keep, **extra)

    def apply(self, function: Expr, x: Expr, **extra: Any) -> Expr:
        """`function(x, axis, keepdims=…)`, or `x` where nothing is reduced."""
        return x if self.none else function(x, *self._over, **self._keep, **extra)


def _width(e: Emitter, x: Expr) -> dict[str, Any]:
    """Keeps sums and products of integers, which JAX would widen, in their dtype."""
    return {} if is_float(e, x) or e.dtype(x) in (_D.INT64, _D.UINT64) else {"dtype": x.dtype}


def _sum(e: Emitter, x: Expr, over: Axes, term: Callable[[Expr], Expr] = lambda x: x) -> Expr:
    return over.of(term(x), "sum", **_width(e, x))


def _extreme(e: Emitter, x: Expr, over: Axes, method: str, helper: Expr) -> Expr:
    return over.apply(helper, x) if over.may_be_empty else over.of(x, method)


TARGET.rules.take(
    reductions(
        Axes,
        {
            "ReduceSum": _sum,
            "ReduceL1": lambda e, x, over: _sum(e, x, over, (lambda x: x) if e.dtype(x) in UNSIGNED else jnp.abs),
            "ReduceL2": lambda e, x, over: in_float(
                e, x, lambda x: jnp.abs(x) if over.none else over.apply(ops.euclidean_norm, x)
            ),
            "ReduceSumSquare": lambda e, x, over: _sum(e, x, over, jnp.square),
            "ReduceLogSum": lambda e, x, over: in_float(e, x, lambda x: jnp.log(over.of(x, "sum"))),
            "ReduceLogSumExp": lambda e, x, over: in_float(e, x, lambda x: over.apply(jax.nn.logsumexp, x)),
            "ReduceMean": lambda e, x, over: over.of(x, "mean") if is_float(e, x) else over.apply(ops.integer_mean, x),
            "ReduceProd": lambda e, x, over: over.of(x, "prod", **_width(e, x)),
            "ReduceMax": lambda e, x, over: _extreme(e, x, over, "max", ops.reduce_max),
            "ReduceMin": lambda e, x, over: _extreme(e, x, over, "min", ops.reduce_min),
        },
    )
)


def _index_of(op: str, method: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, p: IndexOf) -> Expr:
        keep = {"keepdims": True} if p.keepdims else {}
        if p.select_last_index:
            return ops.last_index(function, x, p.axis, **keep)
        own: Expr = getattr(x, method)
        return own(p.axis, **keep)


_index_of("ArgMax", "argmax", jnp.argmax)
_index_of("ArgMin", "argmin", jnp.argmin)


def _running(op: str, function: Expr, start: int) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, axis: Expr, p: Running) -> Expr:
        along = scalar(e, axis, "axis")
        along = axis_of(e, x, along) if isinstance(along, int) else along
        if isinstance(along, Expr) or along < 0:
            along = e.let_host(along % x.ndim if isinstance(along, Expr) else x.ndim + along, "axis")
        backward = options(reverse=bool(p.reverse))
        return function(ops.shifted(x, along, start, **backward) if p.exclusive else x, along, **backward)


_running("CumSum", lax.cumsum, 0)
_running("CumProd", lax.cumprod, 1)
