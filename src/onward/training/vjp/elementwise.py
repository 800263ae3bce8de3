"""Gradients of arithmetic, element by element."""

from __future__ import annotations

from onward.training.autodiff import Context
from onward.training.build import Tensor
from onward.training.vjp import Gradients, no_gradient, vjp


@vjp("Add", broadcasts=True)
def add(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    return g, g


@vjp("Sub", broadcasts=True)
def sub(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    return g, -g


@vjp("Mul", broadcasts=True)
def mul(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    return g * b, g * a


@vjp("Div", broadcasts=True)
def div(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    return g / b, -g * c.y / b


@vjp("Neg")
def neg(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return -g


@vjp("Exp")
def exp(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.y


@vjp("Log")
def log(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / x


@vjp("Sum", broadcasts=True)
def sum_(c: Context, g: Tensor, *xs: Tensor) -> Gradients:
    return [g] * len(xs)


no_gradient("constant between its steps", "Floor", "Ceil", "Round", "Sign")
