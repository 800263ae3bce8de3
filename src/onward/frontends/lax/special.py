"""Special functions in the precision they are asked for, where double precision would cost many nodes."""

from __future__ import annotations

import math

import onnx_ir as ir

from onward.frontends.decompose import special
from onward.frontends.writer import Writer
from onward.graph.build import Builder, Tensor

CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682)  # fmt: skip
"""Polynomials for the inverse of erf in single precision, by M. Giles."""


def erf_inv(op: Writer, x: Tensor) -> Tensor:
    if x.dtype == ir.DataType.DOUBLE:
        return special.erfinv(op, x)
    y = x.cast(ir.DataType.FLOAT)
    w = op.Neg(special.log1p(op, op.Neg(y * y)))
    central = special.horner(op, w - 2.5, CENTRAL)
    tail = special.horner(op, op.Sqrt(w) - 3.0, TAIL)
    found = op.where(w < 5.0, central, tail) * y
    return op.where(op.Equal(op.Abs(y), 1.0), y * math.inf, found).cast(x.dtype)


def wide_sinh(op: Builder, x: Tensor) -> Tensor:
    """In any precision: by halves, which stay in range as long as the result does, and by exp(x) - 1 near zero."""
    half = op.Exp(op.Abs(x) - math.log(2))
    small = special.expm1(op, op.Min(op.Abs(x), op.like(1, x)))
    return op.Sign(x) * op.where(op.Abs(x) < 1.0, (small + small / (small + 1)) * 0.5, half - 0.25 / half)


def wide_cosh(op: Builder, x: Tensor) -> Tensor:
    half = op.Exp(op.Abs(x) - math.log(2))
    return half + 0.25 / half
