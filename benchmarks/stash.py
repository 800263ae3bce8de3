"""Training that holds values for the way back as bfloat16, computes them anew, or both: peak memory and time.

    python benchmarks/stash.py                     prints the table
    python benchmarks/stash.py --write             writes it to docs/measured/speed-training.md

Each way trains in a process of its own, on the same weights and batches. Peak memory is the largest resident set of the
process above that behind a step of a tiny network: opening the model counts, what is loaded but once does not. Time is
that of the processor for a step, the median of all but the first. Losses are those of the last step, beside plain ones.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import describe, put
from training_peak import memory

PAGE = Path(__file__).parents[1] / "docs/measured/speed-training.md"
BEGIN, END = "<!-- stash -->", "<!-- /stash -->"
CLASSES = 10
TINY = "tiny"
NETWORKS = {
    "resnet": "ResNet-18, 64 images of 64 × 64: activations take most",
    "mini": "BERT-mini, 32 × 128 words: activations take most",
    "bert": "12 layers of BERT of width 128, 8 × 256 words: activations take most",
    "mlp": "layers of 2048, 16 rows: weights take most",
}
WAYS = {
    "plain": ("as it is", {}),
    "stash": ("`--stash bfloat16`", {"stash": "bfloat16"}),
    "layers": ("`--recompute layers`", {"recompute": "layers"}),
    "both": ("both", {"recompute": "layers", "stash": "bfloat16"}),
}


def made(folder: Path) -> None:
    """Write each network and batches for it."""
    import torch
    from networks import TINY as tiny
    from networks import Bert, resnet18
    from torch import nn

    from training import export

    wide = [part for _ in range(4) for part in (nn.Linear(2048, 2048), nn.ReLU())]
    networks = {
        TINY: (tiny.make, tiny.data),
        "resnet": (resnet18, lambda: torch.rand(64, 3, 64, 64)),
        "mini": (Bert, lambda: torch.randint(0, 30522, (32, 128))),
        "bert": (lambda: Bert(1000, 128, 12, 256), lambda: torch.randint(0, 1000, (8, 256))),
        "mlp": (lambda: nn.Sequential(*wide, nn.Linear(2048, CLASSES)), lambda: torch.rand(16, 2048)),
    }
    for name, (make, data) in networks.items():
        torch.manual_seed(0)
        batches = [data().numpy() for _ in range(2)]
        export(make(), torch.from_numpy(batches[0]), folder / f"{name}.onnx")
        labels = [np.random.default_rng(i).integers(0, CLASSES, len(batch)) for i, batch in enumerate(batches)]
        np.savez(folder / f"{name}.npz", x=np.stack(batches), labels=np.stack(labels))


def trained(name: str, way: str, folder: Path, steps: int, threads: int) -> tuple[list[float], list[float]]:
    """The loss and the processor time of each step."""
    from onward import training

    prepared = training.prepare(folder / f"{name}.onnx", optimizer=training.SGD(lr=1e-2))
    trainer = training.Trainer(prepared, threads=threads, **WAYS[way][1])
    with np.load(folder / f"{name}.npz") as file:
        data = [{"x": x, "labels": labels} for x, labels in zip(file["x"], file["labels"], strict=True)]
    losses, times = [], []
    for i in range(steps):
        begin = time.process_time()
        losses.append(trainer.step(data[i % len(data)]))
        times.append(time.process_time() - begin)
    return losses, times


def worker(name: str, way: str, folder: Path, steps: int, threads: int) -> None:
    trained(TINY, way, folder, 1, threads)
    gc.collect()
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the largest size is counted from here
    losses, times = trained(name, way, folder, steps, threads)
    print(json.dumps({"peak": memory("VmHWM") - before, "loss": losses[-1], "time": float(np.median(times[1:]))}))


def table(found: dict[str, dict[str, dict[str, float]]], steps: int) -> list[str]:
    lines = [
        f"{steps} steps of SGD; {describe('onnxruntime')}.",
        "",
        "| network | way | peak memory | ÷ as it is | processor time | last loss |",
        "|---|---|---|---|---|---|",
    ]
    for name, ways in found.items():
        plain = ways["plain"]
        lines += [
            f"| {NETWORKS[name]} | {WAYS[way][0]} | {each['peak']:.0f} MB | {each['peak'] / plain['peak']:.2f} "
            f"| {each['time'] / plain['time']:.2f} × | {each['loss']:.4f} |"
            for way, each in ways.items()
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--network", choices=list(NETWORKS), action="append", help="only this one")
    parser.add_argument("--worker", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.network[0], args.worker, args.folder, args.steps, args.threads)
        return
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        made(Path(scratch))
        for name in args.network or NETWORKS:
            for way in WAYS:
                command = [sys.executable, __file__, "--worker", way, "--network", name, "--folder", scratch]
                command += ["--steps", str(args.steps), "--threads", str(args.threads)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                found.setdefault(name, {})[way] = json.loads(done.stdout.splitlines()[-1])
                print(name, way, found[name][way], flush=True)
    text = "\n".join(table(found, args.steps))
    print(text)
    if args.write:
        put(PAGE, BEGIN, END, f"{BEGIN}\n{text}\n{END}")


if __name__ == "__main__":
    main()
