"""Convolutions that JAX itself does not have. Weights are channels first, and images unless it is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.jax.runtime.sample import sample_linear


def apart(filled: Array) -> Array:
    """A tensor that is full of one number, made before the convolution or concatenation that reads it.

    The CPU compiler of jaxlib 0.10 computes both wrongly as a whole where the sum, mean or maximum of the result is
    taken: it reads memory that no one has written.
    """
    return lax.optimization_barrier(filled)


def conv_nd(
    x: Array,
    weight: Array,
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """A convolution over any number of axes; for what is not said here, see `lax.conv_general_dilated`."""
    window = {"rhs_dilation": dilations, "feature_group_count": groups, "dimension_numbers": dimension_numbers}
    strides = strides or (1,) * (weight.ndim - 2)
    y: Array = lax.conv_general_dilated(x, weight, strides, padding, **window, precision=precision)
    return y


def by_channel(bias: Array, x: Array) -> Array:
    """A number for each channel, so that it broadcasts with `x`."""
    return bias.reshape(-1, *[1] * (x.ndim - 2))


def conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    output_shape: Sequence[int] | None = None,
    auto_pad: str | None = None,
    channels_last: bool = False,
) -> Array:
    """A transposed convolution, cut or extended to the size that is asked for. `weight` is (in, out / groups, …).

    `pads` lists what is cut off the beginning of each axis, then what is cut off each end. `output_shape` or
    `auto_pad` ask for a size instead; "SAME_UPPER" cuts the larger half off the end, else off the start.
    """
    rank, sizes = weight.ndim - 2, x.shape[1:-1] if channels_last else x.shape[2:]
    strides, gaps, more = strides or (1,) * rank, dilations or (1,) * rank, output_padding or (0,) * rank
    padding = []
    for i in range(rank):
        before = (weight.shape[i + 2] - 1) * gaps[i]
        size = (sizes[i] - 1) * strides[i] + before + 1 + more[i]
        begin, end = (pads[i], pads[i + rank]) if pads else (0, 0)
        if output_shape or auto_pad:
            wanted = output_shape[i - rank] if output_shape else sizes[i] * strides[i]
            cut = max(size - wanted, 0)
            begin = cut // 2 if auto_pad == "SAME_UPPER" else cut - cut // 2
            end = size - wanted - begin if output_shape else cut - begin
        padding.append((before - begin, before - end + more[i]))
    kernel = jnp.flip(weight, range(2, weight.ndim)).reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2)
    kernel = kernel.reshape(-1, weight.shape[0] // groups, *weight.shape[2:])
    image = "DHW"[-rank:]
    y = lax.conv_general_dilated(
        x,
        kernel,
        (1,) * rank,
        padding,
        lhs_dilation=strides,
        rhs_dilation=gaps,
        feature_group_count=groups,
        dimension_numbers=(f"N{image}C", f"OI{image}", f"N{image}C") if channels_last else None,
    )
    return y if bias is None else y + (bias if channels_last else by_channel(bias, x))


def deform_conv(
    x: Array,
    weight: Array,
    offset: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    offset_groups: int = 1,
) -> Array:
    """A convolution whose taps are moved by `offset` and weighted by `mask`, with linear interpolation.

    `offset` has, for each group of channels and each tap, the distance along every axis.
    """
    rank, kernel, steps = weight.ndim - 2, weight.shape[2:], offset.shape[2:]
    strides, gaps, pads = strides or (1,) * rank, dilations or (1,) * rank, pads or (0,) * 2 * rank
    taps, batch, count = math.prod(kernel), x.shape[0] * offset_groups, math.prod(steps)
    moved = offset.reshape(batch, taps, rank, count)
    coordinates = []
    for i in range(rank):
        starts = np.broadcast_to((np.arange(steps[i]) * strides[i] - pads[i]).reshape(-1, *[1] * (rank - 1 - i)), steps)
        places = np.broadcast_to((np.arange(kernel[i]) * gaps[i]).reshape(-1, *[1] * (rank - 1 - i)), kernel)
        fixed = (places.reshape(-1, 1) + starts.reshape(-1)).astype(np.float32)
        coordinates.append((moved[:, :, i] + fixed).reshape(batch, taps * count))
    values = sample_linear(x.reshape(batch, x.shape[1] // offset_groups, *x.shape[2:]), coordinates)
    values = values.reshape(*values.shape[:2], taps, count)
    if mask is not None:
        values = values * mask.reshape(batch, 1, taps, count)
    columns = values.reshape(x.shape[0], groups, x.shape[1] // groups * taps, count)
    y = weight.reshape(groups, weight.shape[0] // groups, -1) @ columns
    y = y.reshape(x.shape[0], weight.shape[0], *steps)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def col2im(
    x: Array,
    image: Sequence[int],
    block: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Add the columns of `x`, one per position of a block, back into an image over any number of axes.

    `pads` lists the amounts before each axis, then those after each.
    """
    rank = len(image)
    strides, gaps, pads = strides or (1,) * rank, dilations or (1,) * rank, pads or (0,) * 2 * rank
    padded = [n + pads[i] + pads[i + rank] for i, n in enumerate(image)]
    places: Any = np.zeros((), np.int64)
    for i, (size, k, s, d) in enumerate(zip(padded, block, strides, gaps, strict=True)):
        taps, steps = np.arange(k) * d, np.arange((size - (k - 1) * d - 1) // s + 1) * s
        axes = [-1 if j == i else 1 for j in range(rank)]
        places = places * size + taps.reshape(*axes, *[1] * rank) + steps.reshape(*[1] * rank, *axes)
    channels = x.shape[1] // math.prod(block)
    flat = jnp.zeros((x.shape[0], channels, math.prod(padded)), x.dtype)
    y = flat.at[:, :, places.reshape(-1)].add(x.reshape(x.shape[0], channels, places.size))
    inner = tuple(slice(pads[i], pads[i] + n) for i, n in enumerate(image))
    return y.reshape(*y.shape[:2], *padded)[(..., *inner)]
