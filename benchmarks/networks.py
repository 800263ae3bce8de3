"""The five networks that benchmarks train, with random weights; nothing but PyTorch is needed for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from models import BertLayer
from torch import Tensor, nn

CLASSES = 10


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> nn.Module:
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    blocks = [Block(*size) for size in [*sizes, (512, 512, 1)]]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


class Bert(nn.Module):
    """BERT-mini: 4 layers of width 256, 4 heads; classes by the first word. No dropout, so that losses compare."""

    def __init__(self, vocabulary: int = 30522, width: int = 256, layers: int = 4, words: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(words, width) * 0.02)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, width // 64) for _ in range(layers))
        for layer in self.layers:
            layer.dropout = nn.Identity()
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.words(x) + self.places)
        mask = torch.zeros(1, 1, 1, x.shape[1])
        for layer in self.layers:
            y = layer(y, mask)
        return self.head(y[:, 0])


class Lstm(nn.Module):
    """Words to classes."""

    def __init__(self, units: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(5000, 64)
        self.rnn = nn.LSTM(64, units, batch_first=True)
        self.head = nn.Linear(units, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(self.words(x))[0][:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Linear(128, CLASSES),
    )  # fmt: skip


@dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    data: Callable[[], Tensor]
    """A batch."""


NETWORKS = {
    "mlp": Network(mlp, lambda: torch.rand(64, 1, 28, 28)),
    "cnn": Network(cnn, lambda: torch.rand(64, 1, 28, 28)),
    "resnet18": Network(resnet18, lambda: torch.rand(16, 3, 64, 64)),
    "bert-mini": Network(Bert, lambda: torch.randint(0, 30522, (8, 128))),
    "lstm": Network(Lstm, lambda: torch.randint(0, 5000, (32, 64))),
    "lstm-512": Network(partial(Lstm, 512), lambda: torch.randint(0, 5000, (32, 64))),
}
TINY = Network(lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, CLASSES)), lambda: torch.rand(4, 8))
"""What a process trains to have everything loaded."""
Batch = tuple[Tensor, Tensor]
Step = Callable[[Batch], float]


def made(name: str) -> tuple[nn.Module, list[Batch]]:
    """A network and a few batches, always the same."""
    torch.manual_seed(0)
    network = TINY if name == "tiny" else NETWORKS[name]
    net = network.make()
    data = [network.data() for _ in range(4)]
    return net, [(x, torch.randint(0, CLASSES, (len(x),))) for x in data]


def stepping(net: nn.Module, kind: str, rate: float, **options: bool) -> Step:
    """Makes steps in PyTorch, by an optimizer of `torch.optim`."""
    net.train()
    how = getattr(torch.optim, kind)(net.parameters(), lr=rate, **options)

    def step(batch: Batch) -> float:
        how.zero_grad()
        loss = F.cross_entropy(net(batch[0]), batch[1])
        loss.backward()
        how.step()
        return loss.item()

    return step
