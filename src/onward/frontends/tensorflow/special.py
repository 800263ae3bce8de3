"""Special functions, by series and fractions that are as exact as the dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onward.canon.build import Tensor
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer

LANCZOS = (
    0.99999999999980993227684700473478,
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
"""Of the gamma function by C. Lanczos' formula, with g = 7."""
G = 7.0


def horner(op: Writer, x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """A polynomial, the highest power first."""
    result = op.like(coefficients[0], x) * x + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def wide(x: Tensor) -> Tensor:
    """In double precision: the series lose digits."""
    return x.cast(ir.DataType.DOUBLE)


@rule("Lgamma")
def lgamma(op: Writer, x: Tensor) -> Tensor:
    """Below one half by the reflection formula."""
    z = wide(x)
    mirrored = z < 0.5
    value = _lgamma_positive(op, op.where(mirrored, 1.0 - z, z))
    away = op.Abs(z - op.Round(z))
    sine = op.Abs(op.Sin(away * math.pi))
    reflected = math.log(math.pi) - op.Log(sine) - value
    return op.where(mirrored, reflected, value).cast(x.dtype)


def _lgamma_positive(op: Writer, z: Tensor) -> Tensor:
    z = z - 1.0
    total = op.like(LANCZOS[0], z)
    for i, coefficient in enumerate(LANCZOS[1:], 1):
        total = total + op.like(coefficient, z) / (z + float(i))
    t = z + (G + 0.5)
    return 0.5 * math.log(2 * math.pi) + (z + 0.5) * op.Log(t) - t + op.Log(total)


@rule("Digamma")
def digamma(op: Writer, x: Tensor) -> Tensor:
    """By recurrence up to six, and an asymptotic series from there; below one half by reflection."""
    z = wide(x)
    mirrored = z < 0.5
    y = op.where(mirrored, 1.0 - z, z)
    shifted = op.like(0, y)
    for i in range(6):
        shifted = shifted + 1.0 / (y + float(i))
    far = y + 6.0
    inverse = 1.0 / (far * far)
    series = horner(op, inverse, (691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)) * inverse
    value = op.Log(far) - 0.5 / far + series - shifted
    from_whole = z - op.Round(z)
    angle = from_whole * math.pi
    cotangent = math.pi * op.Cos(angle) / op.Sin(angle)
    return op.where(mirrored, value - cotangent, value).cast(x.dtype)


@rule("Erfc")
def erfc(op: Writer, x: Tensor) -> Tensor:
    """Near zero by erf, which is exact there; further out by a continued fraction, which keeps what is left of 1."""
    mirrored = _of_gelu(op, x)
    if mirrored is not None:
        return 1.0 + op.Erf(mirrored)
    z = wide(x)
    a = op.Abs(z)
    far = op.Max(a, op.like(2.0, a))
    fraction = far
    for k in range(30, 0, -1):
        fraction = far + (k / 2) / fraction
    tail = op.Exp(-far * far) / (fraction * math.sqrt(math.pi))
    tail = op.where(z < 0.0, 2.0 - tail, tail)
    return op.where(a < 2.0, 1.0 - erf_series(op, z), tail).cast(x.dtype)


def _of_gelu(op: Writer, x: Tensor) -> Tensor | None:
    """`y / sqrt(2)` where the argument is `-y / sqrt(2)`, as in Gelu, whose sum of one and erf every runtime knows."""
    made = x.value.producer()
    if made is None or made.op_type not in ("Div", "Mul") or made.inputs[0] is None or made.inputs[1] is None:
        return None
    negative = made.inputs[0].producer()
    scale = op.known(op.tensor(made.inputs[1]))
    wanted = math.sqrt(2) if made.op_type == "Div" else math.sqrt(0.5)
    if scale is None or scale.size != 1 or abs(float(scale.reshape(())) - wanted) > 1e-6:
        return None
    if negative is None or negative.op_type != "Neg" or negative.inputs[0] is None:
        return None
    return op.many(made.op_type, 1, op.tensor(negative.inputs[0]), made.inputs[1])[0]


def erf_series(op: Writer, z: Tensor) -> Tensor:
    """erf for arguments up to 2 in size, in double precision, by Kummer's series (all its terms have one sign)."""
    z = op.Max(op.Min(z, op.like(2.0, z)), op.like(-2.0, z))
    square = z * z * 2.0
    total = op.like(1.0, z) + square * (1.0 / 85)
    for k in range(41, 0, -1):
        total = 1.0 + square / float(2 * k + 1) * total
    return z * op.Exp(z * z * -1.0) * total * (2 / math.sqrt(math.pi))


@rule("Erfinv")
def erfinv(op: Writer, x: Tensor) -> Tensor:
    """A first guess by logarithms, and three steps of Halley's method."""
    y = wide(x)
    a = 0.147
    log = op.Log(1.0 - y * y)
    half = log * 0.5 + 2 / (math.pi * a)
    guess = op.Sign(y) * op.Sqrt(op.Sqrt(half * half - log * (1 / a)) - half)
    for _ in range(3):
        error = wide_erf(op, guess) - y
        slope = op.Exp(-guess * guess) * (2 / math.sqrt(math.pi))
        step = error / slope
        guess = guess - step / (1.0 + guess * step)
    edge = op.Sign(y) * math.inf
    guess = op.where(op.Equal(op.Abs(y), op.like(1.0, y)), edge, guess)
    return guess.cast(x.dtype)


def wide_erf(op: Writer, z: Tensor) -> Tensor:
    """erf in double precision, of any size."""
    return 1.0 - erfc(op, z)


@rule("Ndtri")
def ndtri(op: Writer, p: Tensor) -> Tensor:
    return (erfinv(op, wide(p) * 2.0 - 1.0) * math.sqrt(2)).cast(p.dtype)


@rule("NextAfter")
def next_after(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    op.need(26, "NextAfter")
    whole = ir.DataType.INT64 if a.dtype == ir.DataType.DOUBLE else ir.DataType.INT32
    bits = op.BitCast(a, to=int(whole))
    up = op.Xor(a < b, a < op.like(0, a))
    moved = op.BitCast(op.where(up, bits + op.like(1, bits), bits - op.like(1, bits)), to=int(a.dtype))
    return op.where(op.Equal(a, b), b, moved)
