"""Matrix products: MatMul, Gemm, Einsum, Det, and the linear layer that passes recognise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.dtypes import HALVES
from onward.backends.jax.filled import is_filled
from onward.backends.jax.target import dtype, jnp, ops, rule
from onward.backends.shared.elementwise import is_float
from onward.backends.shared.layer_weights import Arrangement, owned
from onward.backends.shared.linear import integer_gemm, is_alone, weighted
from onward.spec.linear import Einsum, Gemm, Linear

_D = ir.DataType


@rule("onward::Linear")
def linear(e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, *, p: Linear) -> Expr:
    turned = p.transposed or is_alone(e, weight)
    now: dict[str, Arrangement] = {} if p.transposed or not turned else {"weight": (np.transpose, "T")}
    kernel, offset = owned(e, "linear", now, weight=weight, bias=bias)
    assert kernel is not None
    product = _product(e, weight, x, kernel if turned else kernel.T)
    return product if offset is None else product + offset


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    return _product(e, b, a, b)


def _product(e: Emitter, given: Expr, left: Expr, right: Expr) -> Expr:
    """A matrix product; `given` is the input that the right factor is made of."""
    return ops.by_filled(left, right) if is_filled(e, given) else left @ right


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr:
    if not is_float(e, a) and (p.alpha != 1 or p.beta != 1):
        return integer_gemm(a, b, c, p)
    right: Expr | None = b
    if e.const(b) is not None and not p.transA:
        right, c = owned(e, "linear", weight=b, bias=c)
    assert right is not None
    return weighted(_product(e, b, a.T if p.transA else a, right.T if p.transB else right), c, p)


def _of_matrices(function: Expr) -> Callable[[Emitter, Expr], Expr]:
    """A function of matrices, which JAX has in single and double precision."""

    def apply(e: Emitter, x: Expr) -> Expr:
        return function(x.astype(dtype(_D.FLOAT))).astype(x.dtype) if e.dtype(x) in HALVES else function(x)

    return apply


rule("Det")(_of_matrices(jnp.linalg.det))
rule("onward::Inverse")(_of_matrices(jnp.linalg.inv))


@rule("Einsum")
def einsum(e: Emitter, *operands: Expr, p: Einsum) -> Expr:
    filled = [i for i, x in enumerate(operands) if is_filled(e, x)]
    if filled:
        return ops.einsum_of_filled(p.equation, filled, *operands)
    return jnp.einsum(p.equation, *operands)
