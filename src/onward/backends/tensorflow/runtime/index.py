"""Picking, placing and counting elements by index. An index below zero counts from the end."""

from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of, is_number, size


def from_front(indices: tf.Tensor, count: Any) -> tf.Tensor:
    """Indices counted from the front, as int64."""
    indices = tf.cast(indices, tf.int64)
    return tf.where(indices < 0, indices + count, indices)


def gather(x: tf.Tensor, indices: tf.Tensor, axis: int = 0) -> tf.Tensor:
    """`tf.gather`, with indices from the end as well."""
    return tf.gather(x, from_front(indices, dims_of(x)[axis]), axis=axis)


def row_numbers(indices: tf.Tensor, sizes: tf.Tensor) -> tf.Tensor:
    """Which element of an array of these sizes the last axis means; one past the end, which is refused, if none."""
    indices, depth = from_front(indices, sizes), size(indices, -1)
    inside = tf.reduce_all((indices >= 0) & (indices < sizes), -1)
    if is_number(depth):
        row = tf.zeros(tf.shape(indices)[:-1], tf.int64)
        for i in range(depth):
            row = row * sizes[i] + indices[..., i]
    else:
        row = tf.reduce_sum(indices * tf.math.cumprod(sizes, exclusive=True, reverse=True), -1)
    return tf.where(inside, row, tf.reduce_prod(sizes))


def gather_nd(x: tf.Tensor, indices: tf.Tensor, batch_dims: int = 0) -> tf.Tensor:
    """`tf.gather_nd`, with indices from the end as well."""
    shape, depth = dims_of(x), size(indices, -1)
    sizes = shape[batch_dims:][:depth]
    if batch_dims == 0:
        return tf.gather_nd(x, from_front(indices, sizes))
    count = tf.reduce_prod(shape[:batch_dims])
    row = tf.reshape(row_numbers(indices, sizes), [count, -1])
    rows = tf.reshape(x, tf.concat([[count, tf.reduce_prod(sizes)], shape[batch_dims:][depth:]], 0))
    found = tf.gather(rows, row, axis=1, batch_dims=1)
    return tf.reshape(found, tf.concat([dims_of(indices)[:-1], shape[batch_dims:][depth:]], 0))


def element_places(x: tf.Tensor, indices: tf.Tensor, axis: int) -> tf.Tensor:
    """The number in `x` of each element that `indices` chooses along an axis; elsewhere it is at its own place.

    An index out of range gives a number past the end, which is refused.
    """
    shape, wanted = dims_of(x), dims_of(indices)
    chosen, rank = from_front(indices, shape[axis]), indices.shape.rank
    if rank is None:
        strides = tf.math.cumprod(wanted, exclusive=True, reverse=True)
        own = tf.reshape(tf.range(tf.size(indices, tf.int64)), wanted)[..., None] // strides % wanted
        is_axis = tf.range(tf.rank(x)) == axis % tf.rank(x)
        strides = tf.math.cumprod(shape, exclusive=True, reverse=True)
        place = tf.reduce_sum(tf.where(is_axis, chosen[..., None], own) * strides, -1)
    else:
        place = tf.zeros_like(chosen)
        for i in range(rank):
            own = tf.reshape(tf.range(wanted[i]), [-1] + [1] * (rank - 1 - i))
            place = place * shape[i] + (chosen if i == axis % rank else own)
    return tf.where((chosen >= 0) & (chosen < shape[axis]), place, tf.size(x, tf.int64))


def gather_elements(x: tf.Tensor, indices: tf.Tensor, axis: int) -> tf.Tensor:
    """out[i][j] = x[indices[i][j]][j] for axis 0, and likewise for the others."""
    return tf.gather(tf.reshape(x, [-1]), element_places(x, indices, axis))


def scatter_elements(
    x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor, axis: int, reduction: str = "none"
) -> tf.Tensor:
    """A copy of x in which updates[i][j] is at, or combined with, x[indices[i][j]][j] for axis 0."""
    place = tf.reshape(element_places(x, indices, axis), [-1])
    flat = combine_rows(tf.reshape(x, [-1]), place, tf.reshape(updates, [-1]), reduction)
    return tf.reshape(flat, tf.shape(x))


def scatter_nd(x: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor, reduction: str = "none") -> tf.Tensor:
    """A copy of x in which updates[i] is at, or combined with, x[*indices[i]]."""
    shape, depth = dims_of(x), size(indices, -1)
    row = row_numbers(indices, shape[:depth])
    rows = tf.concat([[tf.reduce_prod(shape[:depth])], shape[depth:]], 0)
    new = tf.reshape(updates, tf.concat([[tf.size(row, tf.int64)], shape[depth:]], 0))
    return tf.reshape(combine_rows(tf.reshape(x, rows), tf.reshape(row, [-1]), new, reduction), shape)


def combine_rows(x: tf.Tensor, places: tf.Tensor, updates: tf.Tensor, reduction: str) -> tf.Tensor:
    """A copy of x with rows replaced, or combined by "add", "mul", "max" or "min"; truth values by "or" and "and"."""
    if x.dtype == tf.bool and reduction != "none":
        larger = "max" if reduction in ("add", "max") else "min"
        return tf.cast(combine_rows(tf.cast(x, tf.int32), places, tf.cast(updates, tf.int32), larger), tf.bool)
    if reduction == "mul":
        return x * tf.math.unsorted_segment_prod(updates, places, dims_of(x)[0])
    if reduction in ("max", "min"):
        return extreme_rows(x, places, updates, reduction == "max")
    return other_rows(x, places, updates, reduction == "add")


def other_rows(x: tf.Tensor, places: tf.Tensor, updates: tf.Tensor, adds: bool) -> tf.Tensor:
    """A copy of x in which rows are replaced, or added to."""
    return (tf.tensor_scatter_nd_add if adds else tf.tensor_scatter_nd_update)(x, places[:, None], updates)


def extreme_rows(x: tf.Tensor, places: tf.Tensor, updates: tf.Tensor, largest: bool) -> tf.Tensor:
    """A copy of x in which each row is the largest, or the smallest, of itself and its updates."""
    return (tf.tensor_scatter_nd_max if largest else tf.tensor_scatter_nd_min)(x, places[:, None], updates)


def write_cache(
    cache: tf.Tensor, update: tf.Tensor, start: tf.Tensor | None, axis: int, circular: bool = False
) -> tf.Tensor:
    """A copy of `cache` with `update` written along `axis`, for each sample of the batch from its own start."""
    rank, shape = cache.shape.rank, dims_of(update)
    axis = axis % rank
    place = tf.range(shape[axis])[None]
    if start is not None:
        place = place + tf.cast(start, tf.int64)[:, None]
    if circular:
        place = place % dims_of(cache)[axis]
    sizes = [dims_of(place)[0], *(shape[axis] if i == axis else 1 for i in range(1, rank))]
    place = tf.broadcast_to(tf.reshape(place, sizes), shape)
    return scatter_elements(cache, place, update, axis)


def one_hot(indices: tf.Tensor, depth: Any, axis: int) -> tf.Tensor:
    """Along a new axis, whether its position is the index; an index out of range is nowhere."""
    indices, depth = tf.cast(indices, tf.int64), tf.cast(depth, tf.int64)
    inside = (indices >= -depth) & (indices < depth)
    place = tf.where(inside, indices % depth, -1)
    axis = axis if axis >= -1 else axis + indices.shape.rank + 1
    return tf.one_hot(place, tf.cast(depth, tf.int32), True, False, axis, tf.bool)


def unique(x: tf.Tensor, ascending: bool = True) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Distinct values, where each came first, which of them each element is, and how many there are of each."""
    values, inverse, counts = tf.unique_with_counts(tf.reshape(x, [-1]), tf.int64)
    order = row_order(letters(values) if x.dtype == tf.string else values[:, None]) if ascending else None
    return distinct(values, inverse, counts, order, 0)


def unique_slices(x: tf.Tensor, axis: int, ascending: bool = True) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """`unique` of the slices along an axis."""
    if x.dtype == tf.string:
        words, _, codes, _ = unique(x)
        values, *places = unique_slices(tf.reshape(codes, tf.shape(x)), axis, ascending)
        return tf.gather(words, values), *places
    every = tf.range(tf.rank(x))
    along = every[axis]
    values, inverse, counts = tf.raw_ops.UniqueWithCountsV2(x=x, axis=[along], out_idx=tf.int64)
    order = None
    if ascending:
        first = tf.concat([[along], tf.boolean_mask(every, every != along)], 0)
        order = row_order(tf.reshape(tf.transpose(values, first), [tf.shape(values)[axis], -1]))
    return distinct(values, inverse, counts, order, axis)


def distinct(
    values: tf.Tensor, inverse: tf.Tensor, counts: tf.Tensor, order: tf.Tensor | None, axis: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """What ONNX's Unique gives, in an order other than that of the first places."""
    first = tf.math.unsorted_segment_min(tf.range(tf.size(inverse, tf.int64)), inverse, tf.size(counts))
    if order is None:
        return values, first, inverse, counts
    rank = tf.math.invert_permutation(order)
    return (
        tf.gather(values, order, axis=axis),
        tf.gather(first, order),
        tf.gather(rank, inverse),
        tf.gather(counts, order),
    )


def row_order(rows: tf.Tensor) -> tf.Tensor:
    """The order in which the rows of a matrix ascend."""

    def by_column(column: tf.Tensor, order: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        values = tf.gather(rows[:, column], order)
        return column - 1, tf.gather(order, tf.argsort(values, stable=True))

    start = tf.range(dims_of(rows)[0])
    return tf.while_loop(lambda column, _: column >= 0, by_column, (tf.shape(rows)[1] - 1, start))[1]


def letters(strings: tf.Tensor) -> tf.Tensor:
    """The letters of strings as rows of numbers, which are in the order of the strings."""
    return tf.strings.unicode_decode(strings, "UTF-8").to_tensor(-1)


def top_k(x: tf.Tensor, k: Any, axis: int, largest: bool = True) -> tuple[tf.Tensor, tf.Tensor]:
    """The k largest or smallest elements in order, and their indices; of equal elements the first comes first."""
    order = tf.argsort(x, axis, "DESCENDING" if largest else "ASCENDING", stable=True)
    chosen = tf.gather(tf.cast(order, tf.int64), tf.range(tf.cast(k, tf.int64)), axis=axis)
    return gather_elements(x, chosen, axis), chosen
