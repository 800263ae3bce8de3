"""Trains a small residual network on scikit-learn's 8x8 digits and exports it to ONNX.

Writes `digits.onnx` and `sample.npz` (a few held-out images with their labels) beside this file:

    python examples/digits/train.py
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

HERE = Path(__file__).parent
REQUIRED_ACCURACY = 0.97


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut; a 1x1 convolution on the shortcut where the shape changes."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class DigitsNet(nn.Module):
    """Images of 1x8x8 with values from 0 to 1, to the logits of the ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.layer1 = nn.Sequential(ResidualBlock(16, 16), ResidualBlock(16, 16))
        self.layer2 = nn.Sequential(ResidualBlock(16, 32, stride=2), ResidualBlock(32, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.layer2(self.layer1(self.stem(image)))
        return self.head(x.mean(dim=(2, 3)))


def load_data(seed: int) -> list[Tensor]:
    """Training images, held-out images, training labels, held-out labels."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    split = train_test_split(images, digits.target, test_size=0.25, random_state=seed, stratify=digits.target)
    return [torch.from_numpy(part) for part in split]


def train(net: nn.Module, images: Tensor, labels: Tensor, epochs: int, batch_size: int = 64) -> None:
    steps = epochs * (len(images) // batch_size)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    net.train()
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(images))[: steps // epochs * batch_size].split(batch_size):
            loss = F.cross_entropy(net(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1:2d}/{epochs}  loss {total / (steps // epochs * batch_size):.4f}")


@torch.inference_mode()
def accuracy(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    net.eval()
    return (net(images).argmax(dim=1) == labels).float().mean().item()


def export(net: nn.Module, path: Path) -> None:
    """One file, any batch size, every BatchNorm and every parameter name as in the `state_dict`.

    `optimize=False` because the exporter's optimizer folds each BatchNorm into the convolution before it.
    The stack traces that the exporter records on each node hold local paths, and are left out.
    """
    program = torch.onnx.export(
        net.eval(),
        (torch.rand(2, 1, 8, 8),),
        dynamo=True,
        optimize=False,
        input_names=["image"],
        output_names=["logits"],
        dynamic_shapes={"image": {0: torch.export.Dim("batch")}},
        verbose=False,
    )
    assert program is not None
    for node in program.model.graph:
        node.metadata_props.pop("pkg.torch.onnx.stack_trace", None)
    program.save(path, external_data=False)
    onnx.checker.check_model(path, full_check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE, help="folder for digits.onnx and sample.npz")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    train_images, test_images, train_labels, test_labels = load_data(args.seed)
    net = DigitsNet()
    train(net, train_images, train_labels, args.epochs)
    score = accuracy(net, test_images, test_labels)
    print(f"held-out accuracy {score:.2%} on {len(test_images)} images")
    if score < REQUIRED_ACCURACY:
        sys.exit(f"below {REQUIRED_ACCURACY:.0%}: nothing written")

    args.out.mkdir(parents=True, exist_ok=True)
    export(net, args.out / "digits.onnx")
    np.savez_compressed(args.out / "sample.npz", image=test_images[:32].numpy(), label=test_labels[:32].numpy())
    print(f"wrote {args.out / 'digits.onnx'} ({(args.out / 'digits.onnx').stat().st_size / 1000:.0f} KB)")


if __name__ == "__main__":
    main()
