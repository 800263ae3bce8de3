"""What conversions between dtypes mean, and the number formats of ONNX that frameworks lack or treat differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.spec.meaning import Spec, attributes, means

_D = ir.DataType


@means("Cast", "CastLike")
@dataclass(frozen=True)
class Cast(Spec):
    to: ir.DataType
    saturate: int = 1
    round_mode: str = "up"

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        like = node.inputs[1] if node.op_type == "CastLike" else None
        to = given.pop("to", None) if like is None else like.dtype
        if to is None:
            raise UnsupportedError("the dtype that CastLike casts to is not known")
        return cls(_D(to), **given)


@means("BitCast")
@dataclass(frozen=True)
class BitCast(Spec):
    to: int


@dataclass(frozen=True)
class SmallFloat:
    """A float format of 8 bits or less; every value fits a float32."""

    mantissa: int
    """Bits after the point."""
    lowest_exponent: int
    """Of the smallest normal number; below it the spacing stays the same."""
    largest: float
    bytes: bool
    """Whether it takes a whole byte, as the dtypes do that frameworks know."""


SMALL_FLOATS = {
    _D.FLOAT8E4M3FN: SmallFloat(3, -6, 448.0, True),
    _D.FLOAT8E4M3FNUZ: SmallFloat(3, -7, 240.0, True),
    _D.FLOAT8E5M2: SmallFloat(2, -14, 57344.0, True),
    _D.FLOAT8E5M2FNUZ: SmallFloat(2, -15, 57344.0, True),
    _D.FLOAT6E2M3: SmallFloat(3, 0, 7.5, False),
    _D.FLOAT6E3M2: SmallFloat(2, -2, 28.0, False),
    _D.FLOAT4E2M1: SmallFloat(1, 0, 6.0, False),
}

SMALL_INTEGERS = {_D.INT4: (4, True), _D.UINT4: (4, False), _D.INT2: (2, True), _D.UINT2: (2, False)}
"""Width and signedness of the integers of less than a byte."""

INTEGER_RANGES = {
    _D.UINT8: (0, 255),
    _D.INT8: (-128, 127),
    _D.UINT16: (0, 65535),
    _D.INT16: (-32768, 32767),
    _D.UINT4: (0, 15),
    _D.INT4: (-8, 7),
    _D.UINT2: (0, 3),
    _D.INT2: (-2, 1),
}
"""The integers that tensors are quantized to."""
