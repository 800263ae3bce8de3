"""Training that began in PyTorch goes on on ONNX Runtime, and back again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_networks import batches, network
from torch import Tensor, nn, optim

from onward.errors import UnsupportedError
from onward.training.capture.torch import from_torch
from onward.training.export import to_torch_package
from onward.training.recipe.losses import CrossEntropy
from onward.training.recipe.optimizers import SGD
from onward.training.runtime.trainer import Trainer

STEPS = 20
Optimizers = Callable[[Iterable[nn.Parameter]], optim.Optimizer]


def train(
    net: nn.Module, optimizer: optim.Optimizer, loss: nn.Module, data: list[tuple[Tensor, Tensor]]
) -> list[float]:
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


OPTIMIZERS: dict[str, Optimizers] = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "dampening": lambda p: optim.SGD(p, lr=0.02, momentum=0.8, dampening=0.3, weight_decay=1e-3),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.02, lr_decay=0.01, initial_accumulator_value=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=2e-3, momentum=0.5, centered=True),
    "adam": lambda p: optim.Adam(p, lr=3e-3, betas=(0.8, 0.99), weight_decay=1e-3),
    "adamw": lambda p: optim.AdamW(p, lr=3e-3),
}


@pytest.mark.parametrize(
    ("name", "kind"), [*(("mlp", kind) for kind in OPTIMIZERS), ("cnn", "adamw"), ("cnn", "dampening")]
)
def test_pytorch_to_onnx_runtime_and_back(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, data = network(name), batches(name, 3 * STEPS)
    first, second, third = data[:STEPS], data[STEPS : 2 * STEPS], data[2 * STEPS :]
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 1.5]), label_smoothing=0.1)
    optimizer = OPTIMIZERS[kind](net.parameters())
    train(net, optimizer, loss, first)
    before = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    trainer = Trainer(from_torch(net, first[0][0], loss, optimizer, input_names=["x"]))
    assert all(torch.equal(tensor, before[key]) for key, tensor in net.state_dict().items())
    found = [trainer.step({"x": x, "labels": y}) for x, y in second]
    np.testing.assert_allclose(found, train(net, optimizer, loss, second), rtol=1e-4)
    for key, array in {**trainer.parameters, **trainer.buffers}.items():
        np.testing.assert_allclose(array, net.state_dict()[key].numpy(), rtol=1e-3, atol=1e-4, err_msg=key)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = to_torch_package(trainer, tmp_path / f"back_{name}_{kind}")
    module: Any = importlib.import_module(f"{package.name}.train")
    again = module.load()
    back = module.train(again, module.load_optimizer(again), [{"x": x, "labels": y} for x, y in third])
    np.testing.assert_allclose(back, train(net, optimizer, loss, third), rtol=1e-4)
    for part in ("train", "model"):
        sys.modules.pop(f"{package.name}.{part}", None)


def test_groups_of_parameters() -> None:
    net, data = network("mlp"), batches("mlp", STEPS)
    net[3].bias.requires_grad_(False)
    groups = [{"params": net[0].parameters()}, {"params": [net[3].weight, net[3].bias], "lr": 1e-2, "weight_decay": 0}]
    optimizer = optim.AdamW(groups, lr=1e-3, weight_decay=0.2)
    made = from_torch(net, data[0][0], nn.CrossEntropyLoss(), optimizer, input_names=["x"])
    assert sorted(made.parameters) == ["0.bias", "0.weight", "3.weight"]
    trainer = Trainer(made)
    found = [trainer.step({"x": x, "labels": y}) for x, y in data]
    np.testing.assert_allclose(found, train(net, optimizer, nn.CrossEntropyLoss(), data), rtol=1e-4)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (nn.CrossEntropyLoss(ignore_index=1, reduction="sum"), "class"),
        (nn.NLLLoss(torch.tensor([1.0, 2.0, 3.0, 4.0])), "class"),
        (nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)), "share"),
        (nn.MSELoss(), "share"),
        (nn.L1Loss(reduction="sum"), "share"),
        (nn.HuberLoss(delta=0.3), "share"),
        (nn.SmoothL1Loss(beta=0.5), "share"),
        (nn.KLDivLoss(reduction="batchmean"), "share"),
    ],
    ids=lambda x: str(x).partition("(")[0],
)
def test_losses(loss: nn.Module, kind: str) -> None:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(12, 4), nn.LogSoftmax(1))
    x = torch.randn(6, 12)
    y = torch.tensor([0, 1, 2, 3, 1, 0]) if kind == "class" else torch.softmax(torch.randn(6, 4), 1)
    trainer = Trainer(from_torch(net, x, loss, SGD(lr=0.1), input_names=["x"]))
    found = [trainer.step({"x": x, "labels": y}) for _ in range(2)]
    expected = train(net, optim.SGD(net.parameters(), lr=0.1), loss, [(x, y), (x, y)])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


class Functional(nn.Module):
    """Drops out without a module that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(F.dropout(x, 0.5, self.training))


def test_dropout_is_not_lost() -> None:
    net, x = Functional(), torch.randn(8, 12)
    made = from_torch(net, x, "cross_entropy", optim.SGD(net.parameters(), lr=0.1))
    assert [node.op_type for node in made.gradients.graph].count("Dropout") == 1
    assert list(made.parameters) == ["layer.weight", "layer.bias"]
    made = from_torch(net.eval(), x, "cross_entropy")
    assert "Dropout" not in [node.op_type for node in made.gradients.graph]


def test_eval_leaves_running_statistics_alone() -> None:
    net, data = network("cnn").eval(), batches("cnn", 4)
    optimizer = optim.Adam(net.parameters())
    trainer = Trainer(from_torch(net, data[0][0], CrossEntropy(), optimizer, input_names=["x"]))
    assert not trainer.buffers
    found = [trainer.step({"x": x, "labels": y}) for x, y in data]
    np.testing.assert_allclose(found, train(net, optimizer, nn.CrossEntropyLoss(), data), rtol=1e-4)


def test_what_has_no_counterpart_is_refused() -> None:
    net, x = network("mlp"), torch.randn(4, 12)
    with pytest.raises(UnsupportedError, match="amsgrad"):
        from_torch(net, x, "cross_entropy", optim.Adam(net.parameters(), amsgrad=True))
    with pytest.raises(UnsupportedError, match="Adamax"):
        from_torch(net, x, "cross_entropy", optim.Adamax(net.parameters()))
    with pytest.raises(UnsupportedError, match="'none'"):
        from_torch(net, x, nn.MSELoss(reduction="none"))
    with pytest.raises(UnsupportedError, match="eval"):
        mixed = network("cnn")
        mixed[1].eval()
        from_torch(mixed, torch.randn(4, 2, 8, 8))


@pytest.mark.parametrize(
    ("function", "kind"),
    [(F.cross_entropy, nn.CrossEntropyLoss()), (F.mse_loss, nn.MSELoss()), (F.ctc_loss, nn.CTCLoss())],
)
def test_functions_are_losses(function: Any, kind: nn.Module) -> None:
    net = nn.Unflatten(1, (2, 2)) if function is F.ctc_loss else nn.Identity()
    net = nn.Sequential(nn.Linear(4, 4), net)
    losses = [from_torch(net, torch.randn(3, 4), loss).loss for loss in (function, kind)]
    assert losses[0] == losses[1] is not None


class Squeezed(torch.autograd.Function):
    """Itself, with half of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return 0.5 * gradients[0]


class Stopping(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.second, self.way = nn.Linear(4, 3), nn.Linear(3, 3), way

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if self.way == "no_grad":
            with torch.no_grad():
                inner = torch.tanh(self.first(x))
        elif self.way == "function":
            inner = Squeezed.apply(h)
        else:
            inner = torch.tanh(h.detach())
        return self.second(inner) + (0 if self.way == "function" else h)


@pytest.mark.parametrize("way", ["detach", "no_grad", "function"])
def test_gradients_that_a_graph_does_not_tell_are_refused(way: str) -> None:
    net = Stopping(way)
    with pytest.raises(UnsupportedError, match=r"another gradient of 'first\.weight'"):
        from_torch(net, torch.zeros(2, 4), nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=0.1))
    net.first.requires_grad_(False)
    made = from_torch(net, torch.zeros(2, 4), nn.MSELoss(), torch.optim.SGD(net.second.parameters(), lr=0.1))
    assert set(made.parameters) == {"second.weight", "second.bias"}
