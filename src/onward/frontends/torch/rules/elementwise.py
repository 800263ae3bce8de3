"""Arithmetic on signs, exponents and whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose.loops import loop
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor


@rule("signbit")
def signbit(op: Builder, x: Tensor) -> Tensor:
    """Whether a number is negative; of zeros, whether one divided by it is."""
    if not x.dtype.is_floating_point():
        return x < 0
    return op.Or(x < 0.0, op.And(op.Equal(x, op.like(0.0, x)), 1.0 / x < 0.0))


@rule("copysign.Tensor")
def copysign(op: Builder, x: Tensor, sign: Tensor) -> Tensor:
    if not x.dtype.is_floating_point():
        raise UnsupportedError("whole numbers are not supported")
    size = op.Abs(x)
    return op.where(signbit(op, sign), -size, size)


@rule("hypot")
def hypot(op: Builder, a: Tensor, b: Tensor) -> Tensor:
    """In parts of the larger, so that nothing overflows."""
    a, b = op.Abs(a), op.Abs(b)
    large, small = op.Max(a, b), op.Min(a, b)
    zero, one = op.like(0.0, a), op.like(1.0, a)
    part = small / op.where(op.Equal(large, zero), one, large)
    found = large * op.Sqrt(part * part + 1.0)
    return op.where(op.Or(op.IsInf(a), op.IsInf(b)), op.like(math.inf, a), found)


@rule("frexp.Tensor")
def frexp(op: Builder, x: Tensor) -> Sequence[Tensor]:
    """A share of at least one half, and a power of two."""
    if x.dtype == ir.DataType.DOUBLE:
        raise UnsupportedError("double precision is not supported, as there is no wider dtype to scale in")
    z = x.cast(ir.DataType.DOUBLE)
    size = op.Abs(z)
    plain = op.And(size > 0.0, size < math.inf)
    exponent = op.Floor(op.Log(op.where(plain, size, op.like(1.0, z))) * (1 / math.log(2))) + 1.0
    share = z * op.Pow(op.like(2.0, z), -exponent)
    exponent = op.where(op.Abs(share) >= 1.0, exponent + 1.0, op.where(op.Abs(share) < 0.5, exponent - 1.0, exponent))
    share = z * op.Pow(op.like(2.0, z), -exponent)
    exponent = op.where(plain, exponent, op.like(0.0, z))
    return op.where(plain, share, z).cast(x.dtype), exponent.cast(ir.DataType.INT32)


@rule("gcd")
def gcd(op: Builder, a: Tensor, b: Tensor) -> Tensor:
    """Euclid's algorithm, until all are done."""
    if a.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        raise UnsupportedError(f"{a.dtype.name.lower()} is not supported")
    shape = op.Shape(a + b)
    start = [op.Expand(op.Abs(x), shape) for x in (a, b)]

    def goes_on(pair: Sequence[Tensor]) -> Tensor:
        return op.ReduceMax(pair[1], keepdims=0) > 0

    def step(number: Tensor, pair: Sequence[Tensor]) -> Sequence[Tensor]:
        large, small = pair
        done = op.Equal(small, op.like(0, small))
        rest = op.Mod(large, op.where(done, op.like(1, small), small))
        return op.Where(done, large, small), op.where(done, op.like(0, small), rest)

    return loop(op, step, start, goes_on=goes_on)[0]


@rule("lcm")
def lcm(op: Builder, a: Tensor, b: Tensor) -> Tensor:
    divisor = gcd(op, a, b)
    none = op.Equal(divisor, op.like(0, divisor))
    return op.Abs(op.Div(a, op.where(none, op.like(1, divisor), divisor)) * b)
