"""Arithmetic and functions applied to each element."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.torch.target import F, rule, torch


def operands(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Both operands of a broadcasting op; a lone number beside a tensor stays a Python number."""
    number = e.scalar(b, e.rank(a))
    if number is not None and e.scalar(a) is None:
        return a, number
    number = e.scalar(a, e.rank(b))
    if number is not None and e.scalar(b) is None:
        return number, b
    return a, b


@rule("Add")
def add(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("+", *operands(e, a, b))


@rule("Sub")
def subtract(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("-", *operands(e, a, b))


@rule("Mul")
def multiply(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("*", *operands(e, a, b))


@rule("Relu")
def relu(e: Emitter, x: Expr) -> Expr:
    return F.relu(x)


@rule("Sigmoid")
def sigmoid(e: Emitter, x: Expr) -> Expr:
    return torch.sigmoid(x)


@rule("Tanh")
def tanh(e: Emitter, x: Expr) -> Expr:
    return torch.tanh(x)
