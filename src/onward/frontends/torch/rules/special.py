"""Special functions."""

from __future__ import annotations

import math

from onward.errors import UnsupportedError
from onward.frontends.decompose import special
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor

LARGEST_ORDER = 20

for _name, _function in {
    "lgamma": special.lgamma,
    "erfinv": special.erfinv,
    "special_erfcx": special.erfcx,
    "special_log_ndtr": special.log_ndtr,
    "special_ndtri": special.ndtri,
}.items():
    rule(_name)(_function)


@rule("digamma")
def digamma(op: Builder, x: Tensor) -> Tensor:
    """Not a number at the negative whole numbers, and infinite at zero, by its sign."""
    value = special.digamma(op, x)
    value = op.where(op.And(x < 0.0, op.Equal(x, op.Floor(x))), op.like(math.nan, x), value)
    return op.where(op.Equal(x, op.like(0.0, x)), -1.0 / x, value)


@rule("polygamma")
def polygamma(op: Builder, n: int, x: Tensor) -> Tensor:
    if n > LARGEST_ORDER:
        raise UnsupportedError(f"an order over {LARGEST_ORDER} is not supported")
    return special.polygamma(op, n, x) if n else digamma(op, x)


@rule("i0")
def i0(op: Builder, x: Tensor) -> Tensor:
    return special.bessel_i(op, 0, x, scaled=False)


@rule("special_i0e")
def i0e(op: Builder, x: Tensor) -> Tensor:
    return special.bessel_i(op, 0, x, scaled=True)


@rule("special_i1")
def i1(op: Builder, x: Tensor) -> Tensor:
    return special.bessel_i(op, 1, x, scaled=False)


@rule("special_i1e")
def i1e(op: Builder, x: Tensor) -> Tensor:
    return special.bessel_i(op, 1, x, scaled=True)


@rule("special_bessel_j0")
def j0(op: Builder, x: Tensor) -> Tensor:
    return special.bessel_j(op, 0, x)


@rule("special_bessel_j1")
def j1(op: Builder, x: Tensor) -> Tensor:
    return special.bessel_j(op, 1, x)
