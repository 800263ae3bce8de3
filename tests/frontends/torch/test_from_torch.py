"""`onward.from_torch`: a module as a model for inference, or as a trainable one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers ops of quantised models
from torch import Tensor, nn

import onward
from onward.errors import OnwardError


class Two(nn.Module):
    """Two inputs, dropout, and a batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, 3)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.head(self.drop(self.norm(a))) * b


def test_a_module_becomes_a_model() -> None:
    net = Two().train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    model = onward.from_torch(net, (torch.randn(5, 4), torch.randn(5, 1)), output_names=["scores"])
    assert isinstance(model, onward.Model) and net.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert [value.name for value in model.ir.graph.inputs] == ["a", "b"]
    assert {"head.weight", "head.bias", "norm.running_mean"} <= set(model.ir.graph.initializers)
    a, b = torch.randn(7, 4), torch.randn(7, 1)  # another batch than it was exported with
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    (found,) = session.run(["scores"], {"a": a.numpy(), "b": b.numpy()})
    np.testing.assert_allclose(found, net.eval()(a, b).detach(), rtol=1e-5, atol=1e-6)


def test_with_a_loss_or_an_optimizer_it_is_trainable() -> None:
    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    made = onward.from_torch(net, x, nn.CrossEntropyLoss(), optimizer)
    assert isinstance(made, onward.training.Trainable)
    losses = onward.training.Trainer(made)
    found = [losses.step({"input": x, "labels": y}) for _ in range(3)]
    expected = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert onward.from_torch(net, x, loss="mse").optimizer.name == "adamw"
    assert onward.from_torch(net, x, optimizer="sgd", clip_norm=1.0).clip_norm == 1.0


def test_options_of_training_need_a_training() -> None:
    with pytest.raises(OnwardError, match="clip_norm is an option of training"):
        onward.from_torch(nn.Linear(4, 3), torch.randn(2, 4), clip_norm=1.0)  # type: ignore[call-overload]
    with pytest.raises(OnwardError, match="there are 1 inputs, but 2 names for them"):
        onward.from_torch(nn.Linear(4, 3), torch.randn(2, 4), input_names=["x", "y"])


def test_a_pool_sees_the_zeros_that_are_padded_around_an_image() -> None:
    class Pooled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.max_pool2d(nn.functional.pad(x, (1, 1, 1, 1)), 3, 2)

    x = -torch.rand(1, 2, 8, 8) - 1
    session = onnxruntime.InferenceSession(onward.from_torch(Pooled(), x).to_proto().SerializeToString())
    (found,) = session.run(None, {"x": x.numpy()})
    np.testing.assert_array_equal(found, Pooled()(x).numpy())


class Quantised(nn.Module):
    """A layer between grids, as PyTorch's quantizers write it: data of uint8, weights of int8."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Buffer(torch.arange(-127, 129, 1).clamp(max=127).reshape(4, 64).to(torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        import torch.ao.quantization.fx._decomposed

        ops, grid = torch.ops.quantized_decomposed, (0.02, 3, 0, 255, torch.uint8)
        data = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *grid), *grid)
        weight = ops.dequantize_per_tensor(self.weight, 0.01, 0, -127, 127, torch.int8)
        return nn.functional.linear(data, weight)


def test_quantised_weights_are_of_uint8() -> None:
    """ONNX Runtime saturates products of uint8 and int8 on processors with AVX2 and no VNNI."""
    model = onward.from_torch(Quantised(), (torch.rand(2, 64),))
    weights = [v.dtype for v in model.ir.graph.initializers.values() if v.shape is not None and len(v.shape) == 2]
    assert weights == [ir.DataType.UINT8]
