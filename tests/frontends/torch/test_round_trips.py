"""PyTorch to ONNX and back: the original's state dict loads strictly, and both compute the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import onward


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(6)
        self.down = nn.Conv2d(3, 6, 1)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.bn(self.conv(x)) + self.down(x)).mean((2, 3)))


class Tied(nn.Module):
    """One weight under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.embed(tokens)))


class Buffers(nn.Module):
    """Of a state dict, and beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.rand(3))
        self.register_buffer("mask", torch.tril(torch.ones(3, 3)))
        self.register_buffer("scale", torch.rand(3), persistent=False)
        self.weight = nn.Parameter(torch.rand(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ (self.weight * self.mask) * self.scale


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True)
        self.gru = nn.GRU(5, 3, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(self.lstm(x)[0])[0]


class Scalars(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.5))
        self.offset = nn.ParameterDict({"left": torch.rand(4), "right": torch.rand(4)})

    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(x / self.temperature) + self.offset["left"] * self.offset["right"]


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.paths = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.gate = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        outputs = torch.stack([path(x) for path in self.paths], -1)
        return (outputs * self.gate(x).softmax(-1).unsqueeze(1)).sum(-1)


class OwnRules(nn.Module):
    """With ops that PyTorch's exporter lacks, between weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.concentration = nn.Parameter(torch.rand(4) + 1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.cumprod(torch.sigmoid(self.first(x)), 1)
        return torch.lgamma(self.concentration + y) - torch.median(y, 1, keepdim=True).values


class Bare(nn.Module):
    """Weights that no module owns."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.rand(3, 4))
        self.shift = nn.Parameter(torch.rand(4))
        self.taps = nn.Parameter(torch.rand(2, 1, 3))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv1d((x @ self.kernel + self.shift).unsqueeze(1), self.taps)


def images(width: int = 8) -> Callable[[], Tensor]:
    return lambda: torch.randn(2, 3, width, width)


def rows(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(2, *shape)


NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "residual": (Residual, images()),
    "tied": (Tied, lambda: torch.randint(0, 20, (2, 5))),
    "buffers": (Buffers, rows(3)),
    "encoder": (Encoder, rows(5, 8)),
    "recurrent": (Recurrent, rows(6, 4)),
    "scalars": (Scalars, rows(4)),
    "gated": (Gated, rows(4)),
    "bare": (Bare, rows(3)),
    "own rules": (OwnRules, rows(4)),
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 2)), rows(4)),
    "mobile": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 1), nn.Hardswish(), nn.Conv2d(6, 6, 3, groups=6, padding=1), nn.GroupNorm(2, 6), nn.SiLU()
        ),
        images(),
    ),
    "decoder": (
        lambda: nn.Sequential(
            nn.ConvTranspose2d(3, 4, 2, stride=2), nn.InstanceNorm2d(4, affine=True), nn.PReLU(4), nn.PixelShuffle(2)
        ),
        images(4),
    ),
    "signal": (
        lambda: nn.Sequential(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), nn.Tanh(), nn.MaxPool1d(2), nn.Flatten()),
        rows(4, 9),
    ),
}


def randomised(net: nn.Module, seed: int) -> nn.Module:
    """No two tensors alike, so that a weight in the wrong place is seen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                noise = torch.rand(tensor.shape, generator=generator)
                tensor.copy_(noise + 0.5 if "var" in name or "concentration" in name else noise - 0.5)
    return net.eval()


@pytest.mark.parametrize("name", NETS)
def test_state_dict_survives(name: str) -> None:
    make, example = NETS[name]
    torch.manual_seed(0)
    net, x = randomised(make(), 1), example()
    model = onward.from_torch(net, x)
    back = onward.to_torch(model)
    torch.testing.assert_close(back(x), net(x), atol=1e-5, rtol=1e-5)
    other = randomised(make(), 2)
    for key, buffer in net.named_buffers():  # what a state dict does not hold stays what it was
        if key not in net.state_dict():
            other.get_buffer(key).copy_(buffer)
    back.load_state_dict(other.state_dict(), strict=True)
    larger = torch.cat([x, x.flip(0), x])
    torch.testing.assert_close(back(larger), other(larger), atol=1e-5, rtol=1e-5)


def test_unused_parameters_are_left_out() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    model = onward.from_torch(Unused(), torch.randn(2, 3))
    assert set(model.ir.graph.initializers) == {"used.weight", "used.bias"}


def test_weights_are_copies() -> None:
    net = nn.Linear(3, 2)
    model = onward.from_torch(net, torch.randn(2, 3))
    before = model.ir.graph.initializers["weight"].const_value.numpy().copy()
    with torch.no_grad():
        net.weight.add_(1)
    assert (model.ir.graph.initializers["weight"].const_value.numpy() == before).all()
