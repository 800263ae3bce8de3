"""Matrix products: MatMul, Gemm, Einsum, Det, and the linear layer that passes recognise."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.weights import Part
from onward.backends.shared.linear import integer_gemm, weighted
from onward.backends.torch.target import F, dtype, nn, ops, rule, torch
from onward.backends.torch.window import typed
from onward.graph.narrow import unpacked
from onward.spec.linear import Einsum, Gemm, Linear, QuantizedLinear

_D = ir.DataType
WITHOUT_KERNELS = {_D.UINT16, _D.UINT32, _D.UINT64}
"""Types PyTorch can hold but not multiply."""


def is_float(e: Emitter, x: Expr) -> bool:
    of = e.dtype(x)
    return of is not None and of.is_floating_point()


def transposed(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.T


def linear_layer(e: Emitter, x: Expr, weight: Expr, bias: Expr | None, weight_is_transposed: bool) -> Expr:
    """`nn.Linear` with a constant weight: stored (out, in), or (in, out) where it is transposed.

    A product where the weight is a parameter by itself, as in `nn.MultiheadAttention`, or where the original's state
    dict has it transposed, as GPT-2's.
    """
    if e.named_otherwise(weight=weight, bias=bias) or (weight_is_transposed and e.in_state_dict(weight)):
        if not weight_is_transposed and (bias is None or e.rank(bias) == 1):
            return F.linear(x, weight) if bias is None else F.linear(x, weight, bias)
        product = x @ (weight if weight_is_transposed else weight.T)
        return product if bias is None else product + bias
    shape = e.shape(weight)
    assert shape is not None
    out, size = reversed(shape) if weight_is_transposed else shape
    options = {"bias": False} if bias is None else {}
    layer = nn.Linear(size, out, **options, **typed(e, weight))
    owned = Part(weight, transposed, "T") if weight_is_transposed else Part(weight)
    row = Part(bias, np.ravel, "row") if bias is not None and e.rank(bias) != 1 else bias
    return e.module(layer, "linear", weight=owned, bias=row)(x)


@rule("onward::Linear")
def linear(e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, *, p: Linear) -> Expr:
    return linear_layer(e, x, weight, bias, p.transposed)


@rule("onward::QuantizedLinear")
def quantized_linear(
    e: Emitter,
    x: Expr,
    weight: Expr,
    scales: Expr,
    zero_points: Expr | None = None,
    bias: Expr | None = None,
    *,
    p: QuantizedLinear,
) -> Expr:
    """A layer that keeps its codes in bytes, as the file does; zero points, of which there are few, are a byte each."""
    is_packed = zero_points is not None and e.dtype(zero_points) == _D.UINT8
    options: dict[str, Any] = {"bias": True} if bias is not None else {}
    if zero_points is not None:
        options["zero_points"] = dtype(_D.UINT8 if is_packed else _kind(e, zero_points))
    sizes = {"bits": p.bits, "block_size": p.block_size}
    layer = ops.QuantizedLinear(p.in_features, p.out_features, **sizes, **options, **typed(e, scales))

    def rows(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return a.reshape(p.out_features, -1)

    def apart(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return unpacked(rows(a), p.bits)[:, : p.blocks]

    points = None if zero_points is None else Part(zero_points, apart if is_packed else rows, "points")
    parts = {"weight": Part(weight, rows, "rows"), "scales": Part(scales, rows, "rows"), "zero_points": points}
    return e.module(layer, "linear", ("weight", "scales", "zero_points"), **parts, bias=bias)(x)


def _kind(e: Emitter, x: Expr) -> ir.DataType:
    kind = e.dtype(x)
    assert kind is not None
    return kind


@rule("MatMul")
def matmul(e: Emitter, a: Expr, b: Expr) -> Expr:
    if e.dtype(a) in WITHOUT_KERNELS:
        return ops.integer_matmul(a, b)
    return a @ b


def read_by_others(weight: Expr) -> bool:
    """Whether anything but right-hand sides of `x @ weight` reads the weight.

    A transposed copy for `nn.Linear` would then no longer be shared with that reader.
    """
    assert isinstance(weight, Arg)
    return any(
        use.idx != 1 or use.node.op_type not in ("Gemm", "MatMul") or use.node.attributes.get_int("transB", 0)
        for use in weight._value.uses()
    )


def _is_bias(e: Emitter, c: Expr | None, out: int | None) -> bool:
    """Whether the addend is a constant row of `out` numbers, or absent."""
    return c is None or (e.const(c) is not None and e.shape(c) in ((out,), (1, out)))


@rule("Gemm")
def gemm(e: Emitter, a: Expr, b: Expr, c: Expr | None = None, *, p: Gemm) -> Expr:
    plain = p.alpha == 1 and (p.beta == 1 or c is None)
    shape = e.shape(b)
    if plain and not p.transA and e.const(b) is not None and is_float(e, b) and shape is not None:
        out = shape[0 if p.transB else 1]
        if _is_bias(e, c, out) and (p.transB or not read_by_others(b)):
            return linear_layer(e, a, b, c, not p.transB)
    if e.dtype(a) in WITHOUT_KERNELS:
        return integer_gemm(a, b, c, p)
    if plain and p.transB and not p.transA and is_float(e, a) and (c is None or e.rank(c) == 1):
        return F.linear(a, b) if c is None else F.linear(a, b, c)
    if not is_float(e, a) and (p.alpha != 1 or p.beta != 1):
        return integer_gemm(a, b, c, p)
    left: Expr = a.T if p.transA else a
    right: Expr = b.T if p.transB else b
    return weighted(left @ right, c, p)


@rule("Det")
def determinant(e: Emitter, x: Expr) -> Expr:
    if e.dtype(x) in (_D.FLOAT16, _D.BFLOAT16):
        return torch.linalg.det(x.float()).to(x.dtype)
    return torch.linalg.det(x)


@rule("onward::Inverse")
def inverse(e: Emitter, x: Expr) -> Expr:
    return torch.linalg.inv(x)


@rule("Einsum")
def einsum(e: Emitter, *operands: Expr, p: Einsum) -> Expr:
    if e.dtype(operands[0]) in WITHOUT_KERNELS:
        return ops.integer_einsum(p.equation, *operands)
    return torch.einsum(p.equation, *operands)
