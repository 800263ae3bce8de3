"""Training steps on ONNX Runtime beside PyTorch's: time and peak memory as ratios, and whether the losses agree.

    python benchmarks/training.py                        every network, SGD and AdamW
    python benchmarks/training.py mlp cnn --seconds 5    some of them, quickly
    python benchmarks/training.py --memory               peak memory, too: see training_peak.py for what is counted
    python benchmarks/training.py --memory --seconds 0   that alone
    python benchmarks/training.py --avx2 --write         as on a processor without AVX-512, into docs/measured

Contestants run in one process, in turns, with as many threads each. PyTorch runs eagerly, with the optimizer as it is
by default and with `fused=True`. Before anything is timed, each trains a network of its own for some steps on the
same data from the same start: a contestant whose losses are others is no rival.

`--avx2` holds both sides to AVX2: their libraries find a processor without AVX-512, as held_to_avx2.py says.
"""

import argparse
import contextlib
import copy
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import held_to_avx2
import machine
import numpy as np
import torch
from networks import NETWORKS, Batch, Step, made, stepping
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from training_peak import RATES, WARM, peak

from onward import training

PAGE = Path(__file__).parents[1] / "docs/measured/speed-training.md"
BEGIN, END = "<!-- steps -->", "<!-- /steps -->"
CHECKED = 10
"""Steps whose losses are compared."""
OPTIMIZERS = {name: (partial(getattr(training, kind), lr=rate),) for name, (kind, rate) in RATES.items()}


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
    return stepping(net, *RATES[optimizer], **({"fused": True} if fused else {}))


def agree(steps: dict[str, Step], data: list[Batch]) -> float:
    """The largest relative difference between losses of contestants and those of the first, over some steps."""
    curves = {name: [step(data[i % len(data)]) for i in range(CHECKED)] for name, step in steps.items()}
    base = curves["torch"]
    return max(abs(a - b) / abs(b) for curve in curves.values() for a, b in zip(curve, base, strict=True))


def in_turns(steps: dict[str, Step], data: list[Batch], seconds: float) -> dict[str, tuple[list[float], list[float]]]:
    """Wall and processor times of each contestant, a few steps at a time, the order rotating.

    The first step of a turn does not count: threads of the contestant before may still be waiting for work.
    """
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in steps}
    names = list(steps)
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        for name in names[rounds % len(names) :] + names[: rounds % len(names)]:
            steps[name](data[-1])
            for batch in data:
                wall, processor = time.perf_counter(), time.process_time()
                steps[name](batch)
                times[name][0].append(time.perf_counter() - wall)
                times[name][1].append(time.process_time() - processor)
        rounds += 1
    return times


def written(name: str, folder: Path) -> Path:
    """The model of a network, and its data beside it."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        net, data = made(name)
        export(net, data[0][0], path)
        arrays = [{f"x{i}": x.numpy(), f"labels{i}": labels.numpy()} for i, (x, labels) in enumerate(data)]
        np.savez(folder / f"{name}.npz", **{key: array for each in arrays for key, array in each.items()})
    return path


def measured(name: str, optimizer: str, threads: int, seconds: float, folder: Path) -> list[str]:
    net, data = made(name)
    path = written(name, folder)
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
    ratios = [ratio(other, clock) for clock in (0, 1) for other in ("torch", "fused")]
    return [*row, *ratios, f"{apart:.0e}"]


def peaks(name: str, optimizer: str, threads: int, runs: int, folder: Path) -> list[str]:
    """Memory beside PyTorch's, of the whole process and of this training: medians of some runs."""
    for each in (WARM, name):
        written(each, folder)
    found = {who: [peak(who, name, optimizer, threads, folder) for _ in range(runs)] for who in ("onward", "torch")}
    cells = []
    for kind in (0, 1):
        ours, theirs = (statistics.median(run[kind] for run in found[who]) for who in ("onward", "torch"))
        cells.append(f"{ours / theirs:.2f} ({ours:.0f} / {theirs:.0f} MB)")
    return cells


def page(rows: list[list[str]], threads: int) -> str:
    """The rows as they stand on the page: ratios alone, without the times of this machine."""
    held = ", both sides held to AVX2" if held_to_avx2.is_held() else ""
    lines = [
        f"Threads: {threads}{held}; load {os.getloadavg()[0]:.0f}; "
        f"{machine.describe('onward', 'onnxruntime', 'torch')}.",
        "",
        "| network | optimizer | ÷ eager | ÷ `fused=True` | ÷ eager, CPU | ÷ `fused=True`, CPU | losses apart |",
        "|---|---|---|---|---|---|---|",
        *(f"| {' | '.join([*row[:2], *row[5:10]])} |" for row in rows),
    ]
    return "\n".join([BEGIN, *lines, END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(NETWORKS))
    parser.add_argument("--optimizer", choices=list(RATES), action="append")
    parser.add_argument("--seconds", type=float, default=20, help="for each row; 0: no times")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--memory", type=int, nargs="?", const=3, default=0, metavar="RUNS", help="peak memory, too")
    parser.add_argument("--avx2", action="store_true", help="as on a processor without AVX-512")
    parser.add_argument("--write", action="store_true", help="put the ratios into the page")
    args = parser.parse_args()
    if args.avx2 and not held_to_avx2.is_held():
        sys.exit(held_to_avx2.again(sys.argv))
    if unknown := set(args.networks) - NETWORKS.keys():
        parser.error(f"there is no network {unknown.pop()}; there are {', '.join(NETWORKS)}")
    torch.set_num_threads(args.threads)
    times = ["onward ms", "torch ms", "fused ms", "÷ torch", "÷ fused", "÷ torch, CPU", "÷ fused, CPU", "losses apart"]
    table = Table("network", "optimizer", *(times if args.seconds else ()))
    if args.memory:
        table.add_column("peak of the process ÷ torch")
        table.add_column("of this training ÷ torch")
    if held_to_avx2.is_held() and torch.backends.cpu.get_cpu_capability() != "AVX2":
        parser.error(f"PyTorch is not held: it computes with {torch.backends.cpu.get_cpu_capability()}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="onward-training-") as scratch:
        for name in args.networks or NETWORKS:
            for optimizer in args.optimizer or RATES:
                row = [name, optimizer]
                if args.seconds:
                    row = measured(name, optimizer, args.threads, args.seconds, Path(scratch))
                if args.memory:
                    row += peaks(name, optimizer, args.threads, args.memory, Path(scratch))
                print(" ".join(row), file=sys.stderr)
                table.add_row(*row)
                rows.append(row)
                if args.write:
                    machine.put(PAGE, BEGIN, END, page(rows, args.threads))
    Console(width=160).print(table)
    print(f"{args.threads} threads · " + machine.describe("onward", "onnxruntime", "torch"))


if __name__ == "__main__":
    main()
