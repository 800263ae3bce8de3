"""Lists of tensors, whose length is known when a function is traced; positions may not be.

They are never changed in place: another value may share them.
"""

import itertools
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import is_number, size


def place_in(position: Any, count: int, end: int) -> Any:
    """A position below `end`, counted from the front: a number where it is known now, else a tensor that is checked."""
    if not is_number(position):
        if not tf.executing_eagerly():
            checked = tf.debugging.Assert((position >= -count) & (position < end), ["no element at", position])
            with tf.control_dependencies([checked]):
                return tf.cast(tf.where(position < 0, position + count, position), tf.int32)
        position = int(position)
    if not -count <= position < end:
        raise IndexError(f"no element at {position} of {count}")
    return position + count if position < 0 else position


def sequence_at(sequence: list[Any], position: Any) -> Any:
    """An element; the position may be negative."""
    place = place_in(position, len(sequence), len(sequence))
    return sequence[place] if is_number(place) else tf.switch_case(place, [lambda x=x: x for x in sequence])


def sequence_insert(sequence: list[Any], item: Any, position: Any) -> list[Any]:
    """A list with one more element; the position may be negative, len(sequence) appends."""
    count = len(sequence)
    place = place_in(position, count, count + 1)
    if is_number(place):
        return [*sequence[:place], item, *sequence[place:]]
    longer = [*sequence, item]
    return [
        tf.switch_case(tf.sign(i - place) + 1, [lambda x=x: x for x in (longer[i], item, longer[i - 1])])
        for i in range(count + 1)
    ]


def sequence_erase(sequence: list[Any], position: Any) -> list[Any]:
    """A list without the element at a position, which may be negative."""
    place = place_in(position, len(sequence), len(sequence))
    if is_number(place):
        return sequence[:place] + sequence[place + 1 :]
    pairs = itertools.pairwise(sequence)
    return [tf.cond(i < place, lambda a=a: a, lambda b=b: b) for i, (a, b) in enumerate(pairs)]


def split_in_steps(x: tf.Tensor, step: Any, axis: int) -> list[tf.Tensor]:
    """Parts of one size along an axis; the last may be smaller."""
    length = x.shape[axis]
    if length is None or not (is_number(step) or tf.executing_eagerly()):
        raise ValueError("the number of parts that a tensor is split into is not known when it is traced")
    step = int(step)
    parts: list[tf.Tensor] = tf.split(x, [min(step, length - start) for start in range(0, length, step)], axis)
    return parts


def split_by(x: tf.Tensor, sizes: tf.Tensor, axis: int) -> list[tf.Tensor]:
    """Parts of given sizes along an axis, or of one size."""
    return split_in_steps(x, sizes, axis) if sizes.shape.rank == 0 else tf.split(x, sizes, axis)


def part_count(x: tf.Tensor, axis: int, sizes: Any) -> Any:
    """The number of parts that a tensor splits into along an axis: of one size, or of those in a vector."""
    if not is_number(sizes) and sizes.shape.rank == 1:
        return size(sizes, 0)
    return -(-size(x, axis) // sizes)


def part_at(x: tf.Tensor, axis: int, sizes: Any, position: Any, keepdims: bool = True) -> tf.Tensor:
    """One of these parts; the position may be negative."""
    count = tf.cast(part_count(x, axis, sizes), tf.int64)
    position = tf.cast(position, tf.int64)
    is_there = (position >= -count) & (position < count)
    is_vector = not is_number(sizes) and sizes.shape.rank == 1
    if is_vector:
        is_there = is_there & (tf.cast(tf.reduce_sum(sizes), tf.int64) == size(x, axis))
    checked = tf.debugging.Assert(is_there, ["no part at", position, "of", sizes])
    with tf.control_dependencies([] if checked is None else [checked]):
        place = tf.where(position < 0, position + count, position)
    if is_vector:
        end = tf.cast(tf.cumsum(sizes)[place], tf.int64)
        start = end - tf.cast(sizes[place], tf.int64)
    else:
        start = place * sizes
        end = tf.minimum(start + sizes, tf.cast(size(x, axis), tf.int64))
    before = [slice(None)] * (axis % x.shape.rank)
    return x[(*before, slice(start, end) if keepdims else start)]
