"""Special functions, as every frontend writes them."""

from __future__ import annotations

import math

import onnx_ir as ir

from onward.frontends.decompose import gamma, special
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

for _name, _function in {
    "Lgamma": special.lgamma,
    "Erfinv": special.erfinv,
    "Ndtri": special.ndtri,
}.items():
    rule(_name)(_function)


@rule("Digamma")
def digamma(op: Writer, x: Tensor) -> Tensor:
    """NaN at its poles."""
    pole = op.And(x <= op.like(0, x), op.Equal(op.Floor(x), x))
    return op.where(pole, op.like(math.nan, x), special.digamma(op, x))


@rule("Erfc")
def erfc(op: Writer, x: Tensor) -> Tensor:
    mirrored = _of_gelu(op, x)
    return special.erfc(op, x) if mirrored is None else 1.0 + op.Erf(mirrored)


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


@rule("NextAfter")
def next_after(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    op.need(26, "NextAfter")
    whole = ir.DataType.INT64 if a.dtype == ir.DataType.DOUBLE else ir.DataType.INT32
    bits = op.BitCast(a, to=int(whole))
    up = op.Xor(a < b, a < op.like(0, a))
    moved = op.BitCast(op.where(up, bits + op.like(1, bits), bits - op.like(1, bits)), to=int(a.dtype))
    return op.where(op.Equal(a, b), b, moved)


for _order in (0, 1):
    rule(f"BesselI{_order}")(lambda op, x, order=_order: special.bessel_i(op, order, x, scaled=False))
    rule(f"BesselI{_order}e")(lambda op, x, order=_order: special.bessel_i(op, order, x, scaled=True))
    rule(f"BesselK{_order}")(lambda op, x, order=_order: special.bessel_k(op, order, x, scaled=False))
    rule(f"BesselK{_order}e")(lambda op, x, order=_order: special.bessel_k(op, order, x, scaled=True))
    rule(f"BesselJ{_order}")(lambda op, x, order=_order: special.bessel_j(op, order, x))


@rule("Igamma")
def lower_gamma(op: Writer, a: Tensor, x: Tensor) -> Tensor:
    return gamma.incomplete_gamma(op, a, x, upper=False)


@rule("Igammac")
def upper_gamma(op: Writer, a: Tensor, x: Tensor) -> Tensor:
    return gamma.incomplete_gamma(op, a, x, upper=True)


rule("Betainc")(gamma.incomplete_beta)
rule("Zeta")(gamma.zeta)


@rule("Polygamma")
def polygamma(op: Writer, order: Tensor, x: Tensor) -> Tensor:
    """By the zeta function, but for order 0, which is the digamma function; NaN for orders that are not whole."""
    n = special.wide(order)
    is_order = op.And(n >= 0.0, op.Equal(op.Floor(n), n))
    sign = 1.0 - op.Mod(n + 1.0, op.like(2, n), fmod=1) * 2.0
    zero = op.Equal(n, op.like(0, n))
    size = op.Exp(special.lgamma(op, n + 1.0)) * gamma.zeta(op, op.where(zero, op.like(2, n), n + 1.0), special.wide(x))
    value = op.where(zero, digamma(op, special.wide(x)), sign * size)
    return op.where(is_order, value, op.like(math.nan, value)).cast(x.dtype)


rule("Dawsn")(special.dawson)
rule("Expint")(special.exponential_integral)
rule("Spence")(special.spence)
rule("FresnelCos")(lambda op, x: special.fresnel(op, x, sine=False))
rule("FresnelSin")(lambda op, x: special.fresnel(op, x, sine=True))


@rule("Erf")
def erf(op: Writer, x: Tensor) -> Tensor:
    """ONNX Runtime has no kernel for double precision."""
    return special.wide_erf(op, x) if x.dtype == ir.DataType.DOUBLE else op.Erf(x)
