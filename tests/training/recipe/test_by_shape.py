"""Training by optimizers whose states are of other shapes than the weights: files, kernels, PyTorch's own curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from onward.errors import OnwardError, UnsupportedError
from onward.training import Trainer, from_torch, load, prepare, to_torch_package

STEPS = 10


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(3, 4, 2), nn.Tanh(), nn.Flatten(), nn.Linear(16, 6), nn.Tanh(), nn.Linear(6, 3))


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(8, 3, 5), torch.randint(0, 3, (8,))) for _ in range(STEPS)]


def steps(net: nn.Module, optimizer: torch.optim.Optimizer, data: list[Any]) -> list[float]:
    found = []
    for x, y in data:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_pytorch_goes_on_by_adafactor(tmp_path: Path) -> None:
    """From where PyTorch is, state included, through a file, for ten steps."""
    net = network()
    optimizer = torch.optim.Adafactor(net.parameters(), lr=0.05, weight_decay=0.01)
    steps(net, optimizer, batches()[:3])
    made = from_torch(net, (batches()[0][0],), nn.CrossEntropyLoss(), optimizer)
    made.save(tmp_path / "a.onnx")
    trainable = load(tmp_path / "a.onnx")
    assert trainable.step == 3
    trainer = Trainer(trainable)
    name = trainer.inputs[0]
    ours = [trainer.step({name: x.numpy(), "labels": y.numpy()}) for x, y in batches()]
    np.testing.assert_allclose(ours, steps(net, optimizer, batches()), rtol=1e-5)
    with pytest.raises(OnwardError, match=r"'adafactor'.* only ONNX Runtime trains"):
        to_torch_package(trainer, tmp_path / "net")


def test_muon_by_name(tmp_path: Path) -> None:
    """With kernels as without: a step that was compiled for vectors would be another one."""
    net = network()
    made = from_torch(net, (batches()[0][0],), nn.CrossEntropyLoss(), "muon", average=0.9)
    curves = []
    for kernels in (None, False):
        trainer = Trainer(made, kernels=kernels, lr=0.02)
        name = trainer.inputs[0]
        x, y = batches()[0]
        curves.append([trainer.step({name: x.numpy(), "labels": y.numpy()}) for _ in range(STEPS)])
    np.testing.assert_allclose(*curves, rtol=1e-5)
    assert curves[0][-1] < 0.8 * curves[0][0]
    trainer.continued().save(tmp_path / "a.onnx")
    again = Trainer(load(tmp_path / "a.onnx"), kernels=False, lr=0.02)
    assert again.state.keys() == trainer.state.keys()
    batch = {name: x.numpy(), "labels": y.numpy()}
    assert again.step(batch) == pytest.approx(trainer.step(batch), rel=1e-6)


def test_muon_of_pytorch_rounds() -> None:
    net = nn.Linear(3, 2, bias=False)
    with pytest.raises(UnsupportedError, match=r"bfloat16.*optimizer='muon'"):
        from_torch(net, (torch.randn(2, 3),), nn.MSELoss(), torch.optim.Muon(net.parameters()))


def test_the_command_line_knows_them(tmp_path: Path) -> None:
    from onward.cli import main

    made = from_torch(network(), (batches()[0][0],), nn.CrossEntropyLoss(), "sgd")
    made.original.save(tmp_path / "net.onnx")
    for name in ("adafactor", "muon"):
        out = tmp_path / f"{name}.onnx"
        assert main(["train", "prepare", str(tmp_path / "net.onnx"), "--optimizer", name, "--out", str(out)]) == 0
        assert load(out).optimizer == prepare(tmp_path / "net.onnx", optimizer=name).optimizer
