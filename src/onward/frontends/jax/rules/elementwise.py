"""Arithmetic, comparisons, logic: one number of the result from one number of each input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose import special
from onward.frontends.jax import idioms
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import elementwise as lax
from onward.graph.build import Tensor
from onward.hub.types import FLOATING

SAME = {
    "ceil": "Ceil",
    "cos": "Cos",
    "exp": "Exp",
    "floor": "Floor",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "log": "Log",
    "logistic": "Sigmoid",
    "lt": "Less",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}
"""Primitives that ONNX has under this name, and that mean the same there."""
HALVES_TO_EVEN = 1
MANY = 4
"""Factors up to which a power is a product."""


def _same(op_type: str) -> Callable[..., Tensor]:
    def function(op: Writer, *inputs: Tensor) -> Tensor:
        if inputs[0].dtype == ir.DataType.BOOL:
            return _of_truths(op, op_type, *inputs)
        return op.many(op_type, 1, *inputs)[0]

    return function


def _of_truths(op: Writer, op_type: str, *inputs: Tensor) -> Tensor:
    """What JAX computes with truth values as with the numbers 0 and 1."""
    made = op.many(op_type, 1, *(x.cast(ir.DataType.INT32) for x in inputs))[0]
    return made.cast(ir.DataType.BOOL)


for _primitive, _onnx in SAME.items():
    rule(_primitive, broadcasts=True)(_same(_onnx))


@rule("copy", "copy_p", "stop_gradient", "name", "device_put", "sharding_constraint", "layout_constraint", "reshard",
      "mesh_cast", "pvary", "pcast", "optimization_barrier", "reduce_replica", "psum_invariant",
      broadcasts=True, whole=True)  # fmt: skip
def unchanged(op: Writer, *inputs: Any) -> list[Any]:
    return list(inputs)


@rule("abs", broadcasts=True)
def absolute(op: Writer, x: Tensor) -> Tensor:
    return lax.absolute(op, x)


@rule("neg", broadcasts=True)
def negative(op: Writer, x: Tensor) -> Tensor:
    return lax.negated(op, x)


@rule("sign", broadcasts=True)
def sign(op: Writer, x: Tensor) -> Tensor:
    return lax.sign(op, x)


@rule("is_finite", broadcasts=True)
def is_finite(op: Writer, x: Tensor) -> Tensor:
    return op.Abs(x) < math.inf


@rule("round", broadcasts=True)
def round_(op: Writer, x: Tensor, *, rounding_method: Any) -> Tensor:
    return op.Round(x) if int(rounding_method) == HALVES_TO_EVEN else lax.round_away(op, x)


@rule("exp2", broadcasts=True)
def exp2(op: Writer, x: Tensor) -> Tensor:
    return power(op, op.like(2, x), x)


@rule("rsqrt", broadcasts=True)
def rsqrt(op: Writer, x: Tensor) -> Tensor:
    return op.Reciprocal(op.Sqrt(x))


@rule("cbrt", broadcasts=True)
def cbrt(op: Writer, x: Tensor) -> Tensor:
    return op.Sign(x) * power(op, op.Abs(x), op.like(1 / 3, x))


@rule("square", broadcasts=True)
def square(op: Writer, x: Tensor) -> Tensor:
    return x * x


@rule("mul", broadcasts=True)
def mul(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == ir.DataType.BOOL:
        return op.And(a, b)
    return idioms.gelu(op, a, b) or _other_than_one(op, a, b) or _other_than_one(op, b, a) or a * b


def _other_than_one(op: Writer, x: Tensor, factor: Tensor) -> Tensor | None:
    """What is multiplied by a constant 1: ONNX Runtime 1.31 loses such a product where a quotient is a factor, too."""
    number = None if factor.value in op.weights else op.known(factor)
    is_inside = number is not None and number.size == 1 and number.ndim <= op.rank(x, "a factor")
    return x if is_inside and number == 1 else None


@rule("add", "add_any", broadcasts=True)
def add(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == ir.DataType.BOOL:
        return op.Or(a, b)
    return idioms.biased(op, a, b) or a + b


@rule("sub", broadcasts=True)
def sub(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return idioms.log_softmax(op, a, b) or a - b


@rule("integer_pow", broadcasts=True)
def integer_pow(op: Writer, x: Tensor, *, y: int) -> Tensor:
    """Few factors are a product, as XLA has them; many of them, of floats, a power."""
    if abs(y) > MANY and lax.is_float(x):
        return power(op, x, op.like(y, x))
    return lax.whole_power(op, x, y)


@rule("pow", broadcasts=True)
def power(op: Writer, x: Tensor, y: Tensor) -> Tensor:
    """In half precision ONNX Runtime has no powers."""
    if x.dtype in lax.HALVES:
        return op.Pow(x.cast(ir.DataType.FLOAT), y.cast(ir.DataType.FLOAT) if lax.is_float(y) else y).cast(x.dtype)
    return op.Pow(x, y)


@rule("div", broadcasts=True)
def div(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    found = idioms.softmax(op, a, b) or idioms.mean(op, a, b) or idioms.average(op, a, b)
    return found or lax.divide(op, a, b)


@rule("rem", broadcasts=True)
def rem(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return lax.remainder(op, a, b)


@rule("max", broadcasts=True)
def maximum(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    """With a number that is no limit it is the other, with zero it is Relu."""
    for one, other in ((a, b), (b, a)):
        bound = op.known(one) if one.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else None
        if bound is None or one.rank != 0 or other.rank is None:
            continue
        if bound == -math.inf:
            return other
        if bound == 0:
            return op.Relu(other)
    return lax.maximum(op, a, b)


@rule("min", broadcasts=True)
def minimum(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return idioms.clip(op, a, b) or lax.minimum(op, a, b)


@rule("clamp", broadcasts=True)
def clamp(op: Writer, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    return lax.clamp(op, low, x, high)


@rule("eq", broadcasts=True)
def equal(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Equal(a, b)


@rule("ne", broadcasts=True)
def not_equal(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.value is b.value and a.dtype in FLOATING:
        return op.IsNaN(a)
    return op.Xor(a, b) if a.dtype == ir.DataType.BOOL else op.Not(op.Equal(a, b))


def _logical(truths: str, bits: str) -> Callable[..., Tensor]:
    def function(op: Writer, *inputs: Tensor) -> Tensor:
        if inputs[0].dtype == ir.DataType.BOOL:
            return op.many(truths, 1, *inputs)[0]
        return op.many(bits, 1, *inputs)[0]

    return function


for _primitive, _truths, _bits in (
    ("and", "And", "BitwiseAnd"),
    ("or", "Or", "BitwiseOr"),
    ("xor", "Xor", "BitwiseXor"),
    ("not", "Not", "BitwiseNot"),
):
    rule(_primitive, broadcasts=True)(_logical(_truths, _bits))


@rule("select_n", broadcasts=True)
def select_n(op: Writer, which: Tensor, *cases: Tensor) -> Tensor:
    if len(cases) == 1:
        return cases[0]
    known = op.known(which)
    if known is not None and known.size and (known == known.reshape(-1)[0]).all():
        return cases[min(max(int(known.reshape(-1)[0]), 0), len(cases) - 1)]
    if which.dtype == ir.DataType.BOOL:
        return op.Where(which, cases[1], cases[0])
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        result = op.Where(op.Equal(which, op.like(i, which)), cases[i], result)
    return result


@rule("atan2", broadcasts=True)
def atan2(op: Writer, y: Tensor, x: Tensor) -> Tensor:
    return special.angle(op, y, x)


@rule("reduce_precision", broadcasts=True)
def reduce_precision(op: Writer, x: Tensor, *, exponent_bits: int, mantissa_bits: int) -> Tensor:
    forms = {
        (8, 7): ir.DataType.BFLOAT16,
        (5, 10): ir.DataType.FLOAT16,
        (8, 23): ir.DataType.FLOAT,
        (11, 52): ir.DataType.DOUBLE,
    }
    form = forms.get((exponent_bits, mantissa_bits))
    if form is None:
        raise UnsupportedError(f"floats of {exponent_bits} bits of exponent and {mantissa_bits} of mantissa")
    return x.cast(form).cast(x.dtype)
