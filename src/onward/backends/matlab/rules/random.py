"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, Name
from onward.backends.emit.facts import scaled
from onward.backends.matlab.target import TARGET, class_of, ops, rule, sizes
from onward.spec.random import Bernoulli, Draw, Multinomial

_D = ir.DataType


def _drawn(kind: str, seed: float | None, shape: Expr, of: str) -> Expr:
    """Uniform or normal numbers of MATLAB's generator, or those that belong to a seed."""
    if seed is None:
        return Name("rand" if kind == "uniform" else "randn")(shape, of)
    return ops.seeded(kind, int(np.float32(seed).view(np.uint32)), shape, of)


@rule("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def draw(e: Emitter, x: Expr | None = None, *, p: Draw) -> Expr:
    shape = sizes(p.shape) if x is None else Name("size")(x)
    return scaled(_drawn(p.kind, p.seed, shape, class_of(p.dtype or _D.FLOAT)), p.factor, p.shift)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, p: Bernoulli) -> Expr:
    own = e.dtype(x) or _D.FLOAT
    of: Any = own if p.dtype is None else p.dtype
    drawn = Binary("<", _drawn("uniform", p.seed, Name("size")(x), class_of(own)), x)
    return drawn if of == _D.BOOL else TARGET.cast(drawn, of)


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, p: Multinomial) -> Expr:
    drawn = _drawn("uniform", p.seed, sizes((e.dim(x, 0), p.sample_size)), "double")
    return ops.multinomial(x, drawn, class_of(p.dtype))
