"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, Name, Ref
from onward.backends.emit.facts import scaled
from onward.backends.jax.target import KEYS, dtype, jax, ops, rule
from onward.spec.random import Bernoulli, Draw, Multinomial

_D = ir.DataType


def key(e: Emitter, seed: float | None = None) -> Expr:
    """The key to draw by: that of the seed, the next of those that the model is given, or a new one."""
    if seed is not None:
        return jax.random.key(int(np.float32(seed).view(np.int32)))
    return Name("next")(Ref(e.flags[KEYS])) if KEYS in e.flags else ops.new_key()


def _typed(of: ir.DataType | int | None) -> list[Any]:
    """The dtype, which JAX takes to be the default one where none is given."""
    return [dtype(of or _D.FLOAT)]


@rule("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def draw(e: Emitter, x: Expr | None = None, *, p: Draw) -> Expr:
    drawn: Expr = getattr(jax.random, p.kind)
    return scaled(drawn(key(e, p.seed), tuple(p.shape) if x is None else x.shape, *_typed(p.dtype)), p.factor, p.shift)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, p: Bernoulli) -> Expr:
    of = e.dtype(x) or _D.FLOAT if p.dtype is None else p.dtype
    return Binary("<", jax.random.uniform(key(e, p.seed), x.shape, x.dtype), x).astype(dtype(of))


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, p: Multinomial) -> Expr:
    drawn = jax.random.categorical(key(e, p.seed), x[:, None], shape=(e.dim(x, 0), p.sample_size))
    return drawn.astype(dtype(p.dtype))
