"""Arithmetic and activations, element by element."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, ops
from onward.backends.shared.elementwise import is_float, operands
from onward_numpy.target import np, rule


def _operator(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        return Binary(symbol, *operands(e, a, b))


_operator("Add", "+")
_operator("Sub", "-")
_operator("Mul", "*")


@rule("Div")
def divide(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("/", *operands(e, a, b)) if is_float(e, a) else ops.integer_divide(a, b)


@rule("Relu")
def relu(e: Emitter, x: Expr) -> Expr:
    return np.maximum(x, 0)


@rule("Sigmoid")
def sigmoid(e: Emitter, x: Expr) -> Expr:
    return 1 / (1 + np.exp(-x))
