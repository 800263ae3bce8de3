"""Loss curves of 200 steps on ONNX Runtime beside PyTorch's, and how far rounding alone takes PyTorch from itself.

    python benchmarks/curves.py                      all networks; writes to docs/measured/curves.md
    python benchmarks/curves.py mlp --results f.json some of them; the table has all rows that the file of results keeps

Every contestant starts from the same weights and sees the same batches, each of them once. Compared are Onward in
float32, PyTorch in float32, PyTorch in float32 from weights that are off by one in the last of their bits, and PyTorch
in float64: the same formulas almost without rounding. Where PyTorch's own two float32 curves part, no third one can
stay with both.
"""

import argparse
import copy
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import machine
import torch
from networks import CLASSES, NETWORKS, Batch, Network
from torch import Tensor, nn

from onward import training
from training import OPTIMIZERS, Step, export, torch_step

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- curves: written by benchmarks/curves.py -->", "<!-- end of curves -->"
STEPS, FIRST, HELD_OUT = 200, 50, 16
"""Steps of a curve, steps that are compared one by one, and batches that accuracy is measured on."""
SIGNAL = 0.3
"""How much of the data depends on the class."""
Curve = tuple[list[float], float]
"""Losses, and the accuracy in the end."""


def labelled(network: Network, count: int) -> list[Batch]:
    """Batches of classes that can be told apart: by a picture that is mixed in, or by words that are theirs."""
    inputs = [network.data() for _ in range(count)]
    classes = [torch.randint(0, CLASSES, (len(x),)) for x in inputs]
    if inputs[0].is_floating_point():
        pictures = torch.rand(CLASSES, *inputs[0].shape[1:])
        return [(x + SIGNAL * (pictures[y] - x), y) for x, y in zip(inputs, classes, strict=True)]
    own = torch.randint(0, int(inputs[0].max()), (CLASSES, inputs[0].shape[1]))
    return [(torch.where(torch.rand(x.shape) < SIGNAL, own[y], x), y) for x, y in zip(inputs, classes, strict=True)]


def accuracy(predict: Callable[[Tensor], Tensor], data: list[Batch]) -> float:
    return float(torch.cat([predict(x).argmax(1) == y for x, y in data]).float().mean())


def onward_curve(path: Path, optimizer: str, data: list[Batch], held_out: list[Batch], threads: int) -> Curve:
    trainer = training.Trainer(training.prepare(path, optimizer=OPTIMIZERS[optimizer][0]()), threads=threads)
    losses = [trainer.step({"x": x, "labels": y}) for x, y in data]
    parts = [trainer.evaluate({"x": x.numpy(), "labels": y.numpy()}) for x, y in held_out]
    return losses, sum(part["accuracy"] for part in parts) / len(parts)


def torch_curve(net: nn.Module, optimizer: str, data: list[Batch], held_out: list[Batch]) -> Curve:
    dtype = next(net.parameters()).dtype

    def typed(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() else x

    step: Step = torch_step(net, optimizer, fused=False)
    losses = [step((typed(x), y)) for x, y in data]
    net.eval()
    with torch.no_grad():
        return losses, accuracy(lambda x: net(typed(x)), held_out)


def moved(net: nn.Module) -> nn.Module:
    """A copy with every weight one bit away, up or down by chance."""
    made = copy.deepcopy(net)
    with torch.no_grad():
        for weight in made.parameters():
            weight.copy_(torch.nextafter(weight, weight + torch.randint(0, 2, weight.shape) * 2 - 1))
    return made


def in_double(net: nn.Module) -> nn.Module:
    """A network of doubles; tensors that it makes itself are doubles, too."""
    torch.set_default_dtype(torch.float64)
    return copy.deepcopy(net).double()


def apart(a: Curve, b: Curve) -> float:
    """The largest relative difference of losses over the first steps."""
    return max(abs(x - y) / abs(y) for x, y in zip(a[0][:FIRST], b[0][:FIRST], strict=True))


def first_beyond(a: Curve, b: Curve, limit: float = 1e-4) -> int | None:
    """The step at which losses are further apart than the limit."""
    pairs = zip(a[0], b[0], strict=False)
    return next((number for number, (x, y) in enumerate(pairs, 1) if abs(x - y) / abs(y) > limit), None)


def measured(name: str, optimizer: str, steps: int, threads: int, folder: Path) -> dict[str, object]:
    torch.manual_seed(0)
    net = NETWORKS[name].make()
    every = labelled(NETWORKS[name], STEPS + HELD_OUT)
    data, held_out = every[:steps], every[STEPS:]
    path = folder / f"{name}.onnx"
    if not path.exists():
        export(net, data[0][0], path)
    ours = onward_curve(path, optimizer, data, held_out, threads)
    theirs = torch_curve(copy.deepcopy(net), optimizer, data, held_out)
    other = torch_curve(moved(net), optimizer, data[:FIRST], held_out[:1])
    try:
        exact = torch_curve(in_double(net), optimizer, data[:FIRST], held_out[:1])
    finally:
        torch.set_default_dtype(torch.float32)
    return {
        "network": name,
        "optimizer": optimizer,
        "steps": steps,
        "ours-torch32": apart(ours, theirs),
        "torch32-torch32": apart(other, theirs),
        "torch32-torch64": apart(theirs, exact),
        "ours-torch64": apart(ours, exact),
        "beyond": first_beyond(ours, theirs),
        "losses": [ours[0][0], ours[0][-1], theirs[0][-1]],
        "accuracy": [ours[1], theirs[1]],
    }


def table(rows: list[dict[str, object]], threads: int) -> str:
    lines = [
        BEGIN,
        "| network | optimizer | Onward, PyTorch | PyTorch, one bit off | PyTorch, in float64 | "
        "Onward, PyTorch in float64 | apart by 1e-4 from step | accuracy: Onward, PyTorch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        keys = ("ours-torch32", "torch32-torch32", "torch32-torch64", "ours-torch64")
        own, theirs = row["accuracy"]  # type: ignore[misc]
        cells = [row["network"], row["optimizer"], *(f"{row[key]:.0e}" for key in keys)]
        short = "" if row["steps"] == STEPS else f" after {row['steps']} steps"
        cells += [row["beyond"] or "never", f"{own:.1%}, {theirs:.1%}{short}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, "", f"{threads} threads · {machine.describe('onward', 'onnxruntime', 'torch')}", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(NETWORKS))
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), action="append")
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer, for a quick look; at least 50")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=Path, help="a file that keeps rows measured one after another")
    args = parser.parse_args()
    if unknown := set(args.networks) - NETWORKS.keys():
        parser.error(f"there is no network {unknown.pop()}; there are {', '.join(NETWORKS)}")
    torch.set_num_threads(args.threads)
    rows: list[dict[str, object]] = []
    if args.results and args.results.exists():
        rows = json.loads(args.results.read_text())
    with tempfile.TemporaryDirectory(prefix="onward-curves-") as folder:
        for name in args.networks or NETWORKS:
            for optimizer in args.optimizer or OPTIMIZERS:
                rows = [row for row in rows if (row["network"], row["optimizer"]) != (name, optimizer)]
                rows.append(measured(name, optimizer, args.steps, args.threads, Path(folder)))
                print(rows[-1], file=sys.stderr, flush=True)
                if args.results:
                    args.results.write_text(json.dumps(rows))
    order = [(name, optimizer) for name in NETWORKS for optimizer in OPTIMIZERS]
    rows.sort(key=lambda row: order.index((str(row["network"]), str(row["optimizer"]))))
    text = table(rows, args.threads)
    print(text)
    if args.results or len(rows) == len(order):
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
