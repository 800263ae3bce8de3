"""Sequences and optionals of which only a function that runs knows how long they are, and whether they are there."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class TensorSequence(tf.experimental.ExtensionType):  # type: ignore[misc]
    """Tensors of one dtype, as many as there are when a function runs; it is never changed in place.

    Outside of functions it has a length, and its elements can be listed.
    """

    items: tf.Tensor
    dtype: tf.DType

    def __len__(self) -> int:
        return int(array_of(self).size())

    def __getitem__(self, position: int) -> tf.Tensor:
        count = len(self)
        if not -count <= position < count:
            raise IndexError(f"no element at {position} of {count}")
        return array_of(self).read(position % count)


class OptionalOf(NamedTuple):
    """The type of an optional: that of its element."""

    element: Any


def sequence_of(dtype: tf.DType) -> Any:
    """The type of a sequence of tensors."""
    return TensorSequence.Spec(tf.TensorSpec([], tf.variant), dtype)


def array_of(sequence: TensorSequence) -> tf.TensorArray:
    kind = {"dynamic_size": True, "infer_shape": False, "element_shape": None}
    return tf.TensorArray(sequence.dtype, flow=sequence.items, **kind)


def opened(part: Any, kind: Any) -> Any:
    """A list or an optional as a value that may be another one when a function runs; `kind` is its type."""
    if isinstance(kind, OptionalOf):
        if isinstance(part, tf.experimental.Optional):
            return part
        if part is None:
            return tf.experimental.Optional.empty(kind.element)
        return tf.experimental.Optional.from_value(opened(part, kind.element))
    if isinstance(kind, tf.TensorSpec):
        return tf.raw_ops.PlaceholderWithDefault(input=part, shape=kind.shape)
    if isinstance(part, TensorSequence):
        return part
    array = tf.TensorArray(kind.dtype, len(part), dynamic_size=True, infer_shape=False, element_shape=None)
    for i, item in enumerate(part):
        array = array.write(i, item)
    return TensorSequence(array.flow, kind.dtype)


def rebuilt(dtype: tf.DType, count: tf.Tensor, item: Callable[[tf.Tensor], tf.Tensor]) -> TensorSequence:
    """The sequence of `item(i)` for i below `count`."""
    array = tf.TensorArray(dtype, count, dynamic_size=True, infer_shape=False, element_shape=None)
    _, array = tf.while_loop(lambda i, _: i < count, lambda i, a: (i + 1, a.write(i, item(i))), (0, array))
    return TensorSequence(array.flow, dtype)


def place_now(position: Any, count: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """A position below `end`, counted from the front, that is checked when a function runs."""
    position = tf.cast(position, tf.int32)
    checked = tf.debugging.Assert((position >= -count) & (position < end), ["no element at", position])
    with tf.control_dependencies([] if checked is None else [checked]):
        return tf.where(position < 0, position + count, position)


def has_element(x: Any) -> Any:
    """Whether an optional has a value."""
    return x.has_value() if isinstance(x, tf.experimental.Optional) else x is not None


def element(x: Any) -> Any:
    """The value of an optional."""
    return x.get_value() if isinstance(x, tf.experimental.Optional) else x


def sequence_length(sequence: Any) -> Any:
    """The number of elements."""
    return tf.cast(array_of(sequence).size(), tf.int64) if isinstance(sequence, TensorSequence) else len(sequence)


def sequence_append(sequence: Any, item: tf.Tensor) -> Any:
    """With one more element, at the end."""
    if not isinstance(sequence, TensorSequence):
        return [*sequence, item]
    array = array_of(sequence)
    return TensorSequence(array.write(array.size(), item).flow, sequence.dtype)


def sequence_concat(sequence: Any, axis: int, new_axis: bool = False) -> tf.Tensor:
    """All elements, one after the other along an axis, or along a new one."""
    if not isinstance(sequence, TensorSequence):
        return (tf.stack if new_axis else tf.concat)(sequence, axis)
    array = array_of(sequence)

    def joined(i: tf.Tensor, found: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.concat([found, part(i)], axis)

    def part(i: Any) -> tf.Tensor:
        return tf.expand_dims(array.read(i), axis) if new_axis else array.read(i)

    shapes = tf.TensorShape([]), tf.TensorShape(None)
    return tf.while_loop(lambda i, _: i < array.size(), joined, (tf.constant(1), part(0)), shape_invariants=shapes)[1]
