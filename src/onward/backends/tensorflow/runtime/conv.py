"""Convolutions that TensorFlow itself does not have. Images are channels last; weights are spatial axes, in, out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of, greatest, packed, size
from onward.backends.tensorflow.runtime.sample import sample_linear
from onward.backends.tensorflow.runtime.window import pad_or_crop, pad_same


def dilated_weight(weight: tf.Tensor, dilations: Sequence[int]) -> tf.Tensor:
    """The weights with zeros in the gaps."""
    for axis, step in enumerate(dilations):
        if step > 1:
            rank = weight.shape.rank
            apart = tf.expand_dims(weight, axis + 1)
            apart = tf.pad(apart, [[0, step - 1] if i == axis + 1 else [0, 0] for i in range(rank + 1)])
            sizes = dims_of(weight)
            whole = tf.concat([sizes[:axis], [sizes[axis] * step], sizes[axis + 1 :]], 0)
            end = sizes[axis] * step - (step - 1)
            weight = tf.gather(tf.reshape(apart, whole), tf.range(end), axis=axis)
    return weight


def conv_nd(
    x: tf.Tensor, weight: tf.Tensor, strides: Sequence[int], dilations: Sequence[int], groups: int = 1
) -> tf.Tensor:
    """A convolution without padding over any number of axes.

    On most processors TensorFlow has no kernel for three axes with dilations.
    """
    rank = len(strides)
    if groups > 1 and rank != 2:
        parts = zip(tf.split(x, groups, -1), tf.split(weight, groups, -1), strict=True)
        return tf.concat([conv_nd(a, w, strides, dilations) for a, w in parts], -1)
    if rank == 1:
        return tf.nn.conv1d(x, weight, strides[0], "VALID", dilations=dilations[0])
    if rank == 2:
        return tf.nn.conv2d(x, weight, strides, "VALID", dilations=dilations)
    if rank == 3 and set(dilations) == {1}:
        return tf.nn.conv3d(x, weight, [1, *strides, 1], "VALID")
    return _conv_by_slices(x, weight, strides, dilations)


def _conv_by_slices(x: tf.Tensor, weight: tf.Tensor, strides: Sequence[int], dilations: Sequence[int]) -> tf.Tensor:
    """The sum over the kernel's first axis of convolutions over the others."""
    count = size(weight, 0)
    steps = (size(x, 1) - (count - 1) * dilations[0] - 1) // strides[0] + 1

    def part(k: Any) -> tf.Tensor:
        rows = x[:, k * dilations[0] :: strides[0]][:, :steps]
        inner = dims_of(rows)[2:]
        flat = tf.ensure_shape(tf.reshape(rows, tf.concat([[-1], inner], 0)), [None, *x.shape[2:]])
        return conv_nd(flat, weight[k], strides[1:], dilations[1:])

    if isinstance(count, int):
        total = sum((part(k) for k in range(1, count)), start=part(0))
    else:
        total = tf.foldl(lambda before, k: before + part(k), tf.range(1, count), part(0))
    shape = tf.concat([[size(x, 0), steps], dims_of(total)[1:]], 0)
    return tf.reshape(total, shape)


def conv_of_unknown_kernel(
    x: tf.Tensor,
    weight: tf.Tensor,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> tf.Tensor:
    """A convolution whose weights, in ONNX's order, are known only when it runs."""
    rank = x.shape.rank - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    weight = tf.transpose(weight, [*range(2, rank + 2), 1, 0])
    if auto_pad.startswith("SAME"):
        spans = [(size(weight, i) - 1) * dilations[i] + 1 for i in range(rank)]
        x = pad_same(x, spans, strides, lower=auto_pad == "SAME_LOWER")
    elif pads and auto_pad != "VALID":
        x = pad_or_crop(x, [[0, 0], *([pads[i], pads[i + rank]] for i in range(rank)), [0, 0]])
    return conv_nd(x, weight, strides, dilations, group)


def conv_transpose(
    x: tf.Tensor,
    weight: tf.Tensor,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    auto_pad: str | None = None,
) -> tf.Tensor:
    """A transposed convolution, cut or extended to the size that is asked for.

    `weight` is spatial axes, channels out of a group, channels in. `pads` lists what is cut off the beginning of each
    axis, then what is cut off each end. `output_shape` or `auto_pad` ask for a size instead; "SAME_UPPER" cuts the
    larger half off the end, else off the start.
    """
    rank = x.shape.rank - 2
    strides, more = strides or [1] * rank, output_padding or [0] * rank
    if dilations:
        weight = dilated_weight(weight, dilations)
    whole = _whole_transpose(x, weight, strides, groups)
    ends: list[list[Any]] = []
    for i in range(rank):
        full = size(whole, i + 1)
        length = full + more[i]
        if output_shape or auto_pad:
            wanted = output_shape[i - rank] if output_shape else size(x, i + 1) * strides[i]
            cut = greatest(length - wanted, 0)
            begin = cut // 2 if auto_pad == "SAME_UPPER" else cut - cut // 2
            length = wanted if output_shape else length - cut
        else:
            begin, end = (pads[i], pads[i + rank]) if pads else (0, 0)
            length = length - begin - end
        ends.append([-begin, begin + length - full])
    return pad_or_crop(whole, [[0, 0], *ends, [0, 0]])


def _whole_transpose(x: tf.Tensor, weight: tf.Tensor, strides: Sequence[int], groups: int) -> tf.Tensor:
    """All that a transposed convolution reaches."""
    rank = len(strides)
    if groups > 1:
        parts = zip(tf.split(x, groups, -1), tf.split(weight, groups, -1), strict=True)
        return tf.concat([_whole_transpose(a, w, strides, 1) for a, w in parts], -1)
    spatial = [(size(x, i + 1) - 1) * strides[i] + size(weight, i) for i in range(rank)]
    shape = [size(x, 0), *spatial, size(weight, rank)]
    return tf.nn.conv_transpose(x, weight, packed(shape, tf.int32), strides, "VALID")


def deform_conv(
    x: tf.Tensor,
    weight: tf.Tensor,
    offset: tf.Tensor,
    mask: tf.Tensor | None = None,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    offset_groups: int = 1,
) -> tf.Tensor:
    """A convolution whose taps are moved by `offset` and weighted by `mask`, with linear interpolation.

    The channels of `offset` are, for each group and each tap, the distance along every axis.
    """
    rank = x.shape.rank - 2
    kernel, steps = dims_of(weight)[:rank], dims_of(offset)[1:-1]
    strides, pads, dilations = strides or [1] * rank, pads or [0] * 2 * rank, dilations or [1] * rank
    taps, batch, kind = tf.reduce_prod(kernel), size(x, 0), tf.float64 if x.dtype == tf.float64 else tf.float32
    starts = [tf.range(steps[i]) * strides[i] - pads[i] for i in range(rank)]
    places = [tf.range(kernel[i]) * dilations[i] for i in range(rank)]
    fixed = [
        tf.cast(tf.reshape(start, [-1, 1]) + tf.reshape(place, [-1]), kind)
        for start, place in zip(tf.meshgrid(*starts, indexing="ij"), tf.meshgrid(*places, indexing="ij"), strict=True)
    ]
    masks = [None] * offset_groups if mask is None else tf.split(mask, offset_groups, -1)
    parts = []
    for image, moved, weights in zip(
        tf.split(x, offset_groups, -1), tf.split(offset, offset_groups, -1), masks, strict=True
    ):
        moved = tf.cast(tf.reshape(moved, [batch, -1, taps, rank]), kind)
        coordinates = [tf.reshape(moved[..., i] + fixed[i], [batch, -1]) for i in range(rank)]
        values = sample_linear(image, coordinates)
        parts.append(values if weights is None else values * tf.reshape(weights, [batch, -1, 1]))
    columns = tf.concat(parts, -1)
    found = [
        tf.reshape(part, [-1, taps * size(part, -1)]) @ tf.reshape(w, [-1, size(w, -1)])
        for part, w in zip(tf.split(columns, groups, -1), tf.split(weight, groups, -1), strict=True)
    ]
    return tf.reshape(tf.concat(found, -1), [batch, *(size(offset, i + 1) for i in range(rank)), size(weight, -1)])


def col2im(
    x: tf.Tensor,
    image: Any,
    block: Any,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
) -> tf.Tensor:
    """Add the columns of `x`, one per position of a block, back into an image (channels first) over any axes.

    `pads` lists the amounts before each axis, then those after each.
    """
    image, block = packed(image, tf.int64), packed(block, tf.int64)
    step, gap = (tf.constant(n or [1], tf.int64) for n in (strides, dilations))
    begin, end = tf.split(tf.constant(pads or [0, 0], tf.int64), 2)
    counts = (image + begin + end - (block - 1) * gap - 1) // step + 1
    taps = tf.unravel_index(tf.range(tf.reduce_prod(block)), block) * gap[:, None]
    starts = tf.unravel_index(tf.range(tf.reduce_prod(counts)), counts) * step[:, None] - begin[:, None]
    places = taps[:, :, None] + starts[:, None, :]
    limits = image[:, None, None]
    inside = tf.reduce_all((places >= 0) & (places < limits), 0)
    weights = tf.math.cumprod(image, exclusive=True, reverse=True)
    index = tf.reduce_sum(places * weights[:, None, None], 0)
    index = tf.reshape(tf.where(inside, index, -1), [-1])  # a sum leaves out what has no place
    batch, channels = size(x, 0), size(x, 1) // tf.reduce_prod(block)
    values = tf.transpose(tf.reshape(x, [-1, tf.size(index)]))
    y = tf.transpose(tf.math.unsorted_segment_sum(values, index, tf.reduce_prod(image)))
    return tf.reshape(y, tf.concat([packed([batch, channels], tf.int64), image], 0))
