"""Ops of MediaPipe compute what its kernels compute, which are written here as loops over numbers."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from lite import Flat, named, on_runtime

from onward.errors import OnwardError, UnsupportedError

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def computed(op_type: str, arrays: list[Any], options: bytes, outputs: int = 1, version: int = 2) -> list[Any]:
    """What ONNX Runtime makes of a model of one op."""
    flat = Flat()
    graph = flat.graph()
    graph.output(*graph.op(op_type, [graph.input(array) for array in arrays], [np.float32] * outputs))
    graph.made.operators[-1].customOptions = np.frombuffer(options, np.uint8)
    flat.model.operatorCodes[-1].version = version
    return on_runtime(flat.bytes(), *arrays)


BOX = {"left_rotation_idx": 1, "right_rotation_idx": 4, "target_rotation_radians": 0.3, "subset_idxs": [0, 2, 3, 5]}
SIZE = {"output_height": 12, "output_width": 16, "scale_x": 1.5, "scale_y": 1.25}


@pytest.mark.parametrize("apart", [True, False])
def test_a_matrix_of_landmarks(apart: bool) -> None:
    """A point of the new image goes to the middle of the box, turned back, by what part of the image it is off."""
    landmarks = numbers(1, 6, 3)
    if not apart:
        landmarks[0, 4] = landmarks[0, 1]
    (found,) = computed("Landmarks2TransformMatrix", [landmarks], named(**BOX, **SIZE))
    left, right = landmarks[0, 1], landmarks[0, 4]
    angle = 0.3 - math.atan2(right[1] - left[1], right[0] - left[0])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = [turn @ landmarks[0, i, :2] for i in BOX["subset_idxs"]]  # type: ignore[attr-defined]
    low, high = np.min(points, 0), np.max(points, 0)
    for pixel in ([0, 0], [16, 12], [8, 6], [3, 11]):
        part = (np.array(pixel) / [16, 12] - 0.5) * [1.5, 1.25] * (high - low)
        wanted = turn.T @ ((low + high) / 2 + part)
        np.testing.assert_allclose(found[0] @ [*pixel, 0, 1], [*wanted, 0, 1], atol=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_landmarks_moved(size: int) -> None:
    landmarks, matrix = numbers(1, 5, size), numbers(1, 4, 4)
    (found,) = computed("TransformLandmarks", [landmarks, matrix], b"")
    for given, moved in zip(landmarks[0], found[0], strict=True):
        x, y = given[:2]
        wanted = [row[0] * x + row[1] * y + row[3] for row in matrix[0, :2]]
        np.testing.assert_allclose(moved, [*wanted, *given[2:]], rtol=1e-5, atol=1e-6)


def between(image: Any, x: float, y: float) -> Any:
    """What lies at a place between pixels, with zeros around the image."""
    total = np.zeros(image.shape[2])
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += image[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def test_an_image_moved() -> None:
    image = numbers(1, 7, 9, 3)
    matrix = np.float32([[[1.1, 0.3, 0, -1.2], [-0.2, 0.9, 0, 0.7], [0, 0, 1, 0], [0, 0, 0, 1]]])
    (found,) = computed("TransformTensorBilinear", [image, matrix], named(output_height=6, output_width=8))
    outside = 0
    for row in range(6):
        for column in range(8):
            x, y = (m[0] * (column + 0.5) + m[1] * (row + 0.5) + m[3] - 0.5 for m in matrix[0, :2])
            inside = 0 <= x <= 8 and 0 <= y <= 6
            outside += not inside
            wanted = between(image[0], x, y) if inside else np.zeros(3)
            np.testing.assert_allclose(found[0, row, column], wanted, atol=1e-4)
    assert 0 < outside < 48


def test_an_image_read_at_places() -> None:
    image, places = numbers(2, 5, 6, 3), RNG.uniform(-2, 7, (2, 5, 6, 2)).astype(np.float32)
    (found,) = computed("Resampler", [image, places], b"", version=1)
    for n, row, column in np.ndindex(2, 5, 6):
        np.testing.assert_allclose(found[n, row, column], between(image[n], *places[n, row, column]), atol=1e-5)


@pytest.mark.parametrize("padding", [1, 2], ids=["same", "valid"])
@pytest.mark.parametrize(("strides", "sizes"), [((2, 2), (2, 2)), ((2, 1), (3, 2))])
def test_a_pool_that_remembers(padding: int, strides: tuple[int, int], sizes: tuple[int, int]) -> None:
    x = numbers(2, 5, 7, 3)
    options = struct.pack("<6i", padding, *strides[::-1], *sizes[::-1], 1)
    values, places = computed("MaxPoolingWithArgmax2D", [x], options, outputs=2, version=1)
    counts = [-(-n // s) if padding == 1 else (n - k) // s + 1 for n, s, k in zip((5, 7), strides, sizes, strict=True)]
    assert values.shape == places.shape == (2, *counts, 3)
    before = [max((c - 1) * s + k - n, 0) // 2 for c, s, k, n in zip(counts, strides, sizes, (5, 7), strict=True)]
    for n, row, column, channel in np.ndindex(*values.shape):
        best = (-math.inf, 0)
        for down, across in np.ndindex(*sizes):
            at = row * strides[0] - before[0] + down, column * strides[1] - before[1] + across
            if 0 <= at[0] < 5 and 0 <= at[1] < 7:
                best = max(best, (x[n, at[0], at[1], channel], -(down * sizes[1] + across)))
        assert values[n, row, column, channel] == max(best[0], 0)
        assert int(places[n, row, column, channel]) == -best[1]


def test_a_pool_undone() -> None:
    x, places = numbers(1, 2, 3, 4), RNG.integers(0, 6, (1, 2, 3, 4)).astype(np.float32) + np.float32(0.1)
    (found,) = computed("MaxUnpooling2D", [x, places], struct.pack("<6i", 1, 3, 2, 3, 2, 0), version=1)
    wanted = np.zeros((1, 4, 9, 4), np.float32)
    for _, row, column, channel in np.ndindex(*x.shape):
        down, across = divmod(int(places[0, row, column, channel]), 3)
        wanted[0, row * 2 + down, column * 3 + across, channel] = x[0, row, column, channel]
    np.testing.assert_array_equal(found, wanted)


def test_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 1"):
        computed("TransformLandmarks", [numbers(1, 5, 2), numbers(1, 4, 4)], b"", version=1)


@pytest.mark.parametrize(
    ("op_type", "options", "words"),
    [
        ("MaxPoolingWithArgmax2D", struct.pack("<6i", 9, 2, 2, 2, 2, 0), "not those of a pool"),
        ("MaxPoolingWithArgmax2D", struct.pack("<6i", 1, 0, 2, 2, 2, 0), "not those of a pool"),
        ("MaxPoolingWithArgmax2D", b"\1\0", "not those of a pool"),
        ("MaxUnpooling2D", struct.pack("<6i", 1, *[2**20] * 4, 0), "the window of a pool would take"),
        ("TransformTensorBilinear", named(output_height=2**20, output_width=2**20), "a new image would take"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(op_type: str, options: bytes, words: str) -> None:
    arrays = [numbers(1, 4, 4, 2)]
    if op_type != "MaxPoolingWithArgmax2D":
        arrays.append(numbers(1, 4, 4, 2) if op_type == "MaxUnpooling2D" else numbers(1, 4, 4))
    with pytest.raises(OnwardError, match=words):
        computed(op_type, arrays, options)
