"""Matrix products."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.linear import weighted
from onward.spec.linear import Gemm
from onward_numpy.target import rule


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a @ b


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr:
    return weighted((a.T if p.transA else a) @ (b.T if p.transB else b), c, p)
