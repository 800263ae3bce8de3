"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.emit.facts import scaled
from onward.backends.tensorflow.dtypes import dtype_of
from onward.backends.tensorflow.target import dtype, rule, tf
from onward.spec.random import Bernoulli, Draw, Multinomial

_D = ir.DataType


def _drawn(name: str, seed: float | None, *arguments: Any, **typed: Any) -> Expr:
    """Numbers of TensorFlow's own generator, or those that belong to a seed."""
    if seed is None:
        plain: Expr = getattr(tf.random, name)
        return plain(*arguments, **typed)
    stateless: Expr = getattr(tf.random, f"stateless_{name}")
    return stateless(*arguments, [int(np.float32(seed).view(np.int32)), 0], **typed)


def _typed(of: ir.DataType | int, usual: ir.DataType) -> dict[str, Any]:
    return {} if of == usual else {"dtype": dtype(of)}


@rule("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def draw(e: Emitter, x: Expr | None = None, *, p: Draw) -> Expr:
    shape = list(p.shape) if x is None else tf.shape(x)
    return scaled(_drawn(p.kind, p.seed, shape, **_typed(p.dtype or _D.FLOAT, _D.FLOAT)), p.factor, p.shift)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, p: Bernoulli) -> Expr:
    drawn = _drawn("uniform", p.seed, tf.shape(x), **_typed(dtype_of(e, x), _D.FLOAT))
    return tf.cast(Binary("<", drawn, x), dtype(dtype_of(e, x) if p.dtype is None else p.dtype))


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, p: Multinomial) -> Expr:
    return _drawn("categorical", p.seed, x, p.sample_size, **_typed(p.dtype, _D.INT64))
