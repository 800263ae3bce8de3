"""Matrix products: MatMul, Gemm, Einsum, Det, and the linear layer that passes recognise."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.matlab.equations import explicit
from onward.backends.matlab.rules.elementwise import is_real
from onward.backends.matlab.rules.shape import dims_of, reshaped
from onward.backends.matlab.target import ops, rank_of, rule
from onward.backends.shared.layer_weights import Arrangement, owned
from onward.backends.shared.linear import is_alone, weighted
from onward.spec.linear import Einsum, Gemm, Linear

_D = ir.DataType


@rule("onward::Linear")
def linear(e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, *, p: Linear) -> Expr:
    """The weight is an array out x in, as textbooks have it, unless something else reads it too."""
    turned = p.transposed or is_alone(e, weight)
    now: dict[str, Arrangement] = {} if p.transposed or not turned else {"weight": (np.transpose, "T")}
    kernel, offset = owned(e, "linear", now, weight=weight, bias=bias)
    assert kernel is not None
    matrix = kernel if turned else kernel.T
    product = matrix @ x if rank_of(e, x) <= 2 else ops.matmul(x, matrix)
    return product if offset is None else product + offset


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    """MATLAB's product has its factors the other way round, since rows are columns there."""
    return product(e, a, b, a, b) if is_real(e, a) else _of_integers(e, a, b)


def product(e: Emitter, a: Expr, b: Expr, left: Expr, right: Expr) -> Expr:
    """A product of floats that are made of the elements of `a` and `b`."""
    m, n = rank_of(e, a), rank_of(e, b)
    if m <= 2 and n == 2:
        return right @ left
    if n == 1 and m <= 2:
        return (left.T @ right) if m == 2 else (right.T @ left)
    return _pages(e, ops.matmul(left, right.T if n == 1 else right), a, b)


def _of_integers(e: Emitter, a: Expr, b: Expr) -> Expr:
    return _pages(e, ops.matmul_integers(a, b.T if rank_of(e, b) == 1 else b), a, b)


def _pages(e: Emitter, product: Expr, a: Expr, b: Expr) -> Expr:
    """A product without the dimension of 1 that a vector got."""
    m, n = rank_of(e, a), rank_of(e, b)
    if m > 1 and n == 1:
        return reshaped(e, product, dims_of(e, a)[:-1])
    if m == 1 and n > 2:
        dims = dims_of(e, b)
        return reshaped(e, product, [*dims[:-2], dims[-1]])
    return product


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr:
    right: Expr | None = b
    if e.const(b) is not None and not p.transA:
        right, c = owned(e, "linear", weight=b, bias=c)
    assert right is not None
    left, right = a.T if p.transA else a, right.T if p.transB else right
    if not is_real(e, a):
        return ops.gemm_integers(left, right, c, p.alpha, p.beta)
    return weighted(right @ left, c, p)


@rule("Det")
def determinant(e: Emitter, x: Expr) -> Expr:
    return reshaped(e, ops.determinant(x), dims_of(e, x)[:-2])


@rule("onward::Inverse")
def inverse(e: Emitter, x: Expr) -> Expr:
    return ops.inverse(x)


@rule("Einsum")
def einsum(e: Emitter, *operands: Expr, p: Einsum) -> Expr:
    """The helper takes an equation that says everything."""
    return ops.einsum(explicit(p.equation, [rank_of(e, x) for x in operands]), *operands)
