"""Training steps on ONNX Runtime beside PyTorch's: time and peak memory as ratios, and whether the losses agree.

    python benchmarks/training.py                        every network, SGD and AdamW
    python benchmarks/training.py mlp cnn --seconds 5    some of them, quickly
    python benchmarks/training.py --memory               peak memory of processes of their own, too

Contestants run in one process, in turns, with as many threads each. PyTorch runs eagerly, with the optimizer as it is
by default and with `fused=True`. Before anything is timed, each trains a network of its own for some steps on the
same data from the same start: a contestant whose losses are others is no rival.
"""

import argparse
import contextlib
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import machine
import torch
import torch.nn.functional as F
from models import BertLayer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from onward import training

CLASSES = 10
CHECKED = 10
"""Steps whose losses are compared."""
STEPS_FOR_MEMORY = 8


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

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5000, 64)
        self.rnn = nn.LSTM(64, 128, batch_first=True)
        self.head = nn.Linear(128, CLASSES)

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
}
OPTIMIZERS: dict[str, tuple[Callable[[], object], Callable[..., torch.optim.Optimizer]]] = {
    "sgd": (lambda: training.SGD(lr=1e-2), lambda p, **how: torch.optim.SGD(p, lr=1e-2, **how)),
    "adamw": (lambda: training.AdamW(lr=1e-3), lambda p, **how: torch.optim.AdamW(p, lr=1e-3, **how)),
}
Batch = tuple[Tensor, Tensor]
Step = Callable[[Batch], float]


def made(name: str) -> tuple[nn.Module, list[Batch]]:
    """A network and a few batches, always the same."""
    torch.manual_seed(0)
    net = NETWORKS[name].make()
    data = [NETWORKS[name].data() for _ in range(4)]
    return net, [(x, torch.randint(0, CLASSES, (len(x),))) for x in data]


def export(net: nn.Module, x: Tensor, path: Path) -> None:
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        program = torch.onnx.export(
            copy.deepcopy(net).eval(), (x,), input_names=["x"], output_names=["y"], optimize=False, verbose=False
        )
    assert program is not None
    program.save(path)


def onward_step(path: Path, optimizer: str, threads: int) -> Step:
    trainer = training.Trainer(training.prepare(path, optimizer=OPTIMIZERS[optimizer][0]()), threads=threads)
    return lambda batch: trainer.step({"x": batch[0], "labels": batch[1]})


def torch_step(net: nn.Module, optimizer: str, fused: bool) -> Step:
    net = copy.deepcopy(net).train()
    how = OPTIMIZERS[optimizer][1](net.parameters(), **({"fused": True} if fused else {}))

    def step(batch: Batch) -> float:
        how.zero_grad()
        loss = F.cross_entropy(net(batch[0]), batch[1])
        loss.backward()
        how.step()
        return loss.item()

    return step


def agree(steps: dict[str, Step], data: list[Batch]) -> float:
    """The largest relative difference between losses of contestants and those of the first, over some steps."""
    curves = {name: [step(data[i % len(data)]) for i in range(CHECKED)] for name, step in steps.items()}
    base = curves["torch"]
    return max(abs(a - b) / abs(b) for curve in curves.values() for a, b in zip(curve, base, strict=True))


def in_turns(steps: dict[str, Step], data: list[Batch], seconds: float) -> dict[str, tuple[list[float], list[float]]]:
    """Wall and processor times of each contestant, a few steps at a time, the order rotating."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in steps}
    names = list(steps)
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        for name in names[rounds % len(names) :] + names[: rounds % len(names)]:
            for batch in data:
                wall, processor = time.perf_counter(), time.process_time()
                steps[name](batch)
                times[name][0].append(time.perf_counter() - wall)
                times[name][1].append(time.process_time() - processor)
        rounds += 1
    return times


def measured(name: str, optimizer: str, threads: int, seconds: float, folder: Path) -> list[str]:
    net, data = made(name)
    path = folder / f"{name}.onnx"
    if not path.exists():
        export(net, data[0][0], path)
    steps = {
        "torch": torch_step(net, optimizer, fused=False),
        "fused": torch_step(net, optimizer, fused=True),
        "onward": onward_step(path, optimizer, threads),
    }
    apart = agree(steps, data)
    times = in_turns(steps, data, seconds)

    def ratio(other: str, clock: int) -> str:
        pairs = zip(times["onward"][clock], times[other][clock], strict=True)
        return f"{statistics.median(ours / theirs for ours, theirs in pairs):.2f}"

    each = {who: f"{1000 * statistics.median(walls):.2f}" for who, (walls, _) in times.items()}
    row = [name, optimizer, each["onward"], each["torch"], each["fused"]]
    return [*row, ratio("torch", 0), ratio("fused", 0), ratio("torch", 1), f"{apart:.0e}"]


def peak(name: str, optimizer: str, who: str, threads: int, folder: Path) -> float:
    """Memory that network, data and steps add at most to a process in which everything is imported, in MB."""
    command = [sys.executable, __file__, name, "--one", f"{who}:{optimizer}", "--folder", str(folder)]
    done = subprocess.run([*command, "--threads", str(threads)], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def one(name: str, who: str, optimizer: str, threads: int, folder: Path) -> None:
    """Train in this process, and print how much memory it took at most."""
    import onnxruntime  # noqa: F401

    before = memory("VmRSS")
    net, data = made(name)
    if who == "onward":
        del net
        step = onward_step(folder / f"{name}.onnx", optimizer, threads)
    else:
        step = torch_step(net, optimizer, who == "fused")
    Path("/proc/self/clear_refs").write_text("5")  # the largest size is counted from here
    for i in range(STEPS_FOR_MEMORY):
        step(data[i % len(data)])
    print(memory("VmHWM") - before)


def memory(kind: str) -> float:
    """Of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(NETWORKS))
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), action="append")
    parser.add_argument("--seconds", type=float, default=20, help="for each row")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--memory", action="store_true", help="measure peak memory, too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if unknown := set(args.networks) - NETWORKS.keys():
        parser.error(f"there is no network {unknown.pop()}; there are {', '.join(NETWORKS)}")
    torch.set_num_threads(args.threads)
    if args.one:
        who, _, optimizer = args.one.partition(":")
        return one(args.networks[0], who, optimizer, args.threads, args.folder)

    table = Table(
        "network", "optimizer", "onward ms", "torch ms", "fused ms", "÷ torch", "÷ fused", "÷ torch, CPU time"
    )
    table.add_column("losses apart")
    if args.memory:
        table.add_column("peak ÷ torch")
    with tempfile.TemporaryDirectory(prefix="onward-training-") as scratch:
        for name in args.networks or NETWORKS:
            for optimizer in args.optimizer or OPTIMIZERS:
                row = measured(name, optimizer, args.threads, args.seconds, Path(scratch))
                if args.memory:
                    ours, theirs = (peak(name, optimizer, w, args.threads, Path(scratch)) for w in ("onward", "torch"))
                    row.append(f"{ours / theirs:.2f} ({ours:.0f} / {theirs:.0f} MB)")
                print(" ".join(row), file=sys.stderr)
                table.add_row(*row)
    Console(width=160).print(table)
    print(f"{args.threads} threads · " + machine.describe("onward", "onnxruntime", "torch"))


if __name__ == "__main__":
    main()
