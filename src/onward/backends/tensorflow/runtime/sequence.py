"""Lists of tensors, whose length is known when a function is traced, though positions may not be.

Where only a run knows the length, it is a `TensorSequence`.

They are never changed in place: another value may share them.
"""

import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.control_flow import map_sequences
from onward.backends.tensorflow.runtime.host import is_number, size
from onward.backends.tensorflow.runtime.sequence_open import (
    TensorSequence,
    array_of,
    place_now,
    rebuilt,
    sequence_length,
)


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


def sequence_at(sequence: Any, position: Any) -> Any:
    """An element; the position may be negative."""
    if isinstance(sequence, TensorSequence):
        array = array_of(sequence)
        return array.read(place_now(position, array.size(), array.size()))
    place = place_in(position, len(sequence), len(sequence))
    return sequence[place] if is_number(place) else tf.switch_case(place, [lambda x=x: x for x in sequence])


def sequence_insert(sequence: Any, item: Any, position: Any) -> Any:
    """With one more element; the position may be negative, the length of the sequence appends."""
    if isinstance(sequence, TensorSequence):
        array = array_of(sequence)
        place = place_now(position, array.size(), array.size() + 1)

        def after(i: tf.Tensor) -> tf.Tensor:
            return tf.cond(tf.equal(i, place), lambda: item, lambda: array.read(i - tf.cast(i > place, tf.int32)))

        return rebuilt(sequence.dtype, array.size() + 1, after)
    count = len(sequence)
    place = place_in(position, count, count + 1)
    if is_number(place):
        return [*sequence[:place], item, *sequence[place:]]
    longer = [*sequence, item]
    return [
        tf.switch_case(tf.sign(i - place) + 1, [lambda x=x: x for x in (longer[i], item, longer[i - 1])])
        for i in range(count + 1)
    ]


def sequence_erase(sequence: Any, position: Any) -> Any:
    """Without the element at a position, which may be negative."""
    if isinstance(sequence, TensorSequence):
        array = array_of(sequence)
        place = place_now(position, array.size(), array.size())
        return rebuilt(sequence.dtype, array.size() - 1, lambda i: array.read(i + tf.cast(i >= place, tf.int32)))
    place = place_in(position, len(sequence), len(sequence))
    if is_number(place):
        return sequence[:place] + sequence[place + 1 :]
    pairs = itertools.pairwise(sequence)
    return [tf.cond(i < place, lambda a=a: a, lambda b=b: b) for i, (a, b) in enumerate(pairs)]


def split_in_steps(x: tf.Tensor, step: Any, axis: int) -> Any:
    """Parts of one size along an axis; the last may be smaller."""
    length = x.shape[axis]
    if length is None or not (is_number(step) or tf.executing_eagerly()):
        return all_parts(x, axis, step)
    step = int(step)
    parts: list[tf.Tensor] = tf.split(x, [min(step, length - start) for start in range(0, length, step)], axis)
    return parts


def split_by(x: tf.Tensor, sizes: tf.Tensor, axis: int) -> Any:
    """Parts of given sizes along an axis, or of one size."""
    if sizes.shape.rank == 0:
        return split_in_steps(x, sizes, axis)
    return all_parts(x, axis, sizes) if sizes.shape[0] is None else tf.split(x, sizes, axis)


def unstacked(x: tf.Tensor, axis: int) -> Any:
    """The parts of size 1, without the axis."""
    return all_parts(x, axis, 1, keepdims=False) if x.shape[axis] is None else tf.unstack(x, axis=axis)


def all_parts(x: tf.Tensor, axis: int, sizes: Any, keepdims: bool = True) -> Any:
    """The parts that a tensor splits into along an axis, as many as there are when a function runs."""
    count = tf.cast(part_count(x, axis, sizes), tf.int32)
    return rebuilt(x.dtype, count, lambda i: part_at(x, axis, sizes, i, keepdims))


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


def map_open(body: Callable[..., Any], sequences: list[Any], dtypes: list[tf.DType]) -> list[Any]:
    """What a function gives for the elements of sequences, of which some have a length that only a run knows."""
    if not any(isinstance(sequence, TensorSequence) for sequence in sequences):
        return map_sequences(body, sequences, len(dtypes))
    count = tf.cast(sequence_length(sequences[0]), tf.int32)
    options = {"dynamic_size": True, "infer_shape": False, "element_shape": None}

    def step(i: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple[tf.Tensor, list[tf.TensorArray]]:
        found = body(*(sequence_at(sequence, i) for sequence in sequences))
        return i + 1, [a.write(i, row) for a, row in zip(arrays, found, strict=True)]

    empty = [tf.TensorArray(dtype, count, **options) for dtype in dtypes]
    _, arrays = tf.while_loop(lambda i, _: i < count, step, (tf.constant(0), empty))
    return [TensorSequence(a.flow, dtype) for a, dtype in zip(arrays, dtypes, strict=True)]
