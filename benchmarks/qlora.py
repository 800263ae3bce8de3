"""Fine-tuning a decoder of about 100 million parameters: all of it, adapters in float, and adapters beside 4 bits.

    python benchmarks/qlora.py                     prints the table
    python benchmarks/qlora.py --write             writes it to docs/measured/speed-training.md

Each way trains in a process of its own: the same random weights (quantised by ONNX Runtime's tool for the last), the
same batches, one for each step. Peak memory is the largest resident set of the process above that behind a step of a
tiny decoder: opening the model counts, what is loaded but once does not. Time is that of the processor for a step, the
median of all but the first.
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
import onnx
from machine import describe, put
from training_peak import memory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples/language"))

from decoder import decoder, quantised  # noqa: E402

PAGE, BEGIN, END = ROOT / "docs/measured/speed-training.md", "<!-- qlora -->", "<!-- /qlora -->"
WORDS, WIDTH = 16384, 768
LARGE = {"vocabulary": WORDS, "width": WIDTH, "layers": 12, "heads": 12, "shared": 4, "inner": 2048}
ROWS, LENGTH = 2, 128
RANK = 16
WAYS = {
    "full": "all weights",
    "lora": f"adapters of rank {RANK}, float matrices",
    "qlora": f"adapters of rank {RANK}, matrices of 4 bits",
    "recompute": "the same with `--recompute layers`",
}
BITS = ("qlora", "recompute")


def made(folder: Path) -> int:
    """Write both models and a tiny one; gives the number of parameters."""
    large = decoder(**LARGE)
    onnx.save(large, folder / "float.onnx")
    onnx.save(quantised(large), folder / "bits.onnx")
    tiny = decoder(64)
    onnx.save(tiny, folder / "tiny-float.onnx")
    onnx.save(quantised(tiny), folder / "tiny-bits.onnx")
    return sum(int(np.prod(tensor.dims)) for tensor in large.graph.initializer)


def batches(steps: int, words: int) -> list[dict[str, np.ndarray]]:
    """Texts with something to learn: a token is followed by one of four, as a table says."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, words, (words, 4))
    found = []
    for _ in range(steps):
        ids = np.zeros((ROWS, LENGTH), np.int64)
        ids[:, 0] = rng.integers(0, min(words, 256), ROWS)
        for place in range(1, LENGTH):
            ids[:, place] = table[ids[:, place - 1] % 256, rng.integers(0, 4, ROWS)] % 256
        found.append({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    return found


def trained(way: str, file: Path, data: list[dict[str, np.ndarray]], threads: int) -> tuple[list[float], list[float]]:
    """The loss and the processor time of each step."""
    from onward import training

    adapters = None if way == "full" else training.lora(RANK)
    rate = 1e-4 if way == "full" else 2e-3
    trainable = training.prepare(file, "causal_lm", training.AdamW(lr=rate), lora=adapters)
    trainer = training.Trainer(trainable, threads=threads, recompute="layers" if way == "recompute" else None)
    losses, times = [], []
    for batch in data:
        begin = time.process_time()
        losses.append(trainer.step(batch))
        times.append(time.process_time() - begin)
    return losses, times


def worker(way: str, folder: Path, steps: int, threads: int) -> None:
    name = "bits" if way in BITS else "float"
    trained(way, folder / f"tiny-{name}.onnx", batches(1, 64), threads)
    gc.collect()
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the largest size is counted from here
    losses, times = trained(way, folder / f"{name}.onnx", batches(steps, WORDS), threads)
    print(json.dumps({"peak": memory("VmHWM") - before, "losses": losses, "time": float(np.median(times[1:]))}))


def table(found: dict[str, dict], count: int, steps: int) -> list[str]:
    full, plain = found["full"], found["lora"]
    last = {way: float(np.mean(each["losses"][-5:])) for way, each in found.items()}
    lines = [
        f"A decoder of {count / 1e6:.0f} million parameters, {ROWS} × {LENGTH} tokens, {steps} steps of AdamW; "
        f"{describe('onnxruntime')}.",
        "",
        "| what is trained | peak memory | ÷ all weights | last loss | ÷ adapters in float | processor time |",
        "|---|---|---|---|---|---|",
    ]
    for way, title in WAYS.items():
        each = found[way]
        beside = "" if way == "full" else f"{last[way] / last['lora']:.3f}"
        lines.append(
            f"| {title} | {each['peak']:.0f} MB | {each['peak'] / full['peak']:.2f} | {last[way]:.3f} | {beside} "
            f"| {each['time'] / plain['time']:.2f} × |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.folder, args.steps, args.threads)
        return
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        count = made(Path(scratch))
        for way in WAYS:
            command = [sys.executable, __file__, "--worker", way, "--folder", scratch]
            command += ["--steps", str(args.steps), "--threads", str(args.threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[way] = json.loads(done.stdout.splitlines()[-1])
            print(way, found[way], flush=True)
    text = "\n".join(table(found, count, args.steps))
    print(text)
    if args.write:
        put(PAGE, BEGIN, END, f"{BEGIN}\n{text}\n{END}")


if __name__ == "__main__":
    main()
