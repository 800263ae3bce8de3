"""What quantization means, and when sums of products of 8-bit integers can be computed in floating point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from onward.spec.cast import INTEGER_RANGES
from onward.spec.conv import Conv
from onward.spec.meaning import Spec, attributes, means

_D = ir.DataType

EXACT = 2**24
"""All integers up to this are float32 numbers: a sum whose terms add up to no more is exact in any order."""


@dataclass(frozen=True)
class Steps(Spec):
    """Where scales and zero points differ: from slice to slice along an axis, or from block to block of a size."""

    dtype: ir.DataType
    """Of the result."""
    axis: int = 1
    block_size: int = 0


@means("QuantizeLinear")
@dataclass(frozen=True)
class Quantize(Steps):
    precision: ir.DataType = _D.FLOAT
    """In which the input is divided by the scale."""
    saturate: bool = True

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        to, precision = _D(given.pop("output_dtype", 0) or _D.UINT8), given.pop("precision", 0)
        division = _D(precision) if precision else _dtype(node, 1) or _D.FLOAT
        if not division.is_floating_point() or division == _D.FLOAT8E8M0:
            division = _D.FLOAT
        saturate = bool(given.pop("saturate", 1))
        return cls(_dtype(node, 2) or to, precision=division, saturate=saturate, **given)


@means("DequantizeLinear")
@dataclass(frozen=True)
class Dequantize(Steps):
    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        to = given.pop("output_dtype", 0)
        return cls(_D(to) if to else _dtype(node, 1) or _D.FLOAT, **given)


def _dtype(node: ir.Node, index: int) -> ir.DataType | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    return None if value is None else value.dtype


@means("com.microsoft::MatMulNBits")
@dataclass(frozen=True)
class BlockProduct(Spec):
    """A product with a weight of shape (rows, columns), transposed, each row of which is quantized in blocks."""

    columns: int
    rows: int
    size: int
    """Columns in a block; the last one is filled up."""
    bits: int
    prepacked: bool
    """Whether its bytes are in an order of one processor's own."""

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        prepacked = bool(given.get("weight_prepacked", 0))
        return cls(given["K"], given["N"], given["block_size"], given.get("bits", 4), prepacked)

    @property
    def blocks(self) -> int:
        """Of a row."""
        return -(-self.columns // self.size)

    @property
    def is_padded(self) -> bool:
        return self.blocks * self.size > self.columns


@means("onward::FakeQuantize")
@dataclass(frozen=True)
class FakeQuantize(Spec):
    low: float
    high: float


@means("onward::DynamicLinear")
@dataclass(frozen=True)
class DynamicLinear(Spec):
    """A layer of 8-bit weights, (in, out), whose input is rounded to 8 bits over the range of its values."""

    in_single: bool = False
    """Whether its sums are exact in single precision."""


@means("onward::DynamicConv")
@dataclass(frozen=True)
class DynamicConv(Conv):
    """The same for a convolution."""

    in_single: bool = False
    whole_bias: bool = False
    """Whether the bias is added in whole steps of what the sums are worth."""


@means("onward::Int8Linear")
@dataclass(frozen=True)
class Int8Linear(Spec):
    """A layer that decodes its 8-bit weights."""

    transposed: bool = False
    """The weight is (in, out), not (out, in)."""


@means("onward::Int8Conv")
@dataclass(frozen=True)
class Int8Conv(Conv):
    """The same for a convolution."""


@means("onward::Rounded")
@dataclass(frozen=True)
class Rounded(Spec):
    """The integers that numbers are rounded to."""

    low: int
    high: int


def largest_distance(of: ir.DataType | None, zero_point: np.ndarray[Any, Any] | None) -> int:
    """How far an 8-bit integer can be from its zero point; None is a zero point that is not known."""
    low, high = INTEGER_RANGES.get(of or ir.DataType.UNDEFINED, (-128, 255))
    if zero_point is None:
        return high - low
    points = zero_point.astype(np.int64)
    return int(max(high - points.min(), points.max() - low))


def largest_sum(
    x_distance: int, weight: np.ndarray[Any, Any], weight_zero_point: np.ndarray[Any, Any], axes: tuple[int, ...]
) -> int:
    """A bound of every sum over `axes` of products of a constant weight and integers, both without zero points."""
    distance = np.abs(weight.astype(np.int16) - weight_zero_point.astype(np.int16))
    return x_distance * int(distance.sum(axis=axes, dtype=np.int64).max(initial=0))
