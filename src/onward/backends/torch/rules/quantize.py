"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, lift
from onward.backends.emit.facts import is_zero
from onward.backends.emit.settings import Setting, Step, plus
from onward.backends.emit.weights import Part
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.backends.torch.dtypes import FLOAT8
from onward.backends.torch.rules.cast import small_float
from onward.backends.torch.rules.linear import transposed
from onward.backends.torch.target import TARGET, dtype, ops, rule, torch
from onward.backends.torch.window import options, padded, padding, short
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS
from onward.spec.conv import Conv
from onward.spec.quantize import (
    Dequantize,
    DynamicConv,
    DynamicLinear,
    Int8Conv,
    Int8Linear,
    Quantize,
    Rounded,
    Steps,
)

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("QuantizeLinear")
def quantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Quantize) -> Expr:
    divisor = spread(e, x, scale, p, "scale", p.precision if e.dtype(scale) == p.precision else None)
    ratio, offset = shared.divided(e, x, scale, divisor, p), _zero_points(e, x, zero_point, p)
    if p.dtype in SMALL_FLOATS:
        return small_float(plus(ratio, offset), p.dtype, p.saturate)
    whole = torch.round(ratio)
    if p.precision in (_D.FLOAT16, _D.BFLOAT16):
        whole = whole.to(torch.float32)
    return torch.clamp(plus(whole, offset), *INTEGER_RANGES[p.dtype]).to(dtype(p.dtype))


@rule("DequantizeLinear")
def dequantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Dequantize) -> Expr:
    factor = spread(e, x, scale, p, "scale", _D.FLOAT)
    return shared.multiplied(e, x, scale, factor, _zero_points(e, x, zero_point, p), p)


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, p: Steps) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    if zero_point is None:
        return None
    of = e.dtype(zero_point)
    points = spread(e, x, zero_point, p, "zero_point", of if of in (_D.INT8, _D.UINT8) else _D.FLOAT)
    if shared.is_tensor(points) and is_zero(e, zero_point):
        return None
    return points.to(torch.float32) if of in FLOAT8 and shared.is_tensor(points) else points


def spread(e: Emitter, x: Expr, parameter: Expr, p: Steps, role: str, dtype: ir.DataType | None) -> Any:
    """A scale or zero point, so that it broadcasts with `x`; `dtype` is that of a tensor which may hold a number."""
    alone = shared.per_tensor(e, x, parameter, role, dtype)
    if alone is not None:
        return alone
    rank, own = e.rank(x), e.rank(parameter)
    if p.block_size and own != 1:
        return ops.per_block(parameter, x.shape, p.axis, p.block_size)
    if not rank or own is None or p.block_size:
        return ops.per_axis(parameter, x.shape, p.axis, p.block_size)
    after = rank - 1 - p.axis % rank
    return parameter.reshape(-1, *[1] * after) if after else parameter


@rule("ConvInteger")
def integer_conv(
    e: Emitter, x: Expr, w: Expr, x_zero_point: Expr | None = None, w_zero_point: Expr | None = None, *, p: Conv
) -> Expr:
    window = lists(e, stride=p.strides, padding=padding(p), dilation=p.dilations)
    return shared.integer_conv(e, x, x, w, x_zero_point, w_zero_point, **window, **options(groups=p.group))


@rule("onward::Rounded")
def rounded(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Rounded) -> Expr:
    factor, point = e.scalar(scale, e.rank(x)), 0 if zero_point is None else e.scalar(zero_point, e.rank(x))
    settings = {
        "scale": Setting(factor, "scale", _D.FLOAT),
        "zero_point": Setting(point, "zero_point", _D.INT32),
    }
    bounds = {} if (p.low, p.high) == (0, 255) else {"low": lift(p.low), "high": lift(p.high)}
    return Step(ops.fake_quantize, ops.FakeQuantize(**bounds), "quantize", x, settings, bounds)


@dataclass(frozen=True)
class _Codes:
    """The parts of a layer whose weight is kept in 8 bits."""

    weight: Part
    scale: Expr
    zero_point: Expr | None
    bias: Expr | None

    def layer(self, e: Emitter, name: str, hint: str, *sizes: Any, **options: Any) -> Expr:
        """The module, of a class of this name."""
        scales, has_offset = e.const(self.scale), self.zero_point is not None
        is_signed = e.dtype(self.weight.source) == _D.INT8
        told = {
            "bias": None if self.bias is not None else False,
            "per_channel": True if scales is not None and scales.size > 1 else None,
            "zero_point": has_offset if has_offset == is_signed else None,
            "dtype": None if is_signed else dtype(_D.UINT8),
        }
        parts: dict[str, Any] = {"weight": self.weight, "scale": Part(self.scale, _flat, "flat")}
        if self.zero_point is not None:
            parts["zero_point"] = Part(self.zero_point, _flat, "flat")
        if self.bias is not None:
            parts["bias"] = self.bias if e.rank(self.bias) == 1 else Part(self.bias, np.ravel, "row")
        made = getattr(ops, name)(*sizes, **given(**told), **options)
        return e.module(made, hint, ("weight", "scale", "zero_point"), **parts)


def _flat(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One number without an axis, several along one."""
    return a.reshape(() if a.size == 1 else -1)


@rule("onward::DynamicLinear")
def dynamic_linear(
    e: Emitter,
    x: Expr,
    weight: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    bias: Expr | None = None,
    *,
    p: DynamicLinear,
) -> Expr:
    codes = _Codes(Part(weight, transposed, "T"), scale, zero_point, bias)
    return codes.layer(e, "DynamicLinear", "linear", *(e.shape(weight) or ()), **_sums(p.in_single))(x)


@rule("onward::Int8Linear")
def int8_linear(
    e: Emitter,
    x: Expr,
    weight: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    bias: Expr | None = None,
    *,
    p: Int8Linear,
) -> Expr:
    codes = _Codes(Part(weight, transposed, "T") if p.transposed else Part(weight), scale, zero_point, bias)
    sizes = (e.shape(weight) or ())[:: 1 if p.transposed else -1]
    return codes.layer(e, "Int8Linear", "linear", *sizes)(x)


@rule("onward::DynamicConv", "onward::Int8Conv")
def int8_conv(
    e: Emitter,
    x: Expr,
    weight: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    bias: Expr | None = None,
    *,
    p: DynamicConv | Int8Conv,
) -> Expr:
    """Padding beforehand is the same: where the input is rounded, its range always includes zero."""
    win, (out, channels, *kernel) = p.window, e.shape(weight) or ()
    assert win is not None and channels is not None
    if not win.symmetric:
        x = padded(x, win)
    window = options(
        stride=short(win.strides),
        padding=short(win.begin) if win.begin and win.symmetric else 0,
        dilation=short(win.dilations),
        groups=p.group,
    )
    dynamic: dict[str, Any] = {}
    if isinstance(p, DynamicConv):
        dynamic = _sums(p.in_single) | ({"whole_bias": True} if p.whole_bias else {})
    codes = _Codes(Part(weight), scale, zero_point, bias)
    return codes.layer(e, e.node.op_type, "conv", channels * p.group, out, tuple(kernel), **window, **dynamic)(x)


def _sums(in_single: bool) -> dict[str, Expr]:
    """The float type in which sums are exact, where it is not the default."""
    return {} if in_single else {"sums": torch.float64}
