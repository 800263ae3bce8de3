"""Which weights are trained unless others are chosen."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from onward.errors import OnwardError
from onward.training.trainable import prepare

RNG = np.random.default_rng(2)


pytestmark = pytest.mark.filterwarnings("ignore")


def exported(module: nn.Module, *inputs: torch.Tensor) -> onnx.ModelProto:
    file = io.BytesIO()
    torch.onnx.export(
        module.train(), inputs, file, dynamo=False, do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING
    )
    return onnx.load_from_string(file.getvalue())


def built(nodes: list[onnx.NodeProto], weights: dict[str, Any], shape: list[int]) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_empty_tensor_value_info("y")
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "built", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def test_running_statistics_are_no_parameters() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    made = prepare(exported(net, torch.zeros(2, 3, 6, 6)))
    assert set(made.parameters) == {name for name, _ in net.named_parameters()}
    assert set(made.buffers) == {"1.running_mean", "1.running_var"}


class Attention(nn.Module):
    """A layer as those of BERT, written out: constants of its formulas are weights in no sense."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.scale, self.shift = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        scores = self.query(x) @ self.key(x).transpose(-1, -2) / 8**0.5
        x = x + self.out(torch.softmax(scores + torch.tensor([0.0, -1e4, 0.0]), -1) @ self.value(x))
        apart = x - x.mean(-1, keepdim=True)
        x = apart / torch.sqrt((apart**2).mean(-1, keepdim=True) + 1e-12) * self.scale + self.shift
        gelu = x * 0.5 * (1 + torch.erf(x / 1.41421))
        return gelu.mean(1)


def test_constants_of_formulas_are_no_parameters() -> None:
    net = Attention()
    made = prepare(exported(net, torch.tensor([[1, 2, 3]])))
    shapes = sorted(tuple(array.shape) for array in made.parameters.values())
    assert shapes == sorted(tuple(p.shape) for p in net.parameters())


def test_initial_states_of_an_lstm_are_no_parameters() -> None:
    weights = {
        "W": floats(1, 12, 2),
        "R": floats(1, 12, 3),
        "B": floats(1, 24),
        "h0": np.zeros((1, 2, 3), np.float32),
        "c0": np.zeros((1, 2, 3), np.float32),
        "head": floats(3, 4),
    }
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R", "B", "", "h0", "c0"], ["", "h", ""], hidden_size=3),
        helper.make_node("Squeeze", ["h", "zero"], ["s"]),
        helper.make_node("MatMul", ["s", "head"], ["y"]),
    ]
    made = prepare(built(nodes, weights | {"zero": np.array([0])}, [5, 2, 2]))
    assert list(made.parameters) == ["W", "R", "B", "head"]


def test_scales_of_quantisation_are_no_parameters() -> None:
    weights = {
        "w": floats(3, 4),
        "b": floats(4),
        "xs": np.float32(0.02),
        "xz": np.uint8(128),
        "ws": np.full(4, 0.01, np.float32),
        "wz": np.zeros(4, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("QuantizeLinear", ["w", "ws", "wz"], ["wq"], axis=1),
        helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"], axis=1),
        helper.make_node("MatMul", ["xd", "wd"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    assert list(prepare(built(nodes, weights, [2, 3])).parameters) == ["w", "b"]


def test_weights_are_chosen_by_name() -> None:
    model = exported(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.zeros(2, 3))
    assert list(prepare(model, trainable=["2.*"]).parameters) == ["2.weight", "2.bias"]
    assert list(prepare(model, trainable="*.bias").parameters) == ["0.bias", "2.bias"]
    assert list(prepare(model, trainable=lambda name: name == "0.weight").parameters) == ["0.weight"]
    with pytest.raises(OnwardError, match=r"no float weight is called 'head\.\*'; there are 0.weight"):
        prepare(model, trainable=["head.*"])


def test_a_model_without_weights_is_refused() -> None:
    with pytest.raises(OnwardError, match=r"no float weight, so there is nothing to train$"):
        prepare(built([helper.make_node("Relu", ["x"], ["y"])], {}, [2, 3]))
