"""Two workers on two cores beside PyTorch's DistributedDataParallel, and beside one worker with the same batches.

    python benchmarks/workers.py                          ResNet-18, SGD and AdamW
    python benchmarks/workers.py cnn --rounds 5           another network, quickly
    python benchmarks/workers.py --write                  puts the section into docs/measured/speed-training.md

All four run in the same two processes, in turns: two workers of Onward, with gradients added up in shared memory; two
of DistributedDataParallel, over gloo; and, in the first process alone, one worker of each, with a thread for each core.
Two workers have a thread each, and a half of each batch. Processor time is that of both processes.
"""

import argparse
import copy
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
import torch.distributed as dist
from networks import NETWORKS, Batch, Step, made, stepping
from torch.nn.parallel import DistributedDataParallel
from training_peak import RATES

from onward import training
from training import export, onward_step

PAGE = Path(__file__).parent.parent / "docs/measured/speed-training.md"
BEGIN, END = "<!-- workers.py begins -->", "<!-- workers.py ends -->"
WORKERS = 2
CHECKED = 5
"""Steps whose losses are compared."""
Times = dict[str, tuple[list[float], list[float]]]


def part_of(batch: Batch, rank: int) -> Batch:
    half = slice(len(batch[0]) * rank // WORKERS, len(batch[0]) * (rank + 1) // WORKERS)
    return batch[0][half], batch[1][half]


def contestants(name: str, optimizer: str, folder: Path, reduce: Any) -> dict[str, tuple[int, Step]]:
    """The threads and the step of each, on a whole batch."""
    net, _ = made(name)
    kind, rate = RATES[optimizer]
    prepared = training.prepare(folder / f"{name}-part.onnx", optimizer=getattr(training, kind)(lr=rate))
    trainer = training.Trainer(prepared, threads=1, reduce=reduce)
    ddp = stepping(DistributedDataParallel(copy.deepcopy(net)), kind, rate)

    def onward_two(batch: Batch) -> float:
        x, labels = part_of(batch, reduce.rank)
        return trainer.step({"x": x, "labels": labels})

    found = {"onward, 2": (1, onward_two), "torch, 2": (1, lambda batch: ddp(part_of(batch, reduce.rank)))}
    if reduce.rank == 0:
        found["onward, 1"] = (WORKERS, onward_step(folder / f"{name}.onnx", optimizer, WORKERS))
        found["torch, 1"] = (WORKERS, stepping(copy.deepcopy(net), kind, rate))
    return {who: found.get(who, (1, lambda batch: 0.0)) for who in ("onward, 2", "torch, 2", "onward, 1", "torch, 1")}


def measured(reduce: Any, name: str, optimizer: str, rounds: int, folder: Path) -> tuple[Times, float]:
    """Wall and processor times of each turn's step, and how far apart the losses of two workers of both are."""
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}-{optimizer}", rank=reduce.rank, world_size=WORKERS
    )
    steps, (_, data) = contestants(name, optimizer, folder, reduce), made(name)
    torch.set_num_threads(1)
    apart = 0.0
    for number in range(CHECKED):
        ours, theirs = (steps[who][1](data[number % len(data)]) for who in ("onward, 2", "torch, 2"))
        mean = np.array([theirs])
        reduce(mean)
        apart = max(apart, abs(ours / (mean[0] / WORKERS) - 1))
    times: Times = {who: ([], []) for who in steps}
    names = list(steps)
    for turn in range(rounds):
        for who in names[turn % len(names) :] + names[: turn % len(names)]:
            threads, step = steps[who]
            torch.set_num_threads(threads)
            step(data[-1])
            reduce(np.zeros(1))  # all begin together
            wall, processor = time.perf_counter(), time.process_time()
            for batch in data:
                step(batch)
            taken = np.array([time.process_time() - processor])
            reduce(taken)
            times[who][0].append((time.perf_counter() - wall) / len(data))
            times[who][1].append(taken[0] / len(data))
    dist.destroy_process_group()
    return times, apart


def row(name: str, optimizer: str, times: Times, apart: float) -> list[str]:
    def ratio(one: str, other: str, clock: int) -> str:
        pairs = zip(times[one][clock], times[other][clock], strict=True)
        return f"{statistics.median(a / b for a, b in pairs):.2f}"

    each = [f"{1000 * statistics.median(walls):.0f}" for walls, _ in times.values()]
    beside = [ratio("onward, 2", "torch, 2", clock) for clock in (0, 1)]
    alone = [ratio(f"{who}, 2", f"{who}, 1", 0) for who in ("onward", "torch")]
    return [name, optimizer, *beside, *alone, *each, f"{apart:.0e}"]


def section(rows: list[list[str]], rounds: int) -> str:
    head = [
        "network", "optimizer", "onward ÷ DDP", "in CPU time", "onward: 2 ÷ 1 worker", "PyTorch: 2 ÷ 1 process",
        "ms: onward, 2", "DDP", "onward, 1", "PyTorch, 1", "losses apart",
    ]  # fmt: skip
    table = [head, ["---"] * len(head), *rows]
    return "\n".join(
        [
            BEGIN,
            "",
            "## Two workers beside DistributedDataParallel",
            "",
            "Two processes with a thread each on two cores, each with a half of the batch, beside one with two threads",
            f"and the whole batch, in turns: medians of {rounds} turns of four steps. Made by `benchmarks/workers.py`.",
            "",
            f"{machine.describe('onward', 'onnxruntime', 'torch')} · load {os.getloadavg()[1]:.0f}",
            "",
            *(f"| {' | '.join(cells)} |" for cells in table),
            "",
            END,
        ]
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", default=["resnet18"], help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help=f"put the section into {PAGE.name}")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="onward-workers-") as scratch:
        for name in args.networks:
            net, data = made(name)
            export(net, data[0][0], Path(scratch) / f"{name}.onnx")
            export(net, part_of(data[0], 0)[0], Path(scratch) / f"{name}-part.onnx")
            for optimizer in RATES:
                work = partial(measured, name=name, optimizer=optimizer, rounds=args.rounds, folder=Path(scratch))
                rows.append(row(name, optimizer, *training.on_workers(work, WORKERS)))
                print(" ".join(rows[-1]), flush=True)
    text = section(rows, args.rounds)
    if args.write:
        machine.put(PAGE, BEGIN, END, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
