"""Reductions."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.reduce import Reduce
from onward_numpy.target import np, rule


@rule("ReduceMean")
def reduce_mean(e: Emitter, x: Expr, axes: Expr | None = None, *, p: Reduce) -> Expr:
    over = [] if axes is None else e.static_ints(axes)
    if not over:
        given = () if axes is None else e.numbers(axes)
        return ops.mean(x, given, keepdims=bool(p.keepdims), noop=bool(p.noop_with_empty_axes))
    return np.mean(x, axis=tuple(over), dtype=x.dtype, keepdims=bool(p.keepdims))
