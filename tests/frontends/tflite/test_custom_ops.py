"""Ops that are no builtin ones, but that the interpreter knows."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from onward.plugins import CustomOp

pytest.importorskip("tensorflow")

from lite import Flat, interpreted, named, on_runtime
from plugin_state import plugins_restored

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def model(op_type: str, arrays: list[Any], constants: list[Any], outputs: list[Any], options: bytes) -> bytes:
    flat = Flat()
    graph = flat.graph()
    inputs = [graph.input(array) for array in arrays] + [graph.constant(array) for array in constants]
    graph.output(*graph.op(op_type, inputs, outputs))
    graph.made.operators[-1].customOptions = np.frombuffer(options, np.uint8)
    return flat.bytes()


def agree(lite: bytes, *arrays: Any) -> None:
    for found, wanted in zip(on_runtime(lite, *arrays), interpreted(lite, *arrays), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max(initial=1))


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("by_class", [False, True])
def test_detections(by_class: bool, classes: int) -> None:
    """Behind those that were found the interpreter leaves what was there before."""
    encoded, scores = numbers(1, 12, 4), np.abs(numbers(1, 12, 4))
    anchors = np.concatenate([np.abs(numbers(12, 2)), 0.1 + 0.3 * np.abs(numbers(12, 2))], 1)
    options = named(
        max_detections=6,
        max_classes_per_detection=classes,
        detections_per_class=4,
        use_regular_nms=by_class,
        nms_score_threshold=0.3,
        nms_iou_threshold=0.4,
        num_classes=3,
        y_scale=10.0,
        x_scale=10.0,
        h_scale=5.0,
        w_scale=5.0,
    )
    lite = model("TFLite_Detection_PostProcess", [encoded, scores], [anchors], [np.float32] * 4, options)
    found, wanted = on_runtime(lite, encoded, scores), interpreted(lite, encoded, scores)
    assert [array.shape for array in found] == [array.shape for array in wanted]
    assert found[3] == wanted[3] > 2
    rows = int(wanted[3][0]) * (1 if by_class else classes)
    for a, b in zip(found[:3], wanted[:3], strict=True):
        np.testing.assert_allclose(a[0, :rows], b[0, :rows], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "size"), [(1, (12, 14)), (2, (13, 15))], ids=["same", "valid"])
def test_a_transposed_convolution_with_a_bias(kind: int, size: tuple[int, int]) -> None:
    x = numbers(1, 6, 7, 5)
    weights = [numbers(3, 3, 3, 5), numbers(3)]
    outputs = [(np.float32, (1, *size, 3))]
    agree(model("Convolution2DTransposeBias", [x], weights, outputs, struct.pack("<3i", kind, 2, 2)), x)


@pytest.mark.parametrize("squared", [False, True])
def test_a_spectrogram(squared: bool) -> None:
    x = numbers(300, 2)
    options = named(window_size=60, stride=30, magnitude_squared=squared)
    agree(model("AudioSpectrogram", [x], [], [np.float32], options), x)


@pytest.mark.parametrize("low", [20.0, 300.0])
def test_what_is_heard_of_a_spectrum(low: float) -> None:
    x = np.abs(numbers(2, 9, 65))
    options = named(
        upper_frequency_limit=4000.0,
        lower_frequency_limit=low,
        filterbank_channel_count=20,
        dct_coefficient_count=13,
    )
    agree(model("Mfcc", [x], [np.int32(16000)], [np.float32], options), x)


def test_one_that_a_plugin_knows() -> None:
    """By the name that it has in TensorFlow; its options are attributes."""
    with plugins_restored():
        op = CustomOp("tests.lite::Shift", attributes={"by": 0.0})
        op.numpy(lambda x, *, by: x + x.dtype.type(by))
        op.infer(lambda x, *, by: x)
        op.from_tensorflow("LabShift")
        x = numbers(2, 3)
        (found,) = on_runtime(model("LabShift", [x], [], [(np.float32, (2, 3))], named(by=0.5)), x)
        np.testing.assert_array_equal(found, x + np.float32(0.5))
