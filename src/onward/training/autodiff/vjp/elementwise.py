"""Gradients of arithmetic, element by element."""

from __future__ import annotations

import math

import numpy as np

from onward.graph.build import Tensor
from onward.spec.elementwise import Mod
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.quantised_values import is_narrow
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp


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
    share = g / b
    return share, -share * c.y


@vjp("Mod", broadcasts=True)
def mod(c: Context, g: Tensor, a: Tensor, b: Tensor, p: Mod) -> Gradients:
    """a - b * q, the quotient q being an integer: a constant almost everywhere."""
    quotient = c.op.Round((a - c.y) / b)
    return g, -g * quotient


@vjp("Pow", broadcasts=True)
def pow_(c: Context, g: Tensor, x: Tensor, exponent: Tensor) -> Gradients:
    """The exponent may be of another type; where it is 0 the slope is 0, at x = 0 as well."""
    op = c.op
    power = exponent.cast(x.dtype)
    known = constant_of(exponent)
    if known is not None and known.size == 1:
        return _fixed_power(g, x, float(known.flat[0])), None
    slope = power * op.Pow(x, op.where(op.Equal(power, op.like(0, x)), 1, power) - 1)
    if not c.wants(exponent.value):
        return g * slope
    logarithm = op.where(x > 0, op.Log(op.where(x > 0, x, 1)), 0)
    found = g * c.y * logarithm
    return g * slope, found if is_narrow(exponent.value) else found.cast(exponent.dtype)


def _fixed_power(g: Tensor, x: Tensor, exponent: float) -> Tensor:
    if exponent == 0:
        return g.op.zeros_like(g)
    if exponent == 1:
        return g
    return g * (x * 2 if exponent == 2 else (x ** (exponent - 1)) * exponent)


def constant_of(tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """The elements of a constant that no caller can change."""
    value = tensor.value
    if value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


@vjp("Sum", broadcasts=True)
def sum_(c: Context, g: Tensor, *xs: Tensor) -> Gradients:
    return [g] * len(xs)


@vjp("Mean", broadcasts=True)
def mean(c: Context, g: Tensor, *xs: Tensor) -> Gradients:
    return [g * (1 / len(xs))] * len(xs)


@vjp("Max", "Min")
def extreme(c: Context, g: Tensor, *xs: Tensor) -> Gradients:
    """Inputs that tie for the extreme share the gradient evenly."""
    op = c.op
    hits = [op.Equal(x, c.y).cast(g.dtype) for x in xs]
    share = g if len(xs) == 1 else g / op.Sum(*hits)
    return [unbroadcast(share * hit, x) for hit, x in zip(hits, xs, strict=True)]


@vjp("Where")
def where(c: Context, g: Tensor, condition: Tensor, a: Tensor, b: Tensor) -> Gradients:
    zero = c.op.like(0, g)
    first, second = c.op.Where(condition, g, zero), c.op.Where(condition, zero, g)
    return None, unbroadcast(first, a), unbroadcast(second, b)


@vjp("Clip")
def clip(c: Context, g: Tensor, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Gradients:
    """What is at a bound counts as inside; the bounds get the gradient of what they replace."""
    op = c.op
    zero = op.like(0, g)
    below = None if low is None else op.Less(x, low)
    above = None if high is None else op.Greater(x, high)
    inside = g
    for outside in (below, above):
        if outside is not None:
            inside = op.Where(outside, zero, inside)
    if below is not None and high is not None and low is not None:
        below = op.And(below, op.LessOrEqual(low, high))
    ends = [
        None if outside is None else op.sum(op.Where(outside, g, zero), keepdims=False) for outside in (below, above)
    ]
    return inside, *ends


@vjp("Neg")
def neg(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return -g


@vjp("Abs")
def abs_(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.op.Sign(x)


@vjp("Exp")
def exp(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.y


@vjp("Log")
def log(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / x


@vjp("Sqrt")
def sqrt(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / (c.y * 2)


@vjp("Reciprocal")
def reciprocal(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return -g * c.y * c.y


@vjp("Sin")
def sin(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.op.Cos(x)


@vjp("Cos")
def cos(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return -g * c.op.Sin(x)


@vjp("Tan")
def tan(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * (c.y * c.y + 1)


@vjp("Asin")
def asin(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / c.op.Sqrt(1 - x * x)


@vjp("Acos")
def acos(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return -g / c.op.Sqrt(1 - x * x)


@vjp("Atan")
def atan(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / (x * x + 1)


@vjp("Sinh")
def sinh(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.op.Cosh(x)


@vjp("Cosh")
def cosh(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.op.Sinh(x)


@vjp("Asinh")
def asinh(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / c.op.Sqrt(x * x + 1)


@vjp("Acosh")
def acosh(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / (c.op.Sqrt(x - 1) * c.op.Sqrt(x + 1))


@vjp("Atanh")
def atanh(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g / (1 - x * x)


@vjp("Erf")
def erf(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.op.Exp(-(x * x)) * (2 / math.sqrt(math.pi))


no_gradient("constant between its steps", "Floor", "Ceil", "Round", "Sign")
no_gradient("true or false", "And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
no_gradient("true or false", "IsNaN", "IsInf")
no_gradient("integers", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
