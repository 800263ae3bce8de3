"""Linear layers."""

from __future__ import annotations

import numpy as np

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.weights import Part
from onward.backends.keras.target import applied, made, owning, owns, rule
from onward.spec.linear import Gemm, Linear


@rule("onward::Linear")
def linear(e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, *, p: Linear) -> Expr | None:
    return _dense(e, x, weight, bias, not p.transposed)


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr | None:
    return _dense(e, a, b, c, p.transB) if (p.alpha, p.beta, p.transA) == (1, 1, False) else None


def _dense(e: Emitter, x: Expr, weight: Expr, bias: Expr | None, turned: bool) -> Expr | None:
    shape, matrix = e.shape(x), e.const(weight)
    if shape is None or len(shape) < 2 or shape[-1] is None or matrix is None or not owns(e, weight, bias):
        return None
    outputs = matrix.shape[0 if turned else 1]
    row = None if bias is None else e.shape(bias)
    if matrix.ndim != 2 or (row is not None and (row[-1:] != (outputs,) or set(row[:-1]) - {1})):
        return None
    layer = made(e, x, "Dense", outputs, **({"use_bias": False} if bias is None else {}))
    kernel = Part(weight, np.transpose, "T") if turned else Part(weight)
    flat = Part(bias, np.ravel, "row") if row is not None and len(row) > 1 else bias
    return applied(e, owning(e, layer, "linear", weight=kernel, bias=flat), x)
