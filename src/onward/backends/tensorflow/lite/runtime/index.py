"""Placing by index in ways that TensorFlow Lite has kernels for."""

import tensorflow as tf


def other_rows(x: tf.Tensor, places: tf.Tensor, updates: tf.Tensor, adds: bool) -> tf.Tensor:
    """A copy of x in which rows are replaced, or added to; with a row more in front, as the kernel ends the process
    where there is none."""
    combined = tf.tensor_scatter_nd_add if adds else tf.tensor_scatter_nd_update
    if x.shape.num_elements() and updates.shape.num_elements():
        return combined(x, places[:, None], updates)
    row = tf.zeros(tf.concat([[1], tf.shape(x)[1:]], 0), x.dtype)
    first = tf.zeros([1], places.dtype)
    places = tf.concat([first, places + 1], 0)
    return combined(tf.concat([row, x], 0), places[:, None], tf.concat([row, updates], 0))[1:]


def extreme_rows(x: tf.Tensor, places: tf.Tensor, updates: tf.Tensor, largest: bool) -> tf.Tensor:
    """A copy of x in which each row is the largest, or the smallest, of itself and its updates."""
    count = tf.shape(x)[0]
    if largest:
        return tf.maximum(x, tf.math.unsorted_segment_max(updates, places, count))
    return tf.minimum(x, tf.math.unsorted_segment_min(updates, places, count))
