"""Quantised networks read like those they were made of: one class for equal layers, scales beside the weights."""

import io
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
from torch import Tensor, nn

import onward
from onward.backends.tensorflow.convert import generate as generate_tensorflow
from onward.backends.torch.convert import generate
from onward.backends.torch.load import run

LAYERS = 4


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(FeedForward(8) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Samples(CalibrationDataReader):
    def __init__(self) -> None:
        self.left = iter([{"x": example(seed)} for seed in range(3)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def example(seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, 3, 8)).astype(np.float32)


def trained() -> Network:
    """One whose layers are all different, as they are after training."""
    net = Network().eval()
    for parameter in net.parameters():
        nn.init.normal_(parameter, mean=0.2, std=0.3)
    return net


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network in three forms: in floats, quantised as it runs, and with steps that are known beforehand."""
    path = tmp_path_factory.mktemp("quantised")
    torch.manual_seed(0)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"input_names": ["x"], "output_names": ["y"], "dynamic_axes": {"x": {0: "batch"}}}
        torch.onnx.export(trained(), (torch.zeros(2, 3, 8),), file, dynamo=False, opset_version=17, **names)
        onnx.save(onnx.load_from_string(file.getvalue()), path / "float.onnx")
        quantize_dynamic(path / "float.onnx", path / "dynamic.onnx", weight_type=QuantType.QUInt8)
        options = {"weight_type": QuantType.QUInt8, "activation_type": QuantType.QUInt8}
        quantize_static(path / "float.onnx", path / "static.onnx", Samples(), **options)
    return path


def classes(text: str) -> list[str]:
    return re.findall(r"^class (\w+)", text, re.MULTILINE)


@pytest.mark.parametrize("form", ["dynamic", "static"])
def test_equal_layers_are_one_class(folder: Path, form: str) -> None:
    source = generate(onward.load(folder / f"{form}.onnx"))
    net = run(source)
    assert len(set(map(type, net.layers))) == 1
    assert f"for _ in range({LAYERS})" in source.model
    assert len(classes(source.model)) <= 4
    expected = onnxruntime.InferenceSession(folder / f"{form}.onnx").run(None, {"x": example()})[0]
    np.testing.assert_allclose(net(torch.from_numpy(example())).detach().numpy(), expected, atol=0.02)


@pytest.mark.parametrize(("form", "layer"), [("dynamic", "DynamicLinear"), ("static", "Int8Linear")])
def test_linear_layers_are_modules_at_their_place(folder: Path, form: str, layer: str) -> None:
    net = run(generate(onward.load(folder / f"{form}.onnx")))
    found = {name for name, module in net.named_modules() if type(module).__name__ == layer}
    assert len(found) == 2 * LAYERS
    assert all(re.match(r"layers\.\d\.(up|down)", name) for name in found)


def test_the_numbers_of_each_layer_stand_in_the_weights(folder: Path) -> None:
    source = generate(onward.load(folder / "static.onnx"))
    scales = {name: t for name, t in source.tensors.items() if re.match(r"layers\.\d\..*quantize\d*\.scale$", name)}
    assert len(scales) >= LAYERS and len({float(t.read()) for t in scales.values()}) > 1
    assert not any(t.parameter for t in scales.values())


def test_what_has_no_codes_trains_on(folder: Path) -> None:
    net = run(generate(onward.load(folder / "dynamic.onnx"))).train()
    assert {name for name, _ in net.layers[0].named_parameters()} == {f"{n}.bias" for n in ("norm", "up", "down")} | {
        "norm.weight"
    }
    net(torch.from_numpy(example())).square().sum().backward()
    assert all(layer.down.bias.grad is not None and layer.down.bias.grad.any() for layer in net.layers)


def test_tensorflow_has_one_class_too(folder: Path) -> None:
    pytest.importorskip("tensorflow")
    text = generate_tensorflow(onward.load(folder / "dynamic.onnx")).model
    assert f"for i in range({LAYERS})" in text and "weights.constant(" in text
    assert len(classes(text)) <= 5
