"""Networks for images, small in width and true in structure, whose layouts have to be right: plain PyTorch."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import models
import torch
import torch.nn.functional as F
from models import _randomize_statistics
from torch import Tensor, nn


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(),
    )


class SqueezeExcite(nn.Module):
    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(width, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        gates = self.expand(F.silu(self.reduce(x.mean((2, 3), keepdim=True))))
        return x * torch.sigmoid(gates)


class MBConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, expand: int, stride: int, kernel: int = 3) -> None:
        super().__init__()
        hidden = inputs * expand
        self.expand = conv(inputs, hidden, 1) if expand > 1 else nn.Identity()
        self.depthwise = conv(hidden, hidden, kernel, stride, groups=hidden)
        self.gate = SqueezeExcite(hidden, max(1, inputs // 4))
        self.project = nn.Sequential(nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.gate(self.depthwise(self.expand(x))))
        return x + y if self.shortcut else y


class EfficientNet(nn.Module):
    """The stages of B0."""

    #           expand, channels, repeats, first stride, kernel
    STAGES = (
        *((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)),
        *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
    )

    def __init__(self) -> None:
        super().__init__()
        blocks: list[nn.Module] = [conv(3, 32, stride=2)]
        width = 32
        for expand, channels, repeats, stride, kernel in self.STAGES:
            for i in range(repeats):
                blocks.append(MBConv(width, channels, expand, stride if i == 0 else 1, kernel))
                width = channels
        self.features = nn.Sequential(*blocks, conv(width, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, image: Tensor) -> Tensor:
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(self.features(image), 1), 1))


class UNet(nn.Module):
    """Four levels, transposed convolutions upwards, one mask out."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        sizes = [width * 2**i for i in range(4)]
        self.down = nn.ModuleList(
            nn.Sequential(conv(a, b), conv(b, b)) for a, b in zip([3, *sizes], sizes, strict=False)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.merge = nn.ModuleList(nn.Sequential(conv(2 * a, a), conv(a, a)) for a in sizes[:-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        levels, x = [], image
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            levels.append(x)
        for up, merge, skip in reversed(list(zip(self.up, self.merge, levels, strict=False))):
            x = merge(torch.cat([skip, up(x)], 1))
        return torch.sigmoid(self.head(x))


class C2f(nn.Module):
    """Split, a chain of residual blocks, and everything concatenated."""

    def __init__(self, inputs: int, outputs: int, blocks: int, shortcut: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.enter = conv(inputs, outputs, 1)
        self.blocks = nn.ModuleList(nn.Sequential(conv(half, half), conv(half, half)) for _ in range(blocks))
        self.leave = conv((2 + blocks) * half, outputs, 1)
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.enter(x).chunk(2, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.shortcut else y)
        return self.leave(torch.cat(parts, 1))


class YOLO(nn.Module):
    """A detector after YOLOv8: pyramid pooling, a feature pyramid up and down, boxes by expected distances."""

    BINS = 16

    def __init__(self, width: int = 16, classes: int = 80) -> None:
        super().__init__()
        a, b, c, d = (width * 2**i for i in range(1, 5))
        self.stem = nn.Sequential(conv(3, width, stride=2), conv(width, a, stride=2), C2f(a, a, 1, True))
        self.p3 = nn.Sequential(conv(a, b, stride=2), C2f(b, b, 2, True))
        self.p4 = nn.Sequential(conv(b, c, stride=2), C2f(c, c, 2, True))
        self.p5 = nn.Sequential(conv(c, d, stride=2), C2f(d, d, 1, True))
        self.pool_in, self.pool_out = conv(d, d // 2, 1), conv(2 * d, d, 1)
        self.up4, self.up3 = C2f(d + c, c, 1, False), C2f(c + b, b, 1, False)
        self.to4, self.down4 = conv(b, b, stride=2), C2f(b + c, c, 1, False)
        self.to5, self.down5 = conv(c, c, stride=2), C2f(c + d, d, 1, False)
        self.boxes = nn.ModuleList(nn.Sequential(conv(w, 64), nn.Conv2d(64, 4 * self.BINS, 1)) for w in (b, c, d))
        self.scores = nn.ModuleList(nn.Sequential(conv(w, 80), nn.Conv2d(80, classes, 1)) for w in (b, c, d))
        self.register_buffer("bins", torch.arange(self.BINS, dtype=torch.float32).view(1, -1, 1, 1))
        self.classes = classes

    def pool(self, x: Tensor) -> Tensor:
        parts = [self.pool_in(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.pool_out(torch.cat(parts, 1))

    def forward(self, image: Tensor) -> Tensor:
        x3 = self.p3(self.stem(image))
        x4 = self.p4(x3)
        x5 = self.pool(self.p5(x4))
        y4 = self.up4(torch.cat([F.interpolate(x5, scale_factor=2.0), x4], 1))
        y3 = self.up3(torch.cat([F.interpolate(y4, scale_factor=2.0), x3], 1))
        z4 = self.down4(torch.cat([self.to4(y3), y4], 1))
        z5 = self.down5(torch.cat([self.to5(z4), x5], 1))
        found = [
            torch.cat([box(z), score(z)], 1).flatten(2)
            for box, score, z in zip(self.boxes, self.scores, (y3, z4, z5), strict=True)
        ]
        boxes, scores = torch.cat(found, 2).split((4 * self.BINS, self.classes), 1)
        batch, _, cells = boxes.shape
        spread = boxes.view(batch, 4, self.BINS, cells).transpose(1, 2).softmax(1)
        distances = (spread * self.bins).sum(1)
        return torch.cat([distances, scores.sigmoid()], 1)


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of an NCHW tensor, as ConvNeXt's stem has it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256), depths: tuple[int, ...] = (2, 2, 4, 2)) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), LayerNorm2d(widths[0])]
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            if i:
                layers += [LayerNorm2d(widths[i - 1]), nn.Conv2d(widths[i - 1], width, 2, 2)]
            layers += [ConvNeXtBlock(width) for _ in range(depth)]
        self.features = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 1000)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.norm(self.features(image).mean((2, 3))))


class ViT(nn.Module):
    """Patches of 16 by a convolution, a class token, and blocks of attention."""

    def __init__(self, width: int = 96, heads: int = 3, layers: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + 14 * 14, width))
        self.blocks = nn.ModuleList(models.GPTBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class ShuffleUnit(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(conv(width // 2, width // 2, 1), conv(width // 2, width // 2, groups=width // 2))

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.branch(b)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class ShuffleNet(nn.Module):
    def __init__(self, width: int = 32, units: int = 4) -> None:
        super().__init__()
        self.stem = conv(3, width, stride=2)
        self.units = nn.Sequential(*(ShuffleUnit(width) for _ in range(units)))
        self.head = nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.units(self.stem(image)).mean((2, 3)))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ResNet-50": models.ResNet50,
    "MobileNetV2": models.MobileNetV2,
    "EfficientNet-B0": EfficientNet,
    "U-Net": UNet,
    "YOLO-like": YOLO,
    "ConvNeXt": ConvNeXt,
    "ViT": ViT,
    "ShuffleNet-like": ShuffleNet,
}


def write(name: str, path: Path, how: str = "default", size: int = 224) -> None:
    """Exports a network with random weights and a dynamic batch."""
    torch.manual_seed(0)
    net = NETWORKS[name]()
    _randomize_statistics(net)
    if name not in models.NETWORKS:
        models.NETWORKS[name] = models.Network(lambda: net, lambda batch: {"image": torch.rand(batch, 3, size, size)})
    models.export(name, path, how, net.eval())
