"""Normalisations that no framework has."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.spec.norm import LpNorm, MeanVarianceNorm


def lp_normalize(e: Emitter, x: Expr, p: LpNorm) -> Expr:
    return ops.lp_normalize(x, p.p, p.axis)


def mean_variance_norm(e: Emitter, x: Expr, p: MeanVarianceNorm) -> Expr:
    return ops.mean_variance_norm(x, e.target.each(p.axes))


RULES: dict[str, Rule] = {"LpNormalization": lp_normalize, "MeanVarianceNormalization": mean_variance_norm}
