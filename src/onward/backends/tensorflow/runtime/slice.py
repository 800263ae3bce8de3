"""Parts of tensors and borders around them, in the cases that TensorFlow's own indexing and `tf.pad` do not know."""

from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of, greatest, is_number, of_shape, packed


def whole_numbers(items: Any) -> tf.Tensor:
    """A list of host numbers, or a tensor, as a one-dimensional int64 tensor."""
    return packed(items, tf.int64) if isinstance(items, list) else tf.reshape(tf.cast(items, tf.int64), [-1])


def on_axes(x: tf.Tensor, values: tf.Tensor, axes: Any, default: int) -> tf.Tensor:
    """A number for each axis of `x`: those of `values` for the given axes, the default for the others."""
    rank = tf.cast(tf.rank(x), tf.int64)
    every = tf.fill([rank] if x.shape.rank is None else [x.shape.rank], tf.constant(default, tf.int64))
    places = tf.range(tf.size(values, tf.int64)) if axes is None else whole_numbers(axes) % rank
    return tf.tensor_scatter_nd_update(every, places[:, None], values)


def slice_tensor(x: tf.Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> tf.Tensor:
    """x[start:end:step] along each of the axes; steps may be negative."""
    starts, ends = whole_numbers(starts), whole_numbers(ends)
    shape = dims_of(x)
    step = on_axes(x, tf.ones_like(starts) if steps is None else whole_numbers(steps), axes, 1)
    start, end = on_axes(x, starts, axes, 0), on_axes(x, ends, axes, tf.int64.max)
    back = tf.cast(step < 0, tf.int64)
    start = tf.minimum(tf.maximum(tf.where(start < 0, start + shape, start), 0), shape - back)
    end = tf.minimum(tf.maximum(tf.where(end < 0, end + shape, end), -back), shape - back)
    return tf.strided_slice(x, start, tf.where(end < 0, end - shape, end), step)


def pad(x: tf.Tensor, widths: Any, mode: str = "constant", value: Any = None, axes: Any = None) -> tf.Tensor:
    """Add to the begin and the end of each axis, or cut from it where negative. `widths`: all begins, then all ends."""
    sides = tf.reshape(whole_numbers(widths), [2, -1])
    before, after = on_axes(x, sides[0], axes, 0), on_axes(x, sides[1], axes, 0)
    before, after = clamped_sides(dims_of(x), before, after)
    if mode == "constant":
        return of_shape(pad_constant(x, before, after, value), padded_shape(x, widths, axes))

    def along_axis(axis: Any, x: tf.Tensor) -> tuple[Any, tf.Tensor]:
        index = border_index(dims_of(x)[axis], before[axis], after[axis], mode)
        return axis + 1, tf.gather(x, index, axis=axis)

    if x.shape.rank is None:
        count, shapes = tf.rank(x), (tf.TensorShape([]), tf.TensorShape(None))
        return tf.while_loop(lambda axis, _: axis < count, along_axis, (0, x), shape_invariants=shapes)[1]
    for axis in range(x.shape.rank):
        x = along_axis(axis, x)[1]
    return x


def padded_shape(x: tf.Tensor, widths: Any, axes: Any) -> tf.TensorShape:
    """What is known of the shape of a tensor that is padded so."""
    rank = x.shape.rank
    if rank is None or axes is not None or not isinstance(widths, list):
        return tf.TensorShape(None if rank is None else [None] * rank)
    sides = zip(x.shape, widths[:rank], widths[rank:], strict=True)
    return tf.TensorShape([n + a + b if n is not None and is_number(a, b) else None for n, a, b in sides])


def pad_constant(x: tf.Tensor, before: tf.Tensor, after: tf.Tensor, value: Any = None) -> tf.Tensor:
    """`tf.pad` that cuts off where it is to add less than nothing."""
    first = tf.maximum(-before, 0)
    kept = tf.slice(x, first, dims_of(x) - first - tf.maximum(-after, 0))
    added = tf.stack([tf.maximum(before, 0), tf.maximum(after, 0)], 1)
    if value is None:
        value = "" if x.dtype == tf.string else tf.zeros([], x.dtype)
    return tf.pad(kept, added, constant_values=tf.reshape(value, []))


def clamped_sides(shape: tf.Tensor, before: tf.Tensor, after: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """What to add to both ends of axes, where it may be to cut more than there is and to add it at the other end."""
    total = shape + before + after
    tf.debugging.assert_non_negative(total, "padding cuts more than the elements of an axis")
    early, late = before < -shape, after < -shape
    return (
        tf.where(early, -shape, tf.where(late, total, before)),
        tf.where(early, total, tf.where(late, -shape, after)),
    )


def border_index(length: Any, before: Any, after: Any, mode: str) -> tf.Tensor:
    """Which element of an axis each element of the padded axis is."""
    first = greatest(-before, 0)
    length = length - greatest(-after, 0) - first
    place = tf.range(-greatest(before, 0), length + greatest(after, 0), dtype=tf.int64)
    fits = (length > 0) | (tf.size(place) == 0)
    tf.debugging.Assert(fits, [f"an axis without elements cannot be padded in mode {mode!r}"])
    if mode == "edge":
        place = tf.clip_by_value(place, 0, length - 1)
    elif mode == "wrap":
        place = place % greatest(length, 1)
    else:
        place = length - 1 - tf.abs(place % greatest(2 * length - 2, 1) - (length - 1))
    return place + first


def center_crop_pad(x: tf.Tensor, shape: Any, axes: list[int] | None = None) -> tf.Tensor:
    """Cut or pad with zeros on both sides, so that the axes get the given sizes."""
    known, wanted = dims_of(x), whole_numbers(shape)
    places = tf.range(tf.size(wanted, tf.int64)) if axes is None else whole_numbers(axes) % tf.size(known, tf.int64)
    missing = on_axes(x, wanted - tf.gather(known, places), places, 0)
    before = tf.where(missing > 0, missing // 2, -(-missing // 2))
    return pad_constant(x, before, missing - before)
