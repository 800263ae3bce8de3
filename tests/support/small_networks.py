"""Small PyTorch networks, and their ONNX files, for tests of training."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from onward.frontends.torch.torchlib import read_once

CLASSES = 4


class Sequence(nn.Module):
    """Words to classes by an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 12, batch_first=True)
        self.head = nn.Linear(12, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(self.words(x))
        return self.head(y[:, -1])


@dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    data: Callable[[int], Tensor]


NETWORKS = {
    "mlp": Network(
        lambda: nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, CLASSES)),
        lambda n: torch.randn(n, 12),
    ),
    "cnn": Network(
        lambda: nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, bias=False),
            nn.BatchNorm2d(8, momentum=0.3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8, CLASSES),
        ),
        lambda n: torch.randn(n, 2, 8, 8),
    ),
    "lstm": Network(Sequence, lambda n: torch.randint(0, 20, (n, 7))),
    "dropout": Network(
        lambda: nn.Sequential(
            nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.4), nn.Linear(32, 32), nn.Dropout(0.2), nn.Linear(32, CLASSES)
        ),
        lambda n: torch.randn(n, 12),
    ),
}


def network(name: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return NETWORKS[name].make()


_FILES: dict[Any, bytes] = {}
"""What was exported before, by all that it depends on: PyTorch takes about a second each time."""


def onnx_of(net: nn.Module, x: Tensor, *, training: bool = False) -> bytes:
    """Its ONNX file, for batches of any size; the network and the generator of random numbers are left as they are."""
    kinds = {type(part) for part in net.modules()}
    if not all(kind is Sequence or kind.__module__.startswith("torch.nn.") for kind in kinds):
        return _exported(net, x, training)  # what it prints as may not tell all
    weights = tuple((name, w.dtype, w.detach().numpy().tobytes()) for name, w in net.state_dict().items())
    trained = tuple(name for name, w in net.named_parameters() if w.requires_grad)
    key = (str(net), weights, trained, tuple(x.shape), x.dtype, training)
    if key not in _FILES:
        _FILES[key] = _exported(net, x, training)
    return _FILES[key]


@torch.random.fork_rng(devices=[])
def _exported(net: nn.Module, x: Tensor, training: bool) -> bytes:
    net = copy.deepcopy(net).train(training)
    if training:
        file = io.BytesIO()
        kind = torch.onnx.TrainingMode.TRAINING
        axes = {"x": {0: "n"}, "y": {0: "n"}}
        options: dict[str, Any] = {"training": kind, "do_constant_folding": False, "dynamic_axes": axes}
        torch.onnx.export(net, (x,), file, input_names=["x"], output_names=["y"], dynamo=False, **options)
        return file.getvalue()
    shapes = ({0: torch.export.Dim("n")},)
    with read_once():
        program = torch.onnx.export(
            net, (x,), input_names=["x"], output_names=["y"], dynamic_shapes=shapes, optimize=False, verbose=False
        )
    assert program is not None
    return program.model_proto.SerializeToString()


def batches(name: str, count: int, size: int = 16, seed: int = 1) -> list[tuple[Tensor, Tensor]]:
    """Random data whose labels can be learnt."""
    torch.manual_seed(seed)
    found = []
    for _ in range(count):
        x = NETWORKS[name].data(size)
        if x.is_floating_point():
            parts = x.reshape(size, 4, -1).mean(dim=-1)
            y = (parts[:, 0] > parts[:, 1]).long() * 2 + (parts[:, 2] > parts[:, 3]).long()
        else:
            y = x[:, -1] % CLASSES
        found.append((x, y))
    return found
