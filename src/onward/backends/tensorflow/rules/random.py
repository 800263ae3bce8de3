"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.emit.facts import scaled
from onward.backends.tensorflow.dtypes import dtype_of
from onward.backends.tensorflow.target import dtype as typename
from onward.backends.tensorflow.target import rule, tf

_D = ir.DataType


def _draw(name: str, shape: Any, of: ir.DataType | int, seed: float | None) -> Expr:
    """Numbers of TensorFlow's own generator, or those that belong to a seed."""
    typed = {} if of == _D.FLOAT else {"dtype": typename(of)}
    if seed is None:
        plain: Expr = getattr(tf.random, name)
        return plain(shape, **typed)
    stateless: Expr = getattr(tf.random, f"stateless_{name}")
    return stateless(shape, [int(np.float32(seed).view(np.int32)), 0], **typed)


@rule("RandomNormal")
def normal(
    e: Emitter,
    *,
    shape: list[int],
    dtype: int = _D.FLOAT,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    return scaled(_draw("normal", list(shape), dtype, seed), scale, mean)


@rule("RandomUniform")
def uniform(
    e: Emitter,
    *,
    shape: list[int],
    dtype: int = _D.FLOAT,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Expr:
    return scaled(_draw("uniform", list(shape), dtype, seed), high - low, low)


@rule("RandomNormalLike")
def normal_like(
    e: Emitter,
    x: Expr,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    return scaled(_draw("normal", tf.shape(x), dtype or dtype_of(e, x), seed), scale, mean)


@rule("RandomUniformLike")
def uniform_like(
    e: Emitter,
    x: Expr,
    *,
    dtype: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Expr:
    return scaled(_draw("uniform", tf.shape(x), dtype or dtype_of(e, x), seed), high - low, low)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, *, dtype: int | None = None, seed: float | None = None) -> Expr:
    drawn = _draw("uniform", tf.shape(x), dtype_of(e, x), seed)
    return tf.cast(Binary("<", drawn, x), typename(dtype_of(e, x) if dtype is None else dtype))


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, *, dtype: int = _D.INT32, sample_size: int = 1, seed: float | None = None) -> Expr:
    typed = {} if dtype == _D.INT64 else {"dtype": typename(dtype)}
    if seed is None:
        return tf.random.categorical(x, sample_size, **typed)
    return tf.random.stateless_categorical(x, sample_size, [int(np.float32(seed).view(np.int32)), 0], **typed)
