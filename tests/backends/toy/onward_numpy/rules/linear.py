"""Matrix products."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward_numpy.target import rule


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a @ b


@rule("Gemm")
def gemm(
    e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, alpha: float, beta: float, transA: int, transB: int
) -> Expr:
    product = (a.T if transA else a) @ (b.T if transB else b)
    scaled = product if alpha == 1 else alpha * product
    return scaled if c is None else scaled + (c if beta == 1 else beta * c)
