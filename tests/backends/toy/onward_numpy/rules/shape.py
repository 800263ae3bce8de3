"""Other shapes of the same elements."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.shape import Flatten, Reshape, Transpose
from onward_numpy.target import np, rule


@rule("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, p: Reshape) -> Expr:
    dims = e.static_ints(shape)
    if dims is None or (0 in dims and not p.allowzero):
        return ops.reshape(x, e.numbers(shape), allowzero=bool(p.allowzero))
    return x.reshape(*dims)


@rule("Flatten")
def flatten(e: Emitter, x: Expr, p: Flatten) -> Expr:
    return ops.flatten(x, p.axis)


@rule("Transpose")
def transpose(e: Emitter, x: Expr, p: Transpose) -> Expr:
    return x.T if p.perm is None else np.transpose(x, tuple(p.perm))
