"""What a column holds: the type of its tensor, and what its numbers mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

NAT = np.iinfo(np.int64).min
"""What stands for a missing datetime or duration."""
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks of each unit in a second."""

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


@dataclass(frozen=True)
class ColumnType:
    """`meaning` is '' for plain numbers, booleans and text; 'datetime' and 'duration' are int64 ticks of `unit`, 'date'
    is days in int32, 'time' is nanoseconds in int64. With `categories` it is one of these values, or null.
    """

    dtype: ir.DataType
    meaning: str = ""
    unit: str = ""
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    masked: bool = False
    """Whether nulls are told by a mask that the library has too: all types of Polars, Int64 and the like of pandas."""

    @property
    def is_bool(self) -> bool:
        return self.dtype == ir.DataType.BOOL

    @property
    def is_text(self) -> bool:
        return self.dtype == ir.DataType.STRING

    @property
    def is_time(self) -> bool:
        """Whether it is in ticks, of which NAT is the null."""
        return self.meaning in ("datetime", "duration")

    @property
    def is_float(self) -> bool:
        return self.dtype in _FLOATS

    @property
    def is_int(self) -> bool:
        return self.dtype.is_integer() and not self.meaning

    @property
    def is_number(self) -> bool:
        return self.is_int or self.is_float

    @property
    def nan_is_null(self) -> bool:
        """Floats of numpy in pandas have no other null."""
        return self.is_float and not self.masked

    @property
    def null_is_mask(self) -> bool:
        """Whether nulls of an input or output of this type are told by a tensor beside it."""
        return not (self.is_time or self.nan_is_null)

    def uncategorized(self) -> ColumnType:
        return replace(self, categories=None, ordered=False)

    def __str__(self) -> str:
        if self.categories is not None:
            return "category"
        if self.meaning:
            return f"{self.meaning}[{self.unit}]" if self.unit else self.meaning
        name = "text" if self.is_text else self.dtype.numpy().name
        return f"{name} with nulls" if self.masked else name


BOOL = ColumnType(ir.DataType.BOOL)
INT64 = ColumnType(ir.DataType.INT64)
FLOAT64 = ColumnType(ir.DataType.DOUBLE)
TEXT = ColumnType(ir.DataType.STRING)


def number_type(dtype: np.dtype[Any], *, masked: bool = False) -> ColumnType:
    """Of a dtype of numpy: booleans, integers, floats."""
    return ColumnType(ir.DataType.from_numpy(dtype), masked=masked)
