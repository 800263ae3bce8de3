"""Two workers beside PyTorch's two halves of a batch: is what they are apart rounding, or an error?

    python benchmarks/workers_precision.py            ResNet-18 with and without batch normalisation; only shown
    python benchmarks/workers_precision.py --write    puts the table into docs/measured/speed-training.md

Both train in single precision, and PyTorch in double precision as well: what is rounding is as far from that on both
sides, and an error is not. Each half of a batch is normalised by itself, as DistributedDataParallel has it. Beside it,
how far PyTorch is from itself if its weights start one bit off.
"""

import argparse
import copy
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import machine
import torch
import torch.nn.functional as F
from networks import Batch, made
from torch import nn
from training_peak import RATES
from workers import PAGE, WORKERS, part_of

from onward import training
from training import export

BEGIN, END = "<!-- workers_precision.py begins -->", "<!-- workers_precision.py ends -->"
STEPS = 5
HEADS = ["network", "optimizer", "Onward, PyTorch", "Onward, float64", "PyTorch, float64", "PyTorch, one bit off"]
Curve = list[float]


def plain(net: nn.Module) -> nn.Module:
    """Without batch normalisation."""
    for parent in list(net.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(parent, name, nn.Identity())
    return net


def one_bit_off(net: nn.Module) -> nn.Module:
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for w in net.parameters():
            w.copy_(torch.nextafter(w, w + torch.randint(0, 2, w.shape, generator=draw) * 2 - 1))
    return net


def in_torch(net: nn.Module, optimizer: str, data: list[Batch]) -> Curve:
    """The mean loss of two halves, each by itself."""
    kind, rate = RATES[optimizer]
    how = getattr(torch.optim, kind)(net.train().parameters(), lr=rate)
    dtype = next(net.parameters()).dtype
    losses = []
    for number in range(STEPS):
        halves = [part_of(data[number % len(data)], rank) for rank in range(WORKERS)]
        loss = sum(F.cross_entropy(net(x.to(dtype)), y) for x, y in halves) / WORKERS
        how.zero_grad()
        loss.backward()
        how.step()
        losses.append(loss.item())
    return losses


def in_onward(reduce: Any, file: Path, optimizer: str, data: list[Batch]) -> Curve:
    kind, rate = RATES[optimizer]
    prepared = training.prepare(file, optimizer=getattr(training, kind)(lr=rate))
    trainer = training.Trainer(prepared, threads=1, reduce=reduce)
    halves = [part_of(data[number % len(data)], reduce.rank) for number in range(STEPS)]
    return [trainer.step({"x": x.numpy(), "labels": y.numpy()}) for x, y in halves]


def apart(one: Curve, other: Curve) -> str:
    return f"{max(abs(a / b - 1) for a, b in zip(one, other, strict=True)):.0e}"


def row(title: str, optimizer: str, change: Callable[[nn.Module], nn.Module], scratch: Path) -> list[str]:
    net, data = made("resnet18")
    net = change(net)
    export(net, part_of(data[0], 0)[0], scratch / "net.onnx")
    ours = training.on_workers(partial(in_onward, file=scratch / "net.onnx", optimizer=optimizer, data=data), WORKERS)
    theirs, exact, moved = (
        in_torch(made_of(copy.deepcopy(net)), optimizer, data)
        for made_of in (lambda net: net, nn.Module.double, one_bit_off)
    )
    pairs = ((ours, theirs), (ours, exact), (theirs, exact), (moved, theirs))
    return [title, optimizer, *(apart(*pair) for pair in pairs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    args = parser.parse_args()
    rows = [HEADS, ["---"] * len(HEADS)]
    with tempfile.TemporaryDirectory(prefix="onward-precision-") as scratch:
        for title, change in {"ResNet-18": lambda net: net, "without batch normalisation": plain}.items():
            for optimizer in RATES:
                rows.append(row(title, optimizer, change, Path(scratch)))
                print(" ".join(rows[-1]), flush=True)
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    text = "\n".join([BEGIN, *lines, "", machine.describe("onward", "onnxruntime", "torch"), END])
    if args.write:
        machine.put(PAGE, BEGIN, END, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
