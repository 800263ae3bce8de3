"""Tables from keys to values, and maps as Python dictionaries."""

from typing import Any

import tensorflow as tf


def look_up(x: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, default: float) -> tf.Tensor:
    """The value of each key, or `default`; `keys` are sorted, and NaN, if it is one of them, is the last."""
    last = keys.shape[0] - 1
    flat = tf.cast(tf.reshape(x, [-1]), keys.dtype)
    ordered = tf.where(keys != keys, float("inf"), keys) if keys.dtype.is_floating else keys  # NaN can't be compared
    place = tf.minimum(tf.searchsorted(ordered, flat, out_type=tf.int64), last)
    place = tf.reshape(tf.where(flat != flat, last, place), tf.shape(x))
    key, same = tf.gather(keys, place), tf.cast(x, keys.dtype)
    is_known = (key == same) | ((key != key) & (same != same))
    return tf.where(is_known, tf.gather(values, place), tf.constant(default, values.dtype))


def look_up_strings(x: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, default: Any) -> tf.Tensor:
    """The value of each key, or `default`. Keys are found by a hash, then compared."""
    hashes = tf.strings.to_hash_bucket_fast(keys, 2**62)
    order = tf.argsort(hashes)
    wanted = tf.reshape(tf.strings.to_hash_bucket_fast(x, 2**62), [-1])
    place = tf.minimum(tf.searchsorted(tf.gather(hashes, order), wanted), keys.shape[0] - 1)
    index = tf.reshape(tf.gather(order, place), tf.shape(x))
    return tf.where(tf.gather(keys, index) == x, tf.gather(values, index), tf.constant(default, values.dtype))


def one_hot_of(x: tf.Tensor, categories: tf.Tensor, keep: tf.Tensor, strict: bool = False) -> tf.Tensor:
    """A 1 where an element is the category of that place along a new last axis; `keep` tells which places count."""
    x = x if x.dtype == tf.string else tf.cast(x, tf.int64)
    found = keep & (x[..., tf.newaxis] == categories)
    if strict:
        is_known = tf.reduce_all(tf.reduce_any(found, -1))
        with tf.control_dependencies([tf.debugging.Assert(is_known, ["a value is none of the categories"])]):
            found = tf.identity(found)
    return tf.cast(found, tf.float32)


def keys_of(names: tf.Tensor) -> list[Any]:
    """The elements of a constant as Python's integers or strings."""
    return [name.decode() if isinstance(name, bytes) else name for name in names.numpy().tolist()]


def vectorize_map(x: dict[Any, Any], vocabulary: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The values of a map in the order of a vocabulary, 0 or an empty string where there is none: one row."""
    missing = "" if dtype == tf.string else 0
    return tf.stack([[map_value(x.get(key, missing), dtype) for key in keys_of(vocabulary)]])


def map_value(value: Any, dtype: tf.DType) -> tf.Tensor:
    """A value of a map as a scalar."""
    if tf.is_tensor(value):
        return tf.reshape(tf.cast(value, dtype) if dtype != tf.string else value, [])
    return tf.constant(value if dtype == tf.string else dtype.as_numpy_dtype(value), dtype)


def cast_map(x: dict[int, Any], dtype: tf.DType, size: int | None = None) -> tf.Tensor:
    """The values of a map in the order of their keys, or at the places of their keys in a row of `size`."""
    keys = sorted(x) if size is None else range(size)
    if dtype != tf.string:
        return tf.stack([[number_of(x.get(key, 0), dtype) for key in keys]])
    return tf.stack([[text_of(x[key]) if key in x else tf.constant("0.f") for key in keys]])


def number_of(value: Any, dtype: tf.DType) -> tf.Tensor:
    """A number, or what a string spells."""
    if tf.is_tensor(value) and value.dtype == tf.string:
        value = tf.strings.to_number(value, tf.float64)
    return map_value(float(value) if isinstance(value, str) else value, dtype)


def text_of(value: Any) -> tf.Tensor:
    """A string, or a number with six digits after the point."""
    if isinstance(value, str) or (tf.is_tensor(value) and value.dtype == tf.string):
        return tf.reshape(tf.convert_to_tensor(value), [])
    return tf.reshape(tf.strings.as_string(tf.cast(value, tf.float64), precision=6), [])


def zip_map(x: tf.Tensor, names: tf.Tensor) -> list[dict[Any, tf.Tensor]]:
    """Each row of `x` as a map from names to numbers."""
    rows = x if x.shape.rank > 1 else x[tf.newaxis]
    return [dict(zip(keys_of(names), tf.unstack(row), strict=True)) for row in tf.unstack(rows)]
