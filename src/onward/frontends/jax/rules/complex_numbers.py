"""Complex numbers inside of a function: what goes in and comes out is real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onward.frontends.jax.registry import RULES, complex_rule, rule
from onward.frontends.jax.values import Value, joined, parts
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.frontends.lax import complex_numbers as lax
from onward.frontends.lax import sort as sorting
from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Tensor


def pair(op: Writer, x: Value) -> Complex:
    """Real numbers as complex ones."""
    if isinstance(x, Complex):
        return x
    assert isinstance(x, Tensor)
    return Complex(x, op.zeros_like(x))


@rule("complex", whole=True)
def complex_of(op: Writer, real: Tensor, imaginary: Tensor) -> Complex:
    return Complex(real, imaginary)


@rule("real", whole=True, broadcasts=True)
def real(op: Writer, x: Complex) -> Tensor:
    return x.real


@rule("imag", whole=True, broadcasts=True)
def imaginary(op: Writer, x: Complex) -> Tensor:
    return x.imaginary


@rule("conj", whole=True, broadcasts=True)
def conj(op: Writer, x: Value) -> Complex:
    return lax.conjugate(pair(op, x))


@complex_rule("convert_element_type", broadcasts=True)
def convert_element_type(op: Writer, x: Complex, *, new_dtype: Any) -> Value:
    """To real numbers by leaving the imaginary part out."""
    dtype = onnx_dtype(new_dtype)
    if np.dtype(new_dtype).kind != "c":
        return x.real.cast(dtype)
    return Complex(x.real.cast(dtype), x.imaginary.cast(dtype))


@complex_rule("mul", broadcasts=True)
def mul(op: Writer, a: Value, b: Value) -> Complex:
    return lax.times(pair(op, a), pair(op, b))


@complex_rule("div", broadcasts=True)
def div(op: Writer, a: Value, b: Value) -> Complex:
    return lax.divided(op, pair(op, a), pair(op, b))


@complex_rule("pow", broadcasts=True)
def power(op: Writer, a: Value, b: Value) -> Complex:
    return lax.power(op, pair(op, a), pair(op, b))


@complex_rule("square", broadcasts=True)
def square(op: Writer, x: Complex) -> Complex:
    return lax.times(x, x)


@complex_rule("integer_pow", broadcasts=True)
def integer_pow(op: Writer, x: Complex, *, y: int) -> Complex:
    return lax.whole_power(op, x, y)


@complex_rule("rsqrt", broadcasts=True)
def rsqrt(op: Writer, x: Complex) -> Complex:
    return lax.whole_power(op, lax.square_root(op, x), -1)


@complex_rule("eq", broadcasts=True)
def eq(op: Writer, a: Value, b: Value) -> Tensor:
    first, second = pair(op, a), pair(op, b)
    return op.And(op.Equal(first.real, second.real), op.Equal(first.imaginary, second.imaginary))


@complex_rule("ne", broadcasts=True)
def ne(op: Writer, a: Value, b: Value) -> Tensor:
    return op.Not(eq(op, a, b))


@complex_rule("is_finite", broadcasts=True)
def is_finite(op: Writer, x: Complex) -> Tensor:
    return op.And(*(op.Abs(part) < float("inf") for part in (x.real, x.imaginary)))


for _name, _function in {
    "abs": lax.magnitude,
    "exp": lax.exponential,
    "log": lax.logarithm,
    "sqrt": lax.square_root,
    "sign": lax.direction,
    "sin": lax.sine,
    "cos": lax.cosine,
    "tan": lax.tangent,
    "sinh": lax.hyperbolic_sine,
    "cosh": lax.hyperbolic_cosine,
    "tanh": lax.hyperbolic_tangent,
    "expm1": lax.exponential_less_one,
    "log1p": lax.logarithm_of_one_more,
}.items():
    complex_rule(_name, broadcasts=True)(_function)


def _product(name: str) -> Callable[..., Complex]:
    """Of what is a sum of products of elements, of four real ones."""

    def function(op: Writer, a: Value, b: Value) -> Complex:
        found = RULES.get(name)
        assert found is not None
        options = {key: value for key, value in op.eqn.params.items() if key in found.parameters}
        x, y = pair(op, a), pair(op, b)

        def times(one: Tensor, other: Tensor) -> Any:
            return found.function(op, one, other, **options)

        real = times(x.real, y.real) - times(x.imaginary, y.imaginary)
        return Complex(real, times(x.real, y.imaginary) + times(x.imaginary, y.real))

    return function


for _name in ("dot_general", "conv_general_dilated"):
    complex_rule(_name)(_product(_name))


@complex_rule("reduce_prod")
def reduce_prod(op: Writer, x: Complex, *, axes: Sequence[int]) -> Complex:
    """One after the other along each axis, in halves."""
    for axis in sorted(axes, reverse=True):
        (length,) = op.numbers_of([op.ins[0].shape[axis]], "the length of a product")
        parts = [
            Complex(*(op.Gather(part, op.index(i), axis=axis) for part in (x.real, x.imaginary))) for i in range(length)
        ]
        while len(parts) > 1:
            joined = [lax.times(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = joined + parts[len(parts) - len(parts) % 2 :]
        x = parts[0]
    return x


@complex_rule("sort")
def sort(op: Writer, *operands: Value, dimension: int, num_keys: int) -> Sequence[Value]:
    """By real parts, and where they are equal by imaginary ones."""
    tensors = [part for operand in operands for part in parts(operand)]
    keys = sum(len(parts(operand)) for operand in operands[: int(num_keys)])
    return joined(operands, sorting.sort(op, tensors, int(dimension), keys))
