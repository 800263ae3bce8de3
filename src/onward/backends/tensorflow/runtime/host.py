"""Numbers computed from shapes: Python's where a size is known when a function is traced, scalar tensors where not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

DOUBLE = tf.float64
"""In what numbers with a fraction are computed that are no longer Python's."""


def dims_of(x: tf.Tensor) -> tf.Tensor:
    """The size of each axis."""
    return tf.shape(x, tf.int64)


def size(x: tf.Tensor, axis: int) -> Any:
    """The size of an axis."""
    known = None if x.shape.rank is None else x.shape[axis]
    return dims_of(x)[axis] if known is None else known


def rank(x: tf.Tensor) -> Any:
    """The number of axes."""
    return tf.cast(tf.rank(x), tf.int64) if x.shape.rank is None else x.shape.rank


def of_shape(x: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """A tensor of which this is known of its shape."""
    x.set_shape(shape)
    return x


def is_number(*items: Any) -> bool:
    """Whether all items are known now."""
    return not any(tf.is_tensor(item) for item in items)


def packed(items: Any, dtype: tf.DType) -> tf.Tensor:
    """A tensor of numbers in nested lists, some of which may be scalar tensors."""
    if isinstance(items, list):
        return tf.stack([packed(item, dtype) for item in items]) if items else tf.zeros([0], dtype)
    return tf.cast(items, dtype) if tf.is_tensor(items) else tf.constant(items, dtype)


def least(*items: Any) -> Any:
    if is_number(*items):
        return min(items)
    found = items[0]
    for item in items[1:]:
        found = tf.minimum(found, item) if tf.is_tensor(found) else tf.minimum(item, found)
    return found


def greatest(*items: Any) -> Any:
    if is_number(*items):
        return max(items)
    found = items[0]
    for item in items[1:]:
        found = tf.maximum(found, item) if tf.is_tensor(found) else tf.maximum(item, found)
    return found


def choose(test: Any, yes: Any, no: Any) -> Any:
    """`yes if test else no`."""
    if is_number(test):
        return yes if test else no
    if is_number(yes, no):
        return tf.where(test, *(tf.constant(v, DOUBLE if isinstance(v, float) else tf.int64) for v in (yes, no)))
    dtype = yes.dtype if tf.is_tensor(yes) else no.dtype
    return tf.where(test, packed(yes, dtype), packed(no, dtype))


def both(a: Any, b: Any) -> Any:
    return a and b if is_number(a, b) else tf.logical_and(a, b)


def either(a: Any, b: Any) -> Any:
    return a or b if is_number(a, b) else tf.logical_or(a, b)


def negated(a: Any) -> Any:
    return not a if is_number(a) else tf.logical_not(a)


def to_int(x: Any) -> Any:
    return int(x) if is_number(x) else tf.cast(x, tf.int64)


def to_float(x: Any) -> Any:
    return float(x) if is_number(x) else tf.cast(x, DOUBLE)


def to_bool(x: Any) -> Any:
    return bool(x) if is_number(x) else tf.cast(x, tf.bool)


def float32(x: Any) -> Any:
    """Rounded to single precision."""
    return float(np.float32(x)) if is_number(x) else tf.cast(tf.cast(x, tf.float32), DOUBLE)


def floor_number(x: Any) -> Any:
    return math.floor(x) if is_number(x) else tf.floor(x)


def ceil_number(x: Any) -> Any:
    return math.ceil(x) if is_number(x) else tf.math.ceil(x)


def sqrt_number(x: Any) -> Any:
    return math.sqrt(x) if is_number(x) else tf.sqrt(x)


def trunc_divide(a: Any, b: Any) -> Any:
    """Integer division towards zero."""
    if is_number(a, b):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return tf.truncatediv(*(tf.cast(v, tf.int64) for v in (a, b)))


def float_divide(a: Any, b: Any) -> Any:
    """Division that gives infinity or NaN where Python raises an error."""
    if is_number(a, b):
        with np.errstate(all="ignore"):
            return float(np.divide(a, b))
    return tf.divide(*(tf.cast(v, DOUBLE) for v in (a, b)))
