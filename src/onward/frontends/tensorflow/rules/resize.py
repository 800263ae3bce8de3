"""Images in other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.conv import as_given, channels_first
from onward.frontends.tensorflow.rules.warp import nearest as nearest_place
from onward.frontends.tensorflow.rules.warp import read
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def _coordinates(align_corners: bool, half_pixel_centers: bool) -> str:
    return "align_corners" if align_corners else "half_pixel" if half_pixel_centers else "asymmetric"


def _resized(op: Writer, x: Tensor, size: Tensor, **attributes: Any) -> Tensor:
    turned = channels_first(op, x, "NHWC", 4)
    sizes = op.int64(size)
    known = op.known(sizes)
    batch_and_channels = turned.sizes[:2] if turned.sizes is not None else None
    if known is not None and batch_and_channels is not None:
        target = op.ints([*batch_and_channels, *known.tolist()])
    else:
        two = sizes if sizes.dims == [2] else op.Reshape(sizes, op.ints([2]))
        target = op.Concat(op.Slice(op.Shape(turned), op.ints([0]), op.ints([2])), two, axis=0)
    return as_given(op, op.Resize(turned, None, None, target, **attributes), "NHWC", 4)


@rule("ResizeBilinear")
def bilinear(
    op: Writer, x: Tensor, size: Tensor, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    coordinates = _coordinates(align_corners, half_pixel_centers)
    return _resized(op, x.cast(ir.DataType.FLOAT), size, mode="linear", coordinate_transformation_mode=coordinates)


@rule("ResizeNearestNeighbor")
def nearest(
    op: Writer, x: Tensor, size: Tensor, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    return _resized(
        op,
        x,
        size,
        mode="nearest",
        coordinate_transformation_mode=_coordinates(align_corners, half_pixel_centers),
        nearest_mode="round_prefer_ceil" if align_corners or half_pixel_centers else "floor",
    )


@rule("ResizeBicubic", "ResizeArea")
def by_weights(
    op: Writer, x: Tensor, size: Tensor, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    """TensorFlow's own weights: its cubic ones come from a table, and areas ONNX does not have."""
    import tensorflow as tf

    options: dict[str, Any] = {"align_corners": align_corners}
    if op.operation.type == "ResizeBicubic":
        options["half_pixel_centers"] = half_pixel_centers
    call = getattr(tf.raw_ops, op.operation.type)
    sizes = zip(_sizes(x), op.numbers(size, "the new size"), strict=True)
    return weighted(op, x, *(unit_weights(call, axis, *pair, **options) for axis, pair in enumerate(sizes)))


@rule("ScaleAndTranslate")
def scale_and_translate(
    op: Writer,
    x: Tensor,
    size: Tensor,
    scale: Tensor,
    translation: Tensor,
    *,
    kernel_type: str = "lanczos3",
    antialias: bool = True,
) -> Tensor:
    import tensorflow as tf

    scales, moves = op.fixed(scale, "the scale"), op.fixed(translation, "the translation")
    sizes = op.numbers(size, "the new size")

    def weights(axis: int, before: int) -> npt.NDArray[Any]:
        one, nothing = np.ones(2, np.float32), np.zeros(2, np.float32)
        one[axis], nothing[axis] = scales[axis], moves[axis]
        given = {"scale": one, "translation": nothing, "kernel_type": kernel_type, "antialias": antialias}
        return unit_weights(tf.raw_ops.ScaleAndTranslate, axis, before, sizes[axis], **given)

    return weighted(op, x, *(weights(axis, before) for axis, before in enumerate(_sizes(x))))


def _sizes(x: Tensor) -> list[int]:
    dims = x.dims[1:3] if x.dims is not None else []
    if len(dims) != 2 or not all(isinstance(d, int) for d in dims):
        raise UnsupportedError("the size of the image is not known, and with it the weights")
    return [int(d) for d in dims if isinstance(d, int)]


def unit_weights(resize: Callable[..., Any], axis: int, before: int, after: int, **options: Any) -> npt.NDArray[Any]:
    """What TensorFlow makes of images with a single row or column of ones each: a row of weights for each new one."""
    shape, target = ((1, before, 1, before), [after, 1]) if axis == 0 else ((1, 1, before, before), [1, after])
    unit = np.eye(before, dtype=np.float32).reshape(shape)
    return np.asarray(resize(images=unit, size=target, **options)).reshape(after, before)


def weighted(op: Writer, x: Tensor, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> Tensor:
    """Each new row and column as a weighted sum of the old ones."""
    turned = channels_first(op, x.cast(ir.DataType.FLOAT), "NHWC", 4)
    return as_given(op, op.MatMul(op.MatMul(op.constant(rows), turned), op.constant(columns.T)), "NHWC", 4)


@rule("CropAndResize")
def crop_and_resize(
    op: Writer,
    x: Tensor,
    boxes: Tensor,
    which: Tensor,
    size: Tensor,
    *,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Samples at even steps from corner to corner of each box; what lies outside the image has a value of its own."""
    shape = op.Shape(x)
    places: list[Tensor] = []
    positions, inside = [], []
    for axis, count in enumerate(op.numbers(size, "the size of the crops")):
        last = op.Gather(shape, op.index(1 + axis)).cast(ir.DataType.FLOAT) - 1.0
        first, end = (op.Gather(boxes, op.ints([axis + corner]), axis=1) for corner in (0, 2))
        if count > 1:
            steps = op.constant(np.arange(count, dtype=np.float32).reshape(1, count))
            at = first * last + steps * ((end - first) * last / float(count - 1))
        else:
            at = (first + end) * 0.5 * last
        inside.append(op.And(at >= 0.0, at <= last))
        places.append(at)
        positions.append(at * 2.0 / op.Max(last, op.like(1, last)) - 1.0)
    if method == "nearest":
        return _nearest_crops(op, op.Gather(x, which, axis=0), places, inside, extrapolation_value)
    down, right = op.unsqueeze(positions[0], [2]), op.unsqueeze(positions[1], [1])
    zero = op.like(0, boxes)
    grid = op.Concat(op.unsqueeze(down * zero + right, [3]), op.unsqueeze(down + right * zero, [3]), axis=3)
    images = op.Gather(channels_first(op, x.cast(ir.DataType.FLOAT), "NHWC", 4), which, axis=0)
    mode = "linear"
    sampled = op.GridSample(images, grid, mode=mode, padding_mode="border", align_corners=1)
    within = op.And(op.unsqueeze(inside[0], [1, 3]), op.unsqueeze(inside[1], [1, 2]))
    return as_given(op, op.Where(within, sampled, op.like(extrapolation_value, sampled)), "NHWC", 4)


def _nearest_crops(op: Writer, images: Tensor, places: list[Tensor], inside: list[Tensor], fill: float) -> Tensor:
    rows, columns = (nearest_place(op, at) for at in places)
    zero = op.like(0, rows)
    grid = op.unsqueeze(rows, [2]) + op.unsqueeze(columns, [1]) * zero
    across = op.unsqueeze(columns, [1]) + op.unsqueeze(rows, [2]) * zero
    found = read(op, images.cast(ir.DataType.FLOAT), grid, across, op.constant(np.asarray(fill, np.float32)))
    within = op.And(op.unsqueeze(inside[0], [2, 3]), op.unsqueeze(inside[1], [1, 3]))
    return op.where(within, found, op.constant(np.asarray(fill, np.float32)))
