"""Functions that ONNX has for float32 only, or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose import gamma, special
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import special as lax
from onward.graph.build import Builder, Tensor
from onward.graph.replace import DOMAIN

FAR = 1e9
"""From here on the square of a number is all that counts, and may be out of range."""


@rule("log1p", broadcasts=True)
def log1p(op: Writer, x: Tensor) -> Tensor:
    return special.log1p(op, x)


@rule("expm1", broadcasts=True)
def expm1(op: Writer, x: Tensor) -> Tensor:
    return special.expm1(op, x)


def _tan(op: Builder, x: Tensor) -> Tensor:
    return op.Sin(x) / op.Cos(x)


def _asinh(op: Builder, x: Tensor) -> Tensor:
    size = op.Abs(x)
    calm = op.Min(size, op.like(FAR, x))
    near = special.log1p(op, calm + calm * calm / (op.Sqrt(calm * calm + 1) + 1))
    return op.Sign(x) * op.where(size < FAR, near, op.Log(size) + math.log(2))


def _acosh(op: Builder, x: Tensor) -> Tensor:
    calm = op.Min(x, op.like(FAR, x))
    return op.where(x > FAR, op.Log(x) + math.log(2), op.Log(calm + op.Sqrt((calm - 1) * (calm + 1))))


def _atanh(op: Builder, x: Tensor) -> Tensor:
    return (special.log1p(op, x) - special.log1p(op, -x)) * 0.5


FORMULAS: dict[str, tuple[str, Callable[[Builder, Tensor], Tensor]]] = {
    "tan": ("Tan", _tan),
    "asin": ("Asin", special.arcsine),
    "acos": ("Acos", special.arccosine),
    "atan": ("Atan", special.arctangent),
    "sinh": ("Sinh", lax.wide_sinh),
    "cosh": ("Cosh", lax.wide_cosh),
    "asinh": ("Asinh", _asinh),
    "acosh": ("Acosh", _acosh),
    "atanh": ("Atanh", _atanh),
    "erf": ("Erf", special.wide_erf),
}
"""What ONNX Runtime has a kernel of float32 for, and how float64 is computed."""


def _formula(op_type: str, double: Callable[[Builder, Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(op: Writer, x: Tensor) -> Tensor:
        if x.dtype != ir.DataType.DOUBLE:
            return op.many(op_type, 1, x)[0]
        return double(op, x)

    return function


for _primitive, (_onnx, _double) in FORMULAS.items():
    rule(_primitive, broadcasts=True)(_formula(_onnx, _double))


@rule("erfc", broadcasts=True)
def erfc(op: Writer, x: Tensor) -> Tensor:
    """A node that `finish` writes out: most are a part of a Gelu, and not needed."""
    tail = op.many("Erfc", 1, x, domain=DOMAIN)[0]
    tail.value.type, tail.value.shape = x.value.type, x.value.shape
    return tail


@rule("erf_inv", broadcasts=True)
def erf_inv(op: Writer, x: Tensor) -> Tensor:
    return lax.erf_inv(op, x)


@rule("lgamma", broadcasts=True)
def lgamma(op: Writer, x: Tensor) -> Tensor:
    return special.lgamma(op, x)


@rule("digamma", broadcasts=True)
def digamma(op: Writer, x: Tensor) -> Tensor:
    return special.digamma(op, x)


@rule("bessel_i0e", broadcasts=True)
def bessel_i0e(op: Writer, x: Tensor) -> Tensor:
    return special.bessel_i(op, 0, x, scaled=True)


@rule("bessel_i1e", broadcasts=True)
def bessel_i1e(op: Writer, x: Tensor) -> Tensor:
    return special.bessel_i(op, 1, x, scaled=True)


@rule("igamma")
def igamma(op: Writer, a: Tensor, x: Tensor) -> Tensor:
    return gamma.incomplete_gamma(op, a, x, upper=False)


@rule("igammac")
def igammac(op: Writer, a: Tensor, x: Tensor) -> Tensor:
    return gamma.incomplete_gamma(op, a, x, upper=True)


@rule("regularized_incomplete_beta")
def betainc(op: Writer, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return gamma.incomplete_beta(op, a, b, x)


@rule("zeta")
def zeta(op: Writer, x: Tensor, q: Tensor) -> Tensor:
    return gamma.zeta(op, x, q)


@rule("polygamma", broadcasts=True)
def polygamma(op: Writer, order: Tensor, x: Tensor) -> Tensor:
    known = op.fixed(order, "the order of polygamma")
    if known.size != 1 and (known != known.reshape(-1)[0]).any():
        raise UnsupportedError("polygamma of several orders at once is not supported; call it for each")
    return special.polygamma(op, int(known.reshape(-1)[0]), x)
