"""Lists of tensors, whose length is known when a function is traced; positions may not be.

They are never changed in place: another value may share them.
"""

import itertools
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import is_number


def place_in(position: Any, size: int, end: int) -> Any:
    """A position below `end`, counted from the front: a number where it is known now, else a tensor that is checked."""
    if not is_number(position):
        if not tf.executing_eagerly():
            checked = tf.debugging.Assert((position >= -size) & (position < end), ["no element at", position])
            with tf.control_dependencies([checked]):
                return tf.cast(tf.where(position < 0, position + size, position), tf.int32)
        position = int(position)
    if not -size <= position < end:
        raise IndexError(f"no element at {position} of {size}")
    return position + size if position < 0 else position


def sequence_at(sequence: list[Any], position: Any) -> Any:
    """An element; the position may be negative."""
    place = place_in(position, len(sequence), len(sequence))
    return sequence[place] if is_number(place) else tf.switch_case(place, [lambda x=x: x for x in sequence])


def sequence_insert(sequence: list[Any], item: Any, position: Any) -> list[Any]:
    """A list with one more element; the position may be negative, len(sequence) appends."""
    size = len(sequence)
    place = place_in(position, size, size + 1)
    if is_number(place):
        return [*sequence[:place], item, *sequence[place:]]
    longer = [*sequence, item]
    return [
        tf.switch_case(tf.sign(i - place) + 1, [lambda x=x: x for x in (longer[i], item, longer[i - 1])])
        for i in range(size + 1)
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
    size = x.shape[axis]
    if size is None or not (is_number(step) or tf.executing_eagerly()):
        raise ValueError("the number of parts that a tensor is split into is not known when it is traced")
    step = int(step)
    parts: list[tf.Tensor] = tf.split(x, [min(step, size - start) for start in range(0, size, step)], axis)
    return parts


def split_by(x: tf.Tensor, sizes: tf.Tensor, axis: int) -> list[tf.Tensor]:
    """Parts of given sizes along an axis, or of one size."""
    return split_in_steps(x, sizes, axis) if sizes.shape.rank == 0 else tf.split(x, sizes, axis)
