"""What is around products of matrices."""

from __future__ import annotations

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.linear import Gemm


def integer_gemm(a: Expr, b: Expr, c: Expr | None, p: Gemm) -> Expr:
    return ops.integer_gemm(a, b, c, alpha=p.alpha, beta=p.beta, trans_a=p.transA, trans_b=p.transB)


def weighted(product: Expr, c: Expr | None, p: Gemm) -> Expr:
    """`alpha * product + beta * c`, written with what of it there is to do."""
    scaled = product if p.alpha == 1 else p.alpha * product
    if c is None or p.beta == 0:
        return scaled
    return scaled + (c if p.beta == 1 else p.beta * c)


def is_alone(e: Emitter, weight: Expr) -> bool:
    """Whether nothing else reads a constant weight, so that it is written as the product takes it."""
    if not isinstance(weight, Arg) or e.const(weight) is None:
        return False
    return len(weight._value.uses()) == 1 and not weight._value.is_graph_output()
