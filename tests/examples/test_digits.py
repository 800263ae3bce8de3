"""The model shipped as an example is what its script says, and converts to what its script wrote by hand."""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

import onward

FOLDER = Path(__file__).parents[2] / "examples" / "digits"
MODEL = FOLDER / "digits.onnx"


@pytest.fixture(scope="module")
def sample() -> dict[str, np.ndarray]:
    with np.load(FOLDER / "sample.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("digits_train", FOLDER / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_small_and_self_contained() -> None:
    proto = onnx.load(MODEL, load_external_data=False)
    assert MODEL.stat().st_size < 500_000
    assert not any(tensor.external_data for tensor in proto.graph.initializer)
    assert sum(node.op_type == "BatchNormalization" for node in proto.graph.node) == 10


def test_it_knows_its_digits(sample) -> None:
    session = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"image": sample["image"]})
    assert np.mean(logits.argmax(axis=1) == sample["label"]) > 0.95


def test_the_converted_module_agrees_with_onnxruntime(sample) -> None:
    session = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"image": sample["image"]})
    with torch.inference_mode():
        actual = onward.to_torch(MODEL)(torch.from_numpy(sample["image"])).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_the_state_dict_of_the_original_loads_strictly(script, sample) -> None:
    torch.manual_seed(1)
    original = script.DigitsNet().eval()
    net = onward.to_torch(MODEL)
    net.load_state_dict(original.state_dict(), strict=True)
    image = torch.from_numpy(sample["image"])
    with torch.inference_mode():
        torch.testing.assert_close(net.eval()(image), original(image))
