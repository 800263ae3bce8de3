"""Matrix products."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.spec.linear import Gemm
from onward_numpy.target import rule


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a @ b


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr:
    product = (a.T if p.transA else a) @ (b.T if p.transB else b)
    scaled = product if p.alpha == 1 else p.alpha * product
    return scaled if c is None else scaled + (c if p.beta == 1 else p.beta * c)
