"""A model exported by torch.onnx and converted back takes the original's state dict, and computes the same."""

import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import onward
from onward.frontends.torch.torchlib import read_once


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv2(F.relu(self.bn1(self.conv1(x)))) + x)


class ConvNet(nn.Module):
    example = (torch.randn(2, 3, 8, 8),)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.Sequential(*(Block(8) for _ in range(3)))
        self.head = nn.Linear(8, 4)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(image)).mean(dim=(2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = (p.reshape(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """With tied input and output embeddings."""

    example = (torch.randint(0, 50, (2, 6)), torch.zeros(2, 1, 1, 6))

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.position = nn.Parameter(torch.randn(1, 6, 16))
        self.layers = nn.ModuleList(Layer(16) for _ in range(3))
        self.norm = nn.LayerNorm(16)
        self.lm_head = nn.Linear(16, 50, bias=False)
        self.lm_head.weight = self.embed.weight

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.embed(tokens) + self.position
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


class Recurrent(nn.Module):
    example = (torch.randint(0, 50, (2, 6)),)

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 12, batch_first=True)
        self.head = nn.Linear(12, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x, _ = self.lstm(self.embed(tokens))
        x, _ = self.gru(x)
        return self.head(x[:, -1])


class Derived(nn.Module):
    """Computes with small weights before they meet the input: what an exporter's reader is tempted to do once."""

    example = (torch.randn(2, 4),)

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
        self.weight = nn.Parameter(torch.ones(3, 4))
        self.direction = nn.Parameter(torch.ones(3))
        self.temperature = nn.Parameter(torch.tensor(2.0))
        self.parts = nn.ModuleDict({"table": nn.Embedding(5, 3)})
        self.register_buffer("offset", torch.ones(3))
        self.register_buffer("steps", torch.tensor([1.0, 2.0, 3.0]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        y = (x * (2 * self.gain)) @ (self.weight * self.direction.unsqueeze(1)).t()
        y = y * torch.sqrt(self.temperature + 1) + (self.offset - self.parts["table"].weight[1])
        return y + self.steps.reshape(1, 3) * 0.5


def randomise(net: nn.Module) -> nn.Module:
    """No two tensors alike, so that a weight in the wrong place is seen."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                noise = torch.rand(tensor.shape, generator=generator)
                tensor.copy_(noise + 0.5 if "running_var" in name else noise - 0.5)
    return net.eval()


def export(net: nn.Module, path: Path, *, optimize: bool) -> None:
    dynamic = tuple({0: torch.export.Dim.DYNAMIC} for _ in net.example)
    options = {"dynamo": True, "optimize": optimize, "dynamic_shapes": dynamic, "external_data": False}
    with read_once():
        torch.onnx.export(net, net.example, path, verbose=False, **options)


@pytest.mark.parametrize("kind", [ConvNet, Transformer, Recurrent, Derived])
def test_original_state_dict_loads(kind: type[nn.Module], tmp_path: Path) -> None:
    net = randomise(kind())
    export(net, tmp_path / "net.onnx", optimize=False)
    converted = onward.to_torch(tmp_path / "net.onnx")
    torch.testing.assert_close(converted(*net.example), net(*net.example), atol=1e-5, rtol=1e-5)
    other = randomise(kind())
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.7)
    converted.load_state_dict(other.state_dict(), strict=True)
    torch.testing.assert_close(converted(*net.example), other(*net.example), atol=1e-5, rtol=1e-5)


class Normalised(nn.Module):
    """Fresh normalisations are all alike."""

    example = (torch.randn(2, 4),)

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        for norm in self.norms:
            x = torch.relu(norm(x))
        return x * (self.scale + 1)


def test_weights_an_exporter_merged_are_told_apart(tmp_path: Path) -> None:
    """The older exporter keeps one of equal weights, and an Identity under each name of the others."""
    net = Normalised().eval()
    options = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, net.example, tmp_path / "net.onnx", dynamo=False, opset_version=17, **options)
    converted = onward.to_torch(tmp_path / "net.onnx")
    other = randomise(Normalised())
    converted.load_state_dict(other.state_dict(), strict=True)
    torch.testing.assert_close(converted(*net.example), other(*net.example), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [ConvNet, Transformer, Recurrent])
def test_optimized_export(kind: type[nn.Module], tmp_path: Path) -> None:
    net = randomise(kind())
    export(net, tmp_path / "net.onnx", optimize=True)
    converted = onward.to_torch(tmp_path / "net.onnx")
    torch.testing.assert_close(converted(*net.example), net(*net.example), atol=1e-5, rtol=1e-5)
    larger = [torch.cat([x, x.flip(0), x]) for x in net.example]
    torch.testing.assert_close(converted(*larger), net(*larger), atol=1e-5, rtol=1e-5)
