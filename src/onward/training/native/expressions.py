"""Ops that go element by element, as C expressions that round as ONNX Runtime's do, NaN and infinities included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

TYPES = {
    ir.DataType.FLOAT: "float",
    ir.DataType.DOUBLE: "double",
    ir.DataType.INT64: "int64_t",
    ir.DataType.INT32: "int32_t",
    ir.DataType.BOOL: "_Bool",
}
FLOATS = ("float", "double")


class UnprintableError(Exception):
    """A graph that is not made of what can be printed; it runs as it is."""


def ctype(value: ir.Value) -> str:
    """The C type of the elements of a value."""
    found = TYPES.get(value.dtype) if value.dtype is not None else None
    if found is None:
        raise UnprintableError(f"{value.name} is of {value.dtype}")
    return found


def literal(number: Any, kind: str) -> str:
    """A number in C, to the last bit."""
    if kind in FLOATS:
        number = float(number)
        if math.isnan(number):
            return f"({kind})NAN"
        if math.isinf(number):
            return f"({kind}){'-' if number < 0 else ''}INFINITY"
        return f"({kind}){number.hex()}"
    return f"({kind}){int(number)}LL"


def constant(value: ir.Value) -> Any:
    """The only element of a constant; None if it is none, or has several."""
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.size != 1 or value.dtype not in TYPES:
        return None
    return tensor.numpy().reshape(-1)[0]


Printed = Callable[[ir.Node, Sequence[str], str], str]
"""A node, its inputs in C and the C type of its first one to an expression."""


def _joined(sign: str) -> Printed:
    return lambda node, given, kind: f"({f' {sign} '.join(given)})"


def _called(name: str) -> Printed:
    """A function of the C library, or one of the prelude, whose name ends with f for single precision."""
    return lambda node, given, kind: f"{name}{'f' if _real(kind) == 'float' else ''}({', '.join(given)})"


def _real(kind: str) -> str:
    if kind not in FLOATS:
        raise UnprintableError(f"a function of {kind}")
    return kind


def _division(node: ir.Node, given: Sequence[str], kind: str) -> str:
    _real(kind)  # integers would trap at 0
    return f"({given[0]} / {given[1]})"


def _extreme(sign: str) -> Printed:
    """The larger or smaller one; a NaN wins."""

    def printed(node: ir.Node, given: Sequence[str], kind: str) -> str:
        found = given[0]
        for other in given[1:]:
            found = f"(({found}) {sign} ({other}) || ({found}) != ({found}) ? ({found}) : ({other}))"
        return found

    return printed


def _clip(node: ir.Node, given: Sequence[str], kind: str) -> str:
    found = given[0]
    for limit, sign in zip(given[1:], "<>", strict=False):
        if limit:
            found = f"({found} {sign} {limit} ? {limit} : {found})"
    return found


def _cast(node: ir.Node, given: Sequence[str], kind: str) -> str:
    to = ctype(node.outputs[0])
    if to == "_Bool":
        return f"({given[0]} != 0)"
    if kind in FLOATS and to not in FLOATS:
        raise UnprintableError("a cast to integers: what is out of range is left open")
    return f"(({to}){given[0]})"


def _power(node: ir.Node, given: Sequence[str], kind: str) -> str:
    exponent = node.inputs[1]
    assert exponent is not None
    if constant(exponent) == 2:
        return f"({given[0]} * {given[0]})"
    if _real(kind) != ctype(exponent):
        raise UnprintableError("a power of two dtypes")
    return f"pow{'f' if kind == 'float' else ''}({given[0]}, {given[1]})"


def _gelu(node: ir.Node, given: Sequence[str], kind: str) -> str:
    approximate = node.attributes.get("approximate")
    if approximate is not None and approximate.as_string() != "none":
        raise UnprintableError("an approximate Gelu")
    half, root = literal(0.5, _real(kind)), literal(math.sqrt(0.5), kind)
    inner = f"k_erf{'f' if kind == 'float' else ''}({given[0]} * {root})"
    return f"({half} * {given[0]} * ({inner} + {literal(1, kind)}))"


PRINTED: dict[str, Printed] = {
    "Add": _joined("+"),
    "Sub": _joined("-"),
    "Mul": _joined("*"),
    "Sum": _joined("+"),
    "Div": _division,
    "Neg": lambda node, given, kind: f"(-{given[0]})",
    "Abs": _called("fabs"),
    "Sqrt": _called("sqrt"),
    "Relu": lambda node, given, kind: f"({given[0]} < 0 ? 0 : {given[0]})",
    "Gelu": _gelu,
    "Reciprocal": lambda node, given, kind: f"(({_real(kind)})1 / {given[0]})",
    "Floor": _called("floor"),
    "Ceil": _called("ceil"),
    "Exp": _called("k_exp"),
    "Erf": _called("k_erf"),
    "Tanh": _called("k_tanh"),
    "Sigmoid": _called("k_sigmoid"),
    "Log": _called("log"),
    "Pow": _power,
    "Max": _extreme(">"),
    "Min": _extreme("<"),
    "Clip": _clip,
    "Greater": _joined(">"),
    "GreaterOrEqual": _joined(">="),
    "Less": _joined("<"),
    "LessOrEqual": _joined("<="),
    "Equal": _joined("=="),
    "And": _joined("&&"),
    "Or": _joined("||"),
    "Not": lambda node, given, kind: f"(!{given[0]})",
    "Where": lambda node, given, kind: f"({given[0]} ? {given[1]} : {given[2]})",
    "Identity": lambda node, given, kind: given[0],
    "Cast": _cast,
}


def expression(node: ir.Node, given: Sequence[str]) -> str:
    """What a node computes from its inputs, which are names in C; empty where one is left out."""
    printed = PRINTED.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    first = node.inputs[0] if node.inputs else None
    if printed is None or first is None:
        raise UnprintableError(f"{node.op_type} is no op element by element")
    return printed(node, given, ctype(first))


PRELUDE = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __FP_FAST_FMAF
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

/* 2 to the power of a whole number, from the bits of n + 1.5 * 2^23; the exponent is halved so that both factors are
   normal numbers. */
static inline float scaled(float x, float shifted) {
  int32_t n, low, high;
  float a, b;
  memcpy(&n, &shifted, 4);
  n -= 0x4B400000;
  low = (n >> 1);
  high = n - low;
  low = (low + 127) << 23;
  high = (high + 127) << 23;
  memcpy(&a, &low, 4);
  memcpy(&b, &high, 4);
  return x * a * b;
}

static inline float k_expf(float x) {
  float y = x > 89.0f ? 89.0f : x;
  y = y < -104.0f ? -104.0f : y;
  const float shifted = FMA(y, 0x1.715476p+0f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
  const float r = FMA(n, -0x1.7f7d1cp-20f, FMA(n, -0x1.62e4p-1f, y));
  float p = 0x1.6ab934p-10f;
  p = FMA(p, r, 0x1.126d3ep-7f);
  p = FMA(p, r, 0x1.55589cp-5f);
  p = FMA(p, r, 0x1.55540ap-3f);
  p = FMA(p, r, 0x1.fffffap-2f);
  p = FMA(p, r, 1.0f);
  p = FMA(p, r, 1.0f);
  return x != x ? x : scaled(p, shifted);
}

static inline float k_sigmoidf(float x) { return 1.0f / (1.0f + k_expf(-x)); }

/* Quotients of polynomials of the square, each fitted to the function over all that matters of it. */
static inline float bounded(float x, float limit) {
  x = x > limit ? limit : x;
  return x < -limit ? -limit : x;
}

static inline float k_tanhf(float given) {
  const float x = bounded(given, 9.0f), z = x * x;
  float p = 1.3354769846469512e-08f, q = 7.776604434873703e-07f;
  p = FMA(p, z, 2.060916644512989e-05f);
  p = FMA(p, z, 0.003495593472357832f);
  p = FMA(p, z, 0.13381030205143635f);
  p = FMA(p, z, 0.9999999794523972f);
  q = FMA(q, z, 0.0003285643402106958f);
  q = FMA(q, z, 0.02587700274477603f);
  q = FMA(q, z, 0.46714345799382906f);
  q = FMA(q, z, 1.0f);
  return bounded(x * p / q, 1.0f);
}

static inline float k_erff(float given) {
  const float x = bounded(given, 3.9f), z = x * x;
  float p = 2.0664743881099443e-06f, q = 3.8270078961650896e-05f;
  p = FMA(p, z, 0.00028506308209010734f);
  p = FMA(p, z, 0.0037383690044774753f);
  p = FMA(p, z, 0.05266815590004845f);
  p = FMA(p, z, 0.18966730309922275f);
  p = FMA(p, z, 1.1283791476267095f);
  q = FMA(q, z, 0.0011573823966806284f);
  q = FMA(q, z, 0.01491432315500499f);
  q = FMA(q, z, 0.11381916464473867f);
  q = FMA(q, z, 0.5014210524897473f);
  q = FMA(q, z, 1.0f);
  return bounded(x * p / q, 1.0f);
}

static inline double k_exp(double x) { return exp(x); }
static inline double k_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static inline double k_tanh(double x) { return tanh(x); }
static inline double k_erf(double x) { return erf(x); }
"""
