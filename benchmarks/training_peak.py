"""Peak memory of training, in a process of its own for each contestant; `training.py --memory` asks for it.

    python training_peak.py onward resnet18 adamw --folder models --threads 2

Both contestants do the same: import what they need (PyTorch's process has no Onward in it, Onward's no PyTorch), make
one step of a tiny network, then build or load the network, and make steps on batches from the same file. Two numbers
are printed, in MB, both of what the process really holds (its resident set, weights, gradients, optimizer state, data,
code and all the rest included):

- the largest size of the whole process: what a machine has to have;
- how far that is above the size behind the tiny step: what this training takes. Opening the model, which Onward does
  while it trains, counts; what is loaded but once, by the first import or by the first step of any network, does not.
"""

import argparse
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 8
RATES = {"sgd": ("SGD", 1e-2), "adamw": ("AdamW", 1e-3)}
"""What optimizers are called in PyTorch and here, and the learning rate."""
WARM = "tiny"
"""The network that is trained first."""
Arrays = dict[str, Any]
Start = Callable[[str], Callable[[Arrays], object]]
"""Gives what makes a step of a network on a batch."""


def peak(who: str, name: str, optimizer: str, threads: int, folder: Path) -> tuple[float, float]:
    """Of the whole process, and of this training, in MB. The folder has a model and data of each network."""
    command = [sys.executable, __file__, who, name, optimizer, "--folder", str(folder), "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    whole, added = done.stdout.split()[-2:]
    return float(whole), float(added)


def onward_start(optimizer: str, threads: int, folder: Path) -> Start:
    from onward import training

    kind, rate = RATES[optimizer]

    def start(name: str) -> Callable[[Arrays], object]:
        made = training.prepare(folder / f"{name}.onnx", optimizer=getattr(training, kind)(lr=rate))
        return training.Trainer(made, threads=threads).step

    return start


def torch_start(optimizer: str, threads: int) -> Start:
    import torch
    from networks import made, stepping

    torch.set_num_threads(threads)

    def start(name: str) -> Callable[[Arrays], object]:
        step = stepping(made(name)[0], *RATES[optimizer])
        return lambda batch: step((torch.from_numpy(batch["x"]), torch.from_numpy(batch["labels"])))

    return start


def trained(start: Start, name: str, folder: Path, steps: int) -> None:
    with np.load(folder / f"{name}.npz") as file:
        data = [{key: file[f"{key}{i}"] for key in ("x", "labels")} for i in range(len(file.files) // 2)]
    step = start(name)
    for i in range(steps):
        step(data[i % len(data)])


def memory(kind: str) -> float:
    """Of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("who", choices=["onward", "torch"])
    parser.add_argument("network")
    parser.add_argument("optimizer", choices=list(RATES))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    if args.who == "onward":
        start = onward_start(args.optimizer, args.threads, args.folder)
    else:
        start = torch_start(args.optimizer, args.threads)
    trained(start, WARM, args.folder, steps=1)
    gc.collect()
    before, highest = memory("VmRSS"), memory("VmHWM")
    Path("/proc/self/clear_refs").write_text("5")  # the largest size is counted from here
    trained(start, args.network, args.folder, STEPS)
    after = memory("VmHWM")
    print(max(highest, after), after - before)


if __name__ == "__main__":
    main()
