"""What generated TensorFlow code is made of: the symbols rules write with, dtypes, and the registry of rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.custom_ops.rules import custom_rules
from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.expr import ops as ops
from onward.backends.emit.target import PLAIN_DTYPES, Rule, Target
from onward.registry import Registry

tf = Name("tf")
np_ = Name("np")

_D = ir.DataType
DTYPES: dict[ir.DataType, str] = {
    **PLAIN_DTYPES,
    _D.STRING: "string",
    # TensorFlow has no kernels for these: each value is kept in the smallest type that holds it exactly.
    _D.INT4: "int8",
    _D.INT2: "int8",
    _D.UINT4: "uint8",
    _D.UINT2: "uint8",
    _D.FLOAT8E4M3FN: "float32",
    _D.FLOAT8E4M3FNUZ: "float32",
    _D.FLOAT8E5M2: "float32",
    _D.FLOAT8E5M2FNUZ: "float32",
    _D.FLOAT8E8M0: "float32",
    _D.FLOAT4E2M1: "float32",
    _D.FLOAT6E2M3: "float32",
    _D.FLOAT6E3M2: "float32",
}
"""The TensorFlow dtype that carries each ONNX dtype in generated code."""

HOST_FUNCTIONS = {
    "min": "least",
    "max": "greatest",
    "int": "to_int",
    "float": "to_float",
    "bool": "to_bool",
    "math.floor": "floor_number",
    "math.ceil": "ceil_number",
    "math.sqrt": "sqrt_number",
    "and": "both",
    "or": "either",
    "not": "negated",
    "if": "choose",
}
"""Helpers for host numbers, which are Python's where they are known when a function is traced, and else scalars."""


def dtype(of: ir.DataType | int) -> Expr:
    """`tf.float32` for FLOAT."""
    return Name(f"tf.{DTYPES[ir.DataType(of)]}")


def is_minus_zero(number: Any) -> bool:
    """Whether a number is one that TensorFlow may convert to 0.0, since it remembers by value what it converted."""
    return isinstance(number, float) and number == 0 and math.copysign(1, number) < 0


class TensorFlowTarget(Target):
    name = "tensorflow"
    rules: Registry[Rule] = Registry("TensorFlow rule", custom_rules("tensorflow", f"{__package__}.runtime"))

    def tensor(self, items: np.ndarray[Any, Any], of: ir.DataType | None) -> Expr:
        typed = dtype(of or ir.DataType.INT64)
        if items.size == 0 and items.ndim > 1:
            return tf.zeros(items.shape, typed)  # nested lists can't tell the shape
        content = items.tolist() if items.ndim else items.item()
        if is_minus_zero(content):
            return -tf.zeros([], typed)
        if any(isinstance(item, Expr) for item in items.flat):
            return ops.packed(content, typed)
        return tf.constant(content, typed)

    def dtype(self, of: ir.DataType | int) -> Expr:
        return dtype(of)

    def each(self, numbers: Iterable[int]) -> list[int]:
        return list(numbers)

    def cast(self, x: Expr, of: ir.DataType | int) -> Expr:
        return tf.cast(x, dtype(of))

    def concat(self, tensors: Sequence[Expr], axis: int) -> Expr:
        return tf.concat(list(tensors), axis=axis)

    def pick(self, table: Expr, index: Expr) -> Expr:
        return tf.gather(table, index)

    def pick_strings(self, strings: Expr, index: Expr, node: ir.Node) -> Expr:
        return tf.gather(strings, index)

    def is_literal(self, number: Any) -> bool:
        return not isinstance(number, Expr) and not is_minus_zero(number)

    def dim(self, x: Expr, axis: int) -> Expr:
        return ops.size(x, axis)

    def rank(self, x: Expr) -> Expr:
        return ops.rank(x)

    def listed(self, x: Expr) -> Expr:
        return x

    def call(self, function: str, *arguments: Any) -> Expr:
        if function == "abs":
            return Name("abs")(*arguments)
        helper: Expr = getattr(ops, HOST_FUNCTIONS[function])
        return helper(*arguments)


TARGET = TensorFlowTarget()
rule = TARGET.rules.register
