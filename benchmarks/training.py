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
from pathlib import Path

import machine
import torch
import torch.nn.functional as F
from networks import NETWORKS, Batch, made
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from onward import training

CHECKED = 10
"""Steps whose losses are compared."""
STEPS_FOR_MEMORY = 8


OPTIMIZERS: dict[str, tuple[Callable[[], object], Callable[..., torch.optim.Optimizer]]] = {
    "sgd": (lambda: training.SGD(lr=1e-2), lambda p, **how: torch.optim.SGD(p, lr=1e-2, **how)),
    "adamw": (lambda: training.AdamW(lr=1e-3), lambda p, **how: torch.optim.AdamW(p, lr=1e-3, **how)),
}
Step = Callable[[Batch], float]


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
    net.train()
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
        "torch": torch_step(copy.deepcopy(net), optimizer, fused=False),
        "fused": torch_step(copy.deepcopy(net), optimizer, fused=True),
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
    import_everything()
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


def import_everything() -> None:
    """What either contestant imports when it is first used."""
    import onnxruntime  # noqa: F401

    from onward.training import trainer, vjp  # noqa: F401

    vjp.load_rules()
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1e-2)


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
