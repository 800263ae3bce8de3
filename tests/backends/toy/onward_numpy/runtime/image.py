"""Layers of images, which are of the shape (batch, channels, …)."""

from collections.abc import Sequence

import numpy as np


def convolve(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    groups: int,
) -> np.ndarray:
    """The sum over each window of the image, times the weight; in `groups` of channels that do not mix."""
    axes = range(2, x.ndim)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(weight.shape[2:], dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), *pads]), spans, tuple(axes))
    windows = windows[(..., *(slice(None, None, step) for step in [*strides, *dilations]))]
    summed = [1, *(axis + len(axes) for axis in axes)]
    parts = zip(np.split(windows, groups, axis=1), np.split(weight, groups), strict=True)
    y = np.concatenate([np.tensordot(part, own, (summed, [1, *axes])) for part, own in parts], axis=-1)
    return np.moveaxis(y if bias is None else y + bias, -1, 1)


def batch_norm(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, var: np.ndarray, epsilon: float
) -> np.ndarray:
    """Each channel with mean 0 and variance 1, scaled and shifted."""
    factor = scale / np.sqrt(var + epsilon)
    factor, shift = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (factor, bias - mean * factor))
    return x * factor + shift
