"""Conversion between dtypes."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import dtype, rule

_D = ir.DataType


@rule("Cast")
def cast(e: Emitter, x: Expr, *, to: int, saturate: int = 1, round_mode: str = "up") -> Expr:
    return converted(e, x, e.dtype(x), _D(to), bool(saturate), round_mode)


@rule("CastLike")
def cast_like(e: Emitter, x: Expr, like: Expr, *, saturate: int = 1, round_mode: str = "up") -> Expr:
    return converted(e, x, e.dtype(x), e.dtype(like) or _D.FLOAT, bool(saturate), round_mode)


def converted(
    e: Emitter, x: Expr, source: ir.DataType | None, target: ir.DataType, saturate: bool, round_mode: str
) -> Expr:
    if source == target:
        return x
    return x.to(dtype(target))
