"""What generated PyTorch code is made of: the symbols rules write with, dtypes, and the registry of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.custom_ops.rules import custom_rules
from onward.backends.emit.expr import Device, Expr, Name
from onward.backends.emit.expr import ops as ops
from onward.backends.emit.target import PLAIN_DTYPES, Rule, Target
from onward.registry import Registry

torch = Name("torch")
nn = Name("nn")
F = Name("F")
math = Name("math")
np_ = Name("np")

_D = ir.DataType
DTYPES: dict[ir.DataType, str] = {
    **PLAIN_DTYPES,
    _D.FLOAT8E4M3FN: "float8_e4m3fn",
    _D.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    _D.FLOAT8E5M2: "float8_e5m2",
    _D.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    _D.FLOAT8E8M0: "float8_e8m0fnu",
    # PyTorch has no arithmetic on these: each value is kept in the smallest type that holds it exactly.
    _D.INT4: "int8",
    _D.INT2: "int8",
    _D.UINT4: "uint8",
    _D.UINT2: "uint8",
    _D.FLOAT4E2M1: "float32",
    _D.FLOAT6E2M3: "float32",
    _D.FLOAT6E3M2: "float32",
}
"""The torch dtype that carries each ONNX dtype in generated code. Strings are numpy object arrays."""


def dtype(of: ir.DataType | int) -> Expr:
    """`torch.float32` for FLOAT."""
    return Name(f"torch.{DTYPES[ir.DataType(of)]}")


class TorchTarget(Target):
    name = "torch"
    rules: Registry[Rule] = Registry("torch rule", custom_rules("torch", f"{__package__}.runtime"))

    def tensor(self, items: np.ndarray[Any, Any], of: ir.DataType | None) -> Expr:
        typed = {"dtype": dtype(of or ir.DataType.INT64), "device": Device()}
        if items.size == 0 and items.ndim > 1:
            return torch.zeros(items.shape, **typed)  # nested lists can't tell the shape
        return torch.tensor(items.tolist() if items.ndim else items.item(), **typed)

    def dtype(self, of: ir.DataType | int) -> Expr:
        return dtype(of)

    def cast(self, x: Expr, of: ir.DataType | int) -> Expr:
        return x.to(dtype(of))

    def concat(self, tensors: Sequence[Expr], axis: int) -> Expr:
        return torch.cat(tuple(tensors), dim=axis)

    def placed(self) -> dict[str, Expr]:
        return {"device": Device()}

    def pick_strings(self, strings: Expr, index: Expr, node: ir.Node) -> Expr:
        return ops.pick_strings(strings, index)


TARGET = TorchTarget()
rule = TARGET.rules.register
