"""Matrix products: MatMul, Gemm, Einsum, Det, and the linear layer that passes recognise."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, lift
from onward.backends.shared.linear import integer_gemm, weighted
from onward.backends.tensorflow.dtypes import dtype_of, is_float
from onward.backends.tensorflow.layer_weights import Arrangement, owned
from onward.backends.tensorflow.target import dtype, ops, rule, tf
from onward.spec.linear import Einsum, Gemm, Linear

_D = ir.DataType
NARROW = {_D.INT8, _D.UINT8, _D.INT16, _D.UINT16, _D.UINT32, _D.UINT64}
"""Integers that TensorFlow cannot multiply as matrices."""


@rule("onward::Linear")
def linear(e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, *, p: Linear) -> Expr:
    weight, turn, kept = _layer(e, x, weight, bias, not p.transposed)
    product = _product(e, x, weight, turn)
    return product if kept is None else product + kept


def _layer(e: Emitter, x: Expr, weight: Expr, bias: Expr | None, turn: bool) -> tuple[Expr, bool, Expr | None]:
    """The weights of a layer, and whether one still has to be transposed: it is now, if nothing else reads it."""
    alone = isinstance(weight, Arg) and len(weight._value.uses()) == 1 and e.rank(x) not in (None, 1)
    now: dict[str, Arrangement] = {"weight": (np.transpose, "T")} if turn and alone else {}
    found, kept = owned(e, "linear", now, weight=weight, bias=bias)
    return (weight, turn, kept) if found is None else (found, turn and not now, kept)


def _product(e: Emitter, x: Expr, weight: Expr, turn: bool) -> Expr:
    """`x @ weight`, or with the weight's transpose."""
    if e.rank(x) in (None, 1):
        return ops.matmul(x, tf.transpose(weight) if turn else weight)
    return tf.matmul(x, weight, transpose_b=True) if turn else x @ weight


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    return _wide(e, _matmul, a, b)


def _matmul(e: Emitter, ranks: list[int | None], a: Expr, b: Expr) -> Expr:
    left, right = ranks
    return ops.matmul(a, b) if None in (left, right) or 1 in (left, right) else a @ b


def _wide(e: Emitter, compute: Any, *operands: Expr) -> Expr:
    """A product; where TensorFlow cannot multiply such integers, their 64-bit product has the same low bits."""
    ranks = [e.rank(x) for x in operands]
    if e.dtype(operands[0]) not in NARROW:
        return lift(compute(e, ranks, *operands))
    return tf.cast(compute(e, ranks, *(tf.cast(x, tf.int64) for x in operands)), dtype(dtype_of(e, operands[0])))


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr:
    if not is_float(e, a) and (e.dtype(a) in NARROW or p.alpha != 1 or p.beta != 1):
        return integer_gemm(a, b, c, p)
    if p.transA:
        product = tf.matmul(a, b, transpose_a=True, **({"transpose_b": True} if p.transB else {}))
        if c is not None and (e.shape(c) or ())[:1] == (1,) and e.rank(c) == 2:
            c = c[0]  # TensorFlow's optimizer takes a (1, n) matrix for a bias here, and then refuses it
    else:
        weight, turn, c = _layer(e, a, b, c, p.transB) if e.const(b) is not None else (b, p.transB, c)
        product = _product(e, a, weight, turn)
    return weighted(product, c, p)


@rule("Det")
def determinant(e: Emitter, x: Expr) -> Expr:
    if e.dtype(x) in (_D.FLOAT16, _D.BFLOAT16):
        return tf.cast(tf.linalg.det(tf.cast(x, tf.float32)), dtype(dtype_of(e, x)))
    return tf.linalg.det(x)


@rule("onward::Inverse")
def inverse(e: Emitter, x: Expr) -> Expr:
    if e.dtype(x) in (_D.FLOAT16, _D.BFLOAT16):
        return tf.cast(tf.linalg.inv(tf.cast(x, tf.float32)), dtype(dtype_of(e, x)))
    return tf.linalg.inv(x)


@rule("Einsum")
def einsum(e: Emitter, *operands: Expr, p: Einsum) -> Expr:
    written = explicit(p.equation)
    return _wide(e, lambda e, ranks, *xs: tf.einsum(written, *xs), *operands)


def explicit(equation: str) -> str:
    """An equation with its result, which is by default the ellipsis and then the letters that are there once."""
    equation = equation.replace(" ", "")
    if "->" in equation:
        return equation
    counts = Counter(equation.replace("...", "").replace(",", ""))
    once = "".join(sorted(letter for letter, count in counts.items() if count == 1))
    return f"{equation}->{'...' if '...' in equation else ''}{once}"
