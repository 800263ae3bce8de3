"""The networks of `jax_curves.py`, small, in Flax and in PyTorch."""

from dataclasses import dataclass
from typing import Any

import torch
from flax import linen as nn
from networks import CLASSES, Bert, Block, Lstm, Network, mlp
from torch import nn as tnn

WORDS, LENGTH, WIDTH, LAYERS = 2000, 16, 128, 4
"""Of BERT: the vocabulary, the length of a text, and how large the network is."""
STAGES = ((8, 1), (16, 2), (32, 2), (64, 2))
"""Of the residual network: channels and stride; each has two blocks."""


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        return nn.Dense(CLASSES)(nn.relu(nn.Dense(256)(nn.relu(nn.Dense(256)(x)))))


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        for width in (16, 32):
            x = nn.BatchNorm(use_running_average=not train)(nn.Conv(width, (3, 3), use_bias=False)(x))
            x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
        return nn.Dense(CLASSES)(x.reshape(x.shape[0], -1))


class FlaxLstm(nn.Module):
    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        return nn.Dense(CLASSES)(nn.RNN(nn.OptimizedLSTMCell(64, param_dtype=x.dtype))(x)[:, -1])


class Residual(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        def conv(x: Any, size: int, stride: int) -> Any:
            x = nn.Conv(self.channels, (size, size), stride, padding=size // 2, use_bias=False)(x)
            return nn.BatchNorm(use_running_average=not train)(x)

        y = conv(nn.relu(conv(x, 3, self.stride)), 3, 1)
        if self.stride > 1 or x.shape[-1] != self.channels:
            x = conv(x, 1, self.stride)
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = nn.Conv(8, (3, 3), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        for channels, stride in STAGES:
            x = Residual(channels, 1)(Residual(channels, stride)(x, train), train)
        return nn.Dense(CLASSES)(x.mean((1, 2)))


class FlaxBert(nn.Module):
    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        places = self.param("places", nn.initializers.normal(0.02), (LENGTH, WIDTH))
        h = nn.LayerNorm(1e-12)(nn.Embed(WORDS, WIDTH)(x) + places)
        for _ in range(LAYERS):
            h = nn.LayerNorm(1e-12)(h + nn.MultiHeadDotProductAttention(WIDTH // 64)(h))
            h = nn.LayerNorm(1e-12)(h + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(h), approximate=False)))
        return nn.Dense(CLASSES)(h[:, 0])


@dataclass(frozen=True)
class Flax:
    module: Any
    shape: tuple[int, ...]
    """Of a sample."""
    words: int | None = None
    """How many there are, where samples are texts."""


FLAX = {
    "mlp": Flax(Mlp(), (784,)),
    "cnn-bn": Flax(Cnn(), (28, 28, 1)),
    "lstm": Flax(FlaxLstm(), (28, 28)),
    "resnet18-small": Flax(ResNet(), (32, 32, 3)),
    "bert-mini": Flax(FlaxBert(), (LENGTH,), WORDS),
}


def cnn() -> tnn.Module:
    return tnn.Sequential(
        tnn.Conv2d(1, 16, 3, padding=1, bias=False), tnn.BatchNorm2d(16), tnn.ReLU(), tnn.MaxPool2d(2),
        tnn.Conv2d(16, 32, 3, padding=1, bias=False), tnn.BatchNorm2d(32), tnn.ReLU(), tnn.MaxPool2d(2),
        tnn.Flatten(), tnn.Linear(32 * 7 * 7, CLASSES),
    )  # fmt: skip


def resnet() -> tnn.Module:
    before, blocks = 8, []
    for channels, stride in STAGES:
        blocks += [Block(before, channels, stride), Block(channels, channels, 1)]
        before = channels
    stem = [tnn.Conv2d(3, 8, 3, 1, 1, bias=False), tnn.BatchNorm2d(8), tnn.ReLU()]
    return tnn.Sequential(*stem, *blocks, tnn.AdaptiveAvgPool2d(1), tnn.Flatten(), tnn.Linear(64, CLASSES))


TORCH = {
    "mlp": Network(mlp, lambda: torch.rand(32, 1, 28, 28)),
    "cnn-bn": Network(cnn, lambda: torch.rand(32, 1, 28, 28)),
    "lstm": Network(Lstm, lambda: torch.randint(0, 5000, (32, 24))),
    "resnet18-small": Network(resnet, lambda: torch.rand(32, 3, 32, 32)),
    "bert-mini": Network(lambda: Bert(WORDS, WIDTH, LAYERS, LENGTH), lambda: torch.randint(0, WORDS, (32, LENGTH))),
}
