"""Ops of MediaPipe's own, which its interpreter adds to the builtin ones: landmarks, and pools that remember places."""

from __future__ import annotations

import math
import struct

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.frontends.tensorflow.rules.warp import bilinear
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import activated, custom_options, like
from onward.frontends.tflite.registry import rule
from onward.gate.bounds import check_room
from onward.graph.build import Tensor

PAST = 0.1
"""What is added to the number of a place, so that it is cut to the same whole number in whatever precision."""

PADDINGS = {1: "SAME", 2: "VALID"}


def _second(op: Writer) -> None:
    """Files that are published have the second version of these ops; the first counts pixels in another way."""
    if op.operation.version != 2:
        raise UnsupportedError(f"version {op.operation.version} of this op of MediaPipe is not supported, version 2 is")


@rule("CUSTOM Landmarks2TransformMatrix")
def landmarks_to_matrix(op: Writer, landmarks: Tensor) -> Tensor:
    """Takes pixels of a new image to those of a box around some landmarks, turned so that two of them lie level."""
    _second(op)
    options = custom_options(op)
    flat = op.squeeze(op.Slice(landmarks, op.ints([0]), op.ints([2]), op.ints([2])), [0])
    left, right = (op.Gather(flat, op.index(options[f"{side}_rotation_idx"])) for side in ("left", "right"))
    cosine, sine = _turn(op, right - left, options["target_rotation_radians"])
    there = _matrix(op, [[cosine, -sine], [sine, cosine]])
    chosen = op.Gather(flat, op.ints([int(i) for i in options["subset_idxs"]])) @ op.transpose(there, [1, 0])
    most, least = (op.reduced(kind, chosen, [0], keepdims=True) for kind in ("ReduceMax", "ReduceMin"))
    middle = op.transpose((most + least) / 2.0 @ there, [1, 0])
    sizes = np.asarray([options["output_width"], options["output_height"]], np.float32)
    scale = (most - least) * op.constant(np.asarray([options["scale_x"], options["scale_y"]], np.float32) / sizes)
    turned = op.transpose(there, [1, 0]) * scale
    shift = middle + turned @ op.constant(-sizes[:, None] / 2)
    upper = op.Concat(turned, op.constant(np.zeros((2, 1), np.float32)), shift, axis=1)
    return op.unsqueeze(op.Concat(upper, op.constant(np.eye(4, dtype=np.float32)[2:]), axis=0), [0])


def _turn(op: Writer, way: Tensor, target: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the angle from a way to a target; of no way at all, the angle is zero."""
    x, y = (op.Gather(way, op.index(i)) for i in (0, 1))
    length = op.Sqrt(x * x + y * y)
    none = op.Equal(length, op.like(0, length))
    safe = op.where(none, op.like(1, length), length)
    x, y = op.where(none, op.like(1, x), x / safe), y / safe
    return x * math.cos(target) + y * math.sin(target), x * math.sin(target) - y * math.cos(target)


def _matrix(op: Writer, rows: list[list[Tensor]]) -> Tensor:
    return op.Concat(*(op.Concat(*(op.unsqueeze(n, [0, 1]) for n in row), axis=1) for row in rows), axis=0)


def _halves(op: Writer, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Of a matrix for points in space, what it does in the plane: how it turns, and how it shifts."""
    rows = op.Slice(op.Reshape(matrix, op.ints([4, 4])), op.ints([0]), op.ints([2]), op.ints([0]))
    turn, shift = (op.Slice(rows, op.ints([i]), op.ints([j]), op.ints([1])) for i, j in ((0, 2), (3, 4)))
    return op.transpose(turn, [1, 0]), op.transpose(shift, [1, 0])


@rule("CUSTOM TransformLandmarks")
def transform_landmarks(op: Writer, landmarks: Tensor, matrix: Tensor) -> Tensor:
    _second(op)
    if landmarks.dims is None or landmarks.dims[-1] not in (2, 3):
        raise UnsupportedError("landmarks must be points of two or three numbers")
    turn, shift = _halves(op, matrix)
    flat, height = (op.Slice(landmarks, op.ints([i]), op.ints([i + 2]), op.ints([2])) for i in (0, 2))
    moved = flat @ turn + shift
    return op.Concat(moved, height, axis=2) if landmarks.dims[-1] == 3 else moved


@rule("CUSTOM TransformTensorBilinear")
def transform_image(op: Writer, image: Tensor, matrix: Tensor) -> Tensor:
    """Zeros where a pixel comes from outside of the middles of the outermost ones."""
    _second(op)
    options = custom_options(op)
    if image.sizes is None:
        raise UnsupportedError("the size of the image is not known")
    height, width = image.sizes[1:3]
    turn, shift = _halves(op, matrix)
    new = options["output_height"], options["output_width"]
    check_room("the places of the pixels of a new image", (2, *new), np.dtype(np.int64).itemsize)
    y, x = np.mgrid[: new[0], : new[1]].astype(np.float32) + np.float32(0.5)
    places = op.constant(np.stack([x, y], 2)[None]) @ turn + shift - 0.5
    right, down = (op.squeeze(part, [3]) for part in op.many("Split", 2, places, op.ints([1, 1]), axis=3))
    inside = [op.And(at >= 0.0, at <= float(size - 1)) for at, size in ((down, height), (right, width))]
    found = bilinear(op, image, down, right, op.like(0, image))
    return op.where(op.unsqueeze(op.And(*inside), [3]), found, op.like(0, found))


@rule("CUSTOM Resampler")
def resampler(op: Writer, image: Tensor, places: Tensor) -> Tensor:
    right, down = (op.squeeze(part, [3]) for part in op.many("Split", 2, places, op.ints([1, 1]), axis=3))
    return bilinear(op, image, down, right, op.like(0, image))


def _pool(op: Writer) -> tuple[str, list[int], list[int], int]:
    """How borders are treated, strides and sizes by height and width, and the activation."""
    given = bytes(op.operation.custom)[:24]
    kind, *numbers = struct.unpack("<6i", given.ljust(24, b"\0"))
    if kind not in PADDINGS or min(numbers[:4]) < 1:
        raise InvalidModelError(f"its options {given.hex()} are not those of a pool")
    check_room("the window of a pool", numbers[2:4], np.dtype(np.int64).itemsize)
    return PADDINGS[kind], numbers[1::-1], numbers[3:1:-1], numbers[4]


@rule("CUSTOM MaxPoolingWithArgmax2D")
def max_pool(op: Writer, x: Tensor) -> list[Tensor]:
    """The largest of each window, and which of the window it is, as a float."""
    padding, strides, sizes, activation = _pool(op)
    if x.sizes is None:
        raise UnsupportedError("the size of the image is not known")
    values, places = like(op, "MaxPoolWithArgmax", x, ksize=[1, *sizes, 1], strides=[1, *strides, 1], padding=padding)
    _, height, width, channels = x.sizes
    pixel = op.Div(places, op.index(channels))
    within = []
    for axis, (at, n) in enumerate(((op.Div(pixel, op.index(width)), height), (op.Mod(pixel, op.index(width)), width))):
        size, stride = sizes[axis], strides[axis]
        count = -(-n // stride) if padding == "SAME" else (n - size) // stride + 1
        before = max((count - 1) * stride + size - n, 0) // 2
        starts = np.arange(count, dtype=np.int64) * stride - before
        within.append(at - op.constant(starts.reshape((-1, 1, 1) if axis == 0 else (-1, 1))))
    number = within[0] * op.index(sizes[1]) + within[1]
    return [activated(op, values, activation), number.cast(ir.DataType.FLOAT) + PAST]


@rule("CUSTOM MaxUnpooling2D")
def max_unpool(op: Writer, x: Tensor, places: Tensor) -> Tensor:
    """Each number back to its place in its window, with zeros around it."""
    _, strides, sizes, _ = _pool(op)
    if strides != sizes or x.sizes is None:
        raise UnsupportedError("windows that overlap, or lie in an image of unknown size, are not supported")
    batch, height, width, channels = x.sizes
    down, across = sizes
    numbers = op.constant(np.arange(down * across, dtype=np.int64))
    here = op.Equal(op.unsqueeze(places.cast(ir.DataType.INT64), [4]), numbers)
    spread = op.where(here, op.unsqueeze(x, [4]), op.like(0, x))
    windows = op.Reshape(spread, op.ints([batch, height, width, channels, down, across]))
    return op.Reshape(
        op.transpose(windows, [0, 1, 4, 2, 5, 3]), op.ints([batch, height * down, width * across, channels])
    )
