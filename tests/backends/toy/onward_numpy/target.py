"""The words that rules write with: symbols, dtypes, and the registry of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import onnx_ir as ir

from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.target import PLAIN_DTYPES, Rule, Target
from onward.registry import Registry

np = Name("np")

DTYPES = {of: name for of, name in PLAIN_DTYPES.items() if name not in ("bfloat16", "complex128")}
"""What NumPy calls the dtypes of ONNX, as far as NumPy and files of weights have them."""


class NumPyTarget(Target):
    name = "numpy"
    rules: Registry[Rule] = Registry("NumPy rule")

    def tensor(self, items: numpy.ndarray[Any, Any], of: ir.DataType | None) -> Expr:
        typed = self.dtype(of or ir.DataType.INT64)
        return np.array(items.tolist(), dtype=typed) if items.size else np.zeros(items.shape, dtype=typed)

    def dtype(self, of: ir.DataType | int) -> Expr:
        return Name(f"np.{DTYPES[ir.DataType(of)]}")

    def cast(self, x: Expr, of: ir.DataType | int) -> Expr:
        return x.astype(self.dtype(of))

    def concat(self, tensors: Sequence[Expr], axis: int) -> Expr:
        return np.concatenate(tuple(tensors), axis=axis)


TARGET = NumPyTarget()
rule = TARGET.rules.register
