"""Image files as inputs of a model.

An image is resized (bilinear, averaging when it gets smaller) to the height and width of the input; where those are
dynamic, to the sizes given by name, or else it keeps its own. The input is channels-first or channels-last, whichever
its shape says: the axis of 1, 3 or 4. The values are RGB (or grey, or RGB and an opaque alpha), 0 to 1 in a float
input, 0 to 255 in an integer one. No mean is subtracted: what a model expects beyond this has to be given as arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidDataError
from onward.gate import ordinary
from onward.gate.images import opened_image
from onward.graph.slots import Slot
from onward.hub.wording import quote
from onward.verification.data.linked_sizes import Array

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".pnm", ".tif", ".tiff", ".webp", ".jp2", ".j2k")
CHANNELS = (3, 1, 4)
"""The most usual first."""


def image_input(slots: Sequence[Slot], path: Path) -> Slot:
    """The only input, which has to be an image."""
    if len(slots) != 1:
        raise InvalidDataError(f"{path}: an image was found, but the model has {len(slots)} inputs: give them as npz")
    slot = slots[0]
    if slot.containers or len(slot.dims) not in (3, 4) or slot.dtype in (ir.DataType.STRING, ir.DataType.BOOL):
        raise InvalidDataError(f"{path}: an image was found, but the input {quote(slot.name)} is {slot.spelled}")
    return slot


def read_image(path: Path, slot: Slot, dims: Mapping[str, int] | None = None) -> Array:
    """The image as the input takes it."""
    batched = len(slot.dims) == 4
    sizes = [(dims or {}).get(dim) if isinstance(dim, str) else dim for dim in slot.dims]
    batch, space = (sizes[0] or 1, sizes[1:]) if batched else (1, sizes)
    channel_axis = _channel_axis(slot, space)
    channels = space[channel_axis] or 3
    height, width = (size for axis, size in enumerate(space) if axis != channel_axis)
    pixels = decode(path)
    pixels = resized(pixels, height or pixels.shape[0], width or pixels.shape[1])
    coloured = _coloured(pixels, channels)
    made = np.moveaxis(coloured, 2, 0) if channel_axis == 0 else coloured
    made = made / 255 if slot.dtype.is_floating_point() else made.round()
    made = np.broadcast_to(made, (batch, *made.shape)) if batched else made
    return np.ascontiguousarray(made).astype(slot.dtype.numpy())


def _channel_axis(slot: Slot, space: Sequence[int | None]) -> int:
    for channels in (*CHANNELS, None):
        for axis in (0, 2):
            if space[axis] == channels:
                return axis
    raise InvalidDataError(f"an image has 1, 3 or 4 channels, but the input {quote(slot.name)} is {slot.spelled}")


def _coloured(pixels: Array, channels: int) -> Array:
    """RGB with the number of channels asked for."""
    if channels == 1:
        return np.asarray(pixels @ np.array([0.299, 0.587, 0.114]))[:, :, None]
    if channels == 4:
        return np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255.0)], axis=2)
    return pixels


def decode(path: Path) -> Array:
    """The pixels, height x width x RGB, 0 to 255."""
    size = ordinary(path, InvalidDataError).stat().st_size
    with path.open("rb") as file, opened_image(file, size, f"{path}: ") as image:
        return np.asarray(image.convert("RGB"), np.float64)


def resized(pixels: Array, height: int, width: int) -> Array:
    """Bilinear; a pixel of a smaller image is the weighted mean of all that it covers."""
    rows, columns = _weights(pixels.shape[0], height), _weights(pixels.shape[1], width)
    return np.asarray(np.einsum("hy,yxc,wx->hwc", rows, pixels, columns, optimize=True))


def _weights(old: int, new: int) -> Array:
    """The share of each old pixel in each new one: a triangle around its centre."""
    scale = old / new
    reach = max(scale, 1.0)
    centres = (np.arange(new) + 0.5) * scale - 0.5
    weights = np.maximum(0, 1 - np.abs(np.arange(old) - centres[:, None]) / reach)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
