"""Arithmetic, comparison, choices and casts, element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onward.frontends.stablehlo.reader import Reader, is_sizes
from onward.frontends.stablehlo.registry import rule
from onward.frontends.stablehlo.values import Sizes, Value, as_array, dtype_of, numbers_of

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lax.abs, "add": lax.add, "atan2": lax.atan2, "cbrt": lax.cbrt, "ceil": lax.ceil,
    "cosine": lax.cos, "count_leading_zeros": lax.clz, "divide": lax.div, "exponential": lax.exp,
    "exponential_minus_one": lax.expm1, "floor": lax.floor, "imag": lax.imag, "is_finite": lax.is_finite,
    "log": lax.log, "log_plus_one": lax.log1p, "logistic": lax.logistic, "maximum": lax.max, "minimum": lax.min,
    "multiply": lax.mul, "negate": lax.neg, "not": lax.bitwise_not, "or": lax.bitwise_or,
    "popcnt": lax.population_count, "power": lax.pow, "real": lax.real, "remainder": lax.rem, "rsqrt": lax.rsqrt,
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "shift_left": lax.shift_left, "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical, "sine": lax.sin, "sqrt": lax.sqrt,
    "subtract": lax.sub, "tan": lax.tan, "tanh": lax.tanh, "xor": lax.bitwise_xor, "complex": lax.complex,
}  # fmt: skip
OF_CHLO: dict[str, Callable[..., Any]] = {
    "acos": lax.acos, "acosh": lax.acosh, "asin": lax.asin, "asinh": lax.asinh, "atan": lax.atan, "atanh": lax.atanh,
    "bessel_i1e": lax.bessel_i1e, "conj": lax.conj, "cosh": lax.cosh, "digamma": lax.digamma, "erf": lax.erf,
    "erf_inv": lax.erf_inv, "erfc": lax.erfc, "is_inf": jnp.isinf, "lgamma": lax.lgamma, "next_after": lax.nextafter,
    "polygamma": lax.polygamma, "sinh": lax.sinh, "square": lax.square, "tan": lax.tan, "zeta": lax.zeta,
}  # fmt: skip
"""Functions of the dialect beside StableHLO, which composites are named after, too."""
SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "maximum": lambda a, b: _extreme(max, a, b),
    "minimum": lambda a, b: _extreme(min, a, b),
    "divide": operator.floordiv,
    "remainder": operator.mod,
}
"""What sizes are computed with."""
QUOTIENTS = ("divide", "remainder")
"""They are rounded towards zero, and so only alike where no number is negative."""
DIRECTIONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}


OPERATORS = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
TOTAL = {
    "LT": (lax.lt_to_p, False),
    "LE": (lax.le_to_p, False),
    "GT": (lax.lt_to_p, True),
    "GE": (lax.le_to_p, True),
}
"""By total order, in which NaN and -0.0 have their places."""


def _extreme(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    from jax._src import core

    known = isinstance(a, int | np.integer) and isinstance(b, int | np.integer)
    return function(a, b) if known else (core.max_dim if function is max else core.min_dim)(a, b)


def _decided(function: Callable[..., Any], *given: Value) -> np.ndarray[Any, Any] | None:
    """What is true of sizes, one by one; None where that depends on what they are."""
    if not any(isinstance(x, Sizes) for x in given) or not all(map(is_sizes, given)):
        return None
    try:
        return np.asarray(np.frompyfunc(lambda *each: bool(function(*each)), len(given), 1)(*map(numbers_of, given)))
    except jax.errors.InconclusiveDimensionOperation:
        return None


def _at_least(x: Value, least: int) -> bool:
    """Whether sizes, or constants, are no less than a number, whatever they are."""
    found = _decided(lambda n: n >= least, x) if isinstance(x, Sizes) else x >= least
    return found is not None and bool(found.all())


def _of_sizes(name: str, dtype: Any, given: Sequence[Value]) -> Sizes | None:
    if name not in SIZES or not any(isinstance(x, Sizes) for x in given) or not all(map(is_sizes, given)):
        return None
    if name in QUOTIENTS and not all(_at_least(x, least) for x, least in zip(given, (0, 1), strict=True)):
        return None
    return Sizes(np.asarray(np.frompyfunc(SIZES[name], 2, 1)(*map(numbers_of, given)), object), dtype)


def _file(name: str, function: Callable[..., Any]) -> None:
    @rule(f"stablehlo.{name}")
    def apply(reader: Reader, op: Any, *given: Value) -> Value:
        found = _of_sizes(name, dtype_of(op.results[0].type), given)
        return function(*map(as_array, given)) if found is None else found


for _name, _function in FUNCTIONS.items():
    _file(_name, _function)


def _file_chlo(name: str, function: Callable[..., Any]) -> None:
    @rule(f"chlo.{name}")
    def apply(reader: Reader, op: Any, *given: Value) -> Value:
        return function(*map(as_array, given))


for _name, _function in OF_CHLO.items():
    _file_chlo(_name, _function)


@rule("stablehlo.and")
def both(reader: Reader, op: Any, a: Value, b: Value) -> Value:
    """What is false is so whatever stands beside it: such is the sign of a size, which nobody has to compute."""
    for x in (a, b):
        if isinstance(x, np.ndarray) and x.dtype == bool and not x.ndim and not x:
            return x
    return lax.bitwise_and(as_array(a), as_array(b))


@rule("stablehlo.sign")
def sign(reader: Reader, op: Any, x: Value) -> Value:
    if isinstance(x, Sizes) and _at_least(x, 1):
        return np.ones(x.numbers.shape, dtype_of(op.results[0].type))
    return lax.sign(as_array(x))


@rule("stablehlo.compare")
def compare(reader: Reader, op: Any, a: Value, b: Value) -> Value:
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    kind = str(op.attributes["compare_type"]) if "compare_type" in op.attributes else ""
    if "TOTALORDER" in kind and direction in TOTAL:
        primitive, is_turned = TOTAL[direction]
        pair = (b, a) if is_turned else (a, b)
        return primitive.bind(*(jnp.asarray(as_array(x)) for x in pair))
    decided = _decided(OPERATORS[direction], a, b)
    return DIRECTIONS[direction](as_array(a), as_array(b)) if decided is None else decided.astype(bool)


@rule("stablehlo.select")
def select(reader: Reader, op: Any, test: Value, yes: Value, no: Value) -> Value:
    if isinstance(test, np.ndarray) and not test.ndim:
        return yes if test else no
    test, yes, no = map(as_array, (test, yes, no))
    if np.ndim(test) != np.ndim(yes):
        test = jnp.broadcast_to(test, np.shape(yes))
    return lax.select(jnp.asarray(test), jnp.asarray(yes), jnp.asarray(no))


@rule("stablehlo.clamp")
def clamp(reader: Reader, op: Any, low: Value, x: Value, high: Value) -> Value:
    return lax.clamp(as_array(low), as_array(x), as_array(high))


@rule("stablehlo.convert")
def convert(reader: Reader, op: Any, x: Value) -> Value:
    dtype = dtype_of(op.results[0].type)
    if isinstance(x, Sizes) and dtype.kind in "iu":
        return Sizes(x.numbers, dtype)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and dtype.kind in "iu":
        return x.astype(dtype)
    return lax.convert_element_type(as_array(x), dtype)


@rule("stablehlo.bitcast_convert")
def bitcast_convert(reader: Reader, op: Any, x: Value) -> Value:
    return lax.bitcast_convert_type(as_array(x), dtype_of(op.results[0].type))


@rule("stablehlo.reduce_precision")
def reduce_precision(reader: Reader, op: Any, x: Value) -> Value:
    bits = [op.attributes[name].value for name in ("exponent_bits", "mantissa_bits")]
    return lax.reduce_precision(as_array(x), *bits)


@rule("stablehlo.optimization_barrier")
def barrier(reader: Reader, op: Any, *given: Value) -> list[Value]:
    return list(given)
