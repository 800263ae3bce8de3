"""Networks as Keras models: the same results, and the layers that one would use."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import onward

if importlib.util.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)
pytest.importorskip("torch")
import torch
import vision
from torch import nn


def compare(path: Path, *feeds: Any) -> set[str]:
    """Runs both on the same inputs; gives the kinds of layers, those that are not of Keras in brackets."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    net = onward.to_keras(path, check=False)
    name = session.get_inputs()[0].name
    for feed in feeds:
        right = session.run(None, {name: feed})[0]
        np.testing.assert_allclose(net(feed), right, rtol=1e-3, atol=1e-5 * np.abs(right).max())
    known = ((type(layer).__name__, type(layer).__module__.startswith("keras.")) for layer in net.layers)
    return {kind if of_keras else f"[{kind}]" for kind, of_keras in known} - {"InputLayer"}


BOTH = {"Add", "Conv2D", "Permute", "ZeroPadding2D"}
VISION = {
    "MobileNetV2": BOTH | {"Dense", "DepthwiseConv2D", "Flatten", "GlobalAveragePooling2D", "ReLU"},
    "U-Net": {"Activation", "Concatenate", "Conv2D", "Conv2DTranspose", "MaxPooling2D", "Permute", "Reshape"},
    "YOLO-like": BOTH | {"Activation", "Concatenate", "MaxPooling2D", "UpSampling2D"},
}


@pytest.mark.parametrize("name", VISION)
def test_vision(name: str, tmp_path: Path) -> None:
    vision.write(name, tmp_path / "net.onnx", "torchscript", 64)
    images = np.random.default_rng(0).random((2, 3, 64, 64), np.float32)
    used = compare(tmp_path / "net.onnx", images, images[:1])
    assert {kind for kind in used if not kind.startswith("[")} == VISION[name]
    assert name == "YOLO-like" or used == VISION[name], "only its boxes are computed by layers of our own"


class Recurrent(nn.Module):
    def __init__(self, kind: str, bidirectional: bool, last: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.rnn = getattr(nn, kind)(12, 16, 2, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(16 if last else 16 * (1 + bidirectional), 5)
        self.last = last

    def forward(self, ids: Any) -> Any:
        y, state = self.rnn(self.words(ids))
        return self.head((state[0] if isinstance(state, tuple) else state)[-1] if self.last else y)


@pytest.mark.parametrize("last", [False, True], ids=["outputs", "states"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one", "both"])
@pytest.mark.parametrize(("kind", "layer"), [("LSTM", "LSTM"), ("GRU", "GRU"), ("RNN", "SimpleRNN")])
def test_recurrent(kind: str, layer: str, bidirectional: bool, last: bool, tmp_path: Path) -> None:
    ids, axes = torch.randint(0, 50, (2, 7)), {"ids": {0: "n", 1: "t"}}
    options = {"input_names": ["ids"], "dynamic_axes": axes, "dynamo": False}
    torch.onnx.export(Recurrent(kind, bidirectional, last).eval(), (ids,), tmp_path / "net.onnx", **options)
    used = compare(tmp_path / "net.onnx", ids.numpy(), ids.numpy()[:1, :4])
    assert used - {"[Part]"} == {"Embedding", "Bidirectional" if bidirectional else layer, "Dense"}
    assert ("[Part]" in used) == last, "the last states of all layers are stacked"


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: Any) -> Any:
        return self.layers(self.words(ids))


def test_transformer(tmp_path: Path) -> None:
    ids = torch.randint(0, 100, (2, 9))
    shapes = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    torch.onnx.export(
        Encoder().eval(), (ids,), tmp_path / "net.onnx", dynamo=True, dynamic_shapes=shapes, verbose=False
    )
    used = compare(tmp_path / "net.onnx", ids.numpy(), ids.numpy()[:1, :5])
    assert {"Embedding", "Dense", "LayerNormalization", "Add", "Activation"} <= used
