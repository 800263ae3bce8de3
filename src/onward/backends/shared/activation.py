"""Activation functions and Dropout by helpers, which are named alike in every backend."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.shared.elementwise import in_float
from onward.spec.activation import Dropout, Shrink


def shrink(e: Emitter, x: Expr, p: Shrink) -> Expr:
    return in_float(e, x, lambda x: ops.shrink(x, p.lambd, p.bias))


def dropout_with_mask(e: Emitter, x: Expr, rate: Any, active: Any, p: Dropout, **more: Expr) -> list[Expr]:
    """What is left, and which elements that is."""
    return e.unpack(ops.dropout_with_mask(x, rate, active, **given(seed=p.seed), **more), 2)
