"""Ops of onnxruntime-extensions on sound and images: what is inferred of each, and what it gives."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
import pytest
from onnx import helper

pytest.importorskip("onnxruntime_extensions")

import onward
from onward import runners
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer

SOUND, IMAGES = "ai.onnx.contrib", "com.microsoft.extensions"
N, HOP = 16, 4


def prepared(domain: str, op: str, inputs: list[Any], outputs: int = 1, **attributes: Any) -> onward.Model:
    names = [f"in{i}" for i in range(len(inputs))]
    made = [f"out{i}" for i in range(outputs)]
    dtypes = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in inputs]
    given = [
        helper.make_tensor_value_info(name, dtype, [f"{name}_{axis}" for axis in range(array.ndim)])
        for name, dtype, array in zip(names, dtypes, inputs, strict=True)
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph([helper.make_node(op, names, made, domain=domain, **attributes)], op, given, results)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)]
    model = onward.load(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    infer(model.ir)
    return model


def run(domain: str, op: str, inputs: list[Any], outputs: int = 1, **attributes: Any) -> list[Any]:
    """What it gives, which is as it was inferred."""
    model = prepared(domain, op, inputs, outputs, **attributes)
    found = runners.prepare("onnxruntime", model)({f"in{i}": array for i, array in enumerate(inputs)})
    for value in model.ir.graph.outputs:
        array = found[value.name or ""]
        assert value.dtype is not None and value.dtype.numpy() == array.dtype and value.shape is not None
        assert [n for n, d in zip(array.shape, value.shape, strict=True) if isinstance(d, int) and d != n] == []
    return list(found.values())


def picture() -> Any:
    return (np.arange(4 * 5 * 3) * 4).astype(np.uint8).reshape(4, 5, 3)


def sound() -> tuple[Any, Any]:
    """A file of two channels, and these."""
    samples = np.stack([np.sin(np.arange(80) / 5) * 20000, np.cos(np.arange(80) / 5) * 9000], 1).astype("<i2")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())
    return np.frombuffer(stream.getvalue(), np.uint8), samples.astype(np.float32) / 32768


@pytest.mark.parametrize("colours", ["bgr", "rgb"])
def test_images_are_written_and_read(colours: str) -> None:
    (png,) = run(IMAGES, "EncodeImage", [picture()], format="png", color_space=colours)
    assert png.tobytes()[1:4] == b"PNG"
    (same,) = run(IMAGES, "DecodeImage", [png], color_space=colours)
    assert (same == picture()).all()
    (other,) = run(IMAGES, "DecodeImage", [png], color_space="rgb" if colours == "bgr" else "bgr")
    assert (other == picture()[..., ::-1]).all()


@pytest.mark.parametrize(("mode", "last"), [("XYXY", 5), ("XYWH", 7)])
def test_boxes_are_drawn(mode: str, last: int) -> None:
    box = np.float32([[2, 2, 5, 5, 0.9, 0]])
    (drawn,) = run(IMAGES, "DrawBoundingBoxes", [np.zeros((9, 9, 3), np.uint8), box], mode=mode, thickness=1)
    wanted = np.zeros((9, 9), bool)
    wanted[2 : last + 1, 2 : last + 1] = True
    wanted[3:last, 3:last] = False
    assert (drawn.any(2) == wanted).all()


def test_sound_is_read() -> None:
    stream, samples = sound()
    (found,) = run(SOUND, "AudioDecoder", [stream], stereo_to_mono=1)
    np.testing.assert_allclose(found[0], samples.mean(1), atol=1e-6)
    (found,) = run(SOUND, "AudioDecoder", [stream, np.array(["wav"], object)])
    np.testing.assert_allclose(found[0], samples.ravel(), atol=1e-6)
    (found,) = run(SOUND, "AudioDecoder", [stream], stereo_to_mono=1, downsampling_rate=8000)
    assert found.shape == (1, 40)


def test_power_of_a_spectrum() -> None:
    x, window = np.random.default_rng(0).normal(size=64).astype(np.float32), np.hanning(N + 1)[:N].astype(np.float32)
    sizes = [np.array([size]) for size in (N, HOP, N)]
    (found,) = run(SOUND, "StftNorm", [x[None], sizes[0], sizes[1], window, sizes[2]])
    padded = np.pad(x, N // 2)
    frames = np.stack([padded[at : at + N] * window for at in range(0, 64 + 1, HOP)], 1)
    np.testing.assert_allclose(found[0], np.abs(np.fft.rfft(frames, axis=0)) ** 2, rtol=1e-4, atol=1e-4)


def test_segments_of_a_signal() -> None:
    loud = np.concatenate([np.zeros(8000), np.sin(np.arange(8000) / 5), np.zeros(8000)]).astype(np.float32)
    sizes = [np.array([size]) for size in (16000, 25, 10)]
    (found,) = run(SOUND, "SplitSignalSegments", [loud[None], *sizes, np.float32([-40])])
    ((begins, ends),) = found.tolist()
    assert abs(begins - 500) <= 25 and abs(ends - 1000) <= 25
    (merged,) = run(SOUND, "MergeSignalSegments", [np.array([[0, 10], [12, 20], [40, 50]]), np.array([5])])
    assert merged.tolist() == [[0, 20], [40, 50]]


def test_negative_and_positive() -> None:
    negative, positive = run(SOUND, "NegPos", [np.float32([[-1, 2], [3, -4]])], 2)
    assert negative.tolist() == [[-1, 0], [0, -4]] and positive.tolist() == [[0, 2], [3, 0]]


def test_what_is_none_is_refused_by_name() -> None:
    text = np.array(["One. Two."], object)
    with pytest.raises(OnwardError, match="FALDB"):
        runners.prepare("onnxruntime", prepared(SOUND, "BlingFireSentenceBreaker", [text], model="no model"))
    with pytest.raises(UnsupportedError, match=r"torch has no rule for com\.microsoft\.extensions::DecodeImage"):
        onward.to_torch(prepared(IMAGES, "DecodeImage", [np.zeros(3, np.uint8)]))
    with pytest.raises(OnwardError, match=r"no plugin knows this op.*com\.microsoft\.extensions::GaussianBlur"):
        runners.prepare("onnxruntime", prepared(IMAGES, "GaussianBlur", [np.zeros((3, 3), np.float32)]))
