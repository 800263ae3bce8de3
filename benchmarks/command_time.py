"""Time that commands take beyond the import of the framework they need, and what `import onward` loads.

python benchmarks/command_time.py [--rounds N] [--no-tensorflow] [--write]

Each command runs in a process of its own, all in turns, on a model of 43,000 numbers. Processor time is that of the
process and of those that it started: other programs on the machine add little to it, and the best of several rounds
is the one that they disturbed least. --write makes docs/measured/speed-commands.md.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import machine

ROOT = Path(__file__).parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"
PAGE = ROOT / "docs/measured/speed-commands.md"
LIMITS = {"`import onward`": 0.3, "`onward inspect`": 0.7, "`onward convert --to torch`": 0.7}
"""Seconds of processor time that may be taken beyond what is taken off."""
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn", "pandas", "polars", "onnxruntime")
NOTHING, TORCH, TENSORFLOW = "nothing", "`import torch`", "`import tensorflow`"


@dataclass(frozen=True)
class Command:
    """What is run, and what is taken off its time: what any program of that framework pays."""

    title: str
    arguments: Sequence[str]
    beyond: str = NOTHING


def python(code: str) -> list[str]:
    return ["-c", code]


def onward(*words: str) -> list[str]:
    return ["-m", "onward", *words]


def commands(folder: Path, has_tensorflow: bool) -> list[Command]:
    found = [
        Command("`import onward`", python("import onward")),
        Command("`onward --help`", onward("--help")),
        Command("`onward inspect`", onward("inspect", str(DIGITS))),
        Command(TORCH, python("import torch")),
        Command("`onward verify`", onward("verify", str(DIGITS)), TORCH),
        convert("torch", folder / "torch", TORCH),
    ]
    if has_tensorflow:
        found.append(Command(TENSORFLOW, python("import tensorflow; tensorflow.lite, tensorflow.keras.Model")))
        outs = {"tensorflow": "tf", "keras": "digits.keras", "tflite": "digits.tflite"}
        found += [convert(to, folder / out, TENSORFLOW) for to, out in outs.items()]
    return found


def convert(to: str, out: Path, beyond: str) -> Command:
    words = onward("convert", str(DIGITS), "--to", to, "--out", str(out))
    return Command(f"`onward convert --to {to}`", words, beyond)


def timed(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds that processors worked, and that passed. What is imported is compiled already, as pip leaves it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    passed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-tensorflow", action="store_true", help="leave out commands that write TensorFlow's files")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = commands(Path(folder), has_tensorflow=not args.no_tensorflow)
        for one in every:
            timed(one.arguments)  # what is read for the first time is not what is measured
        rounds = [{one.title: timed(one.arguments) for one in every} for _ in range(args.rounds)]
    best = {one.title: tuple(min(times[one.title][i] for times in rounds) for i in (0, 1)) for one in every}
    best[NOTHING] = (0.0, 0.0)
    lines = [
        "| command | processor time | by the clock | beyond | processor time more | by the clock more |",
        "|---|---|---|---|---|---|",
    ]
    for one in every:
        more = [f"{mine - other:.2f}" for mine, other in zip(best[one.title], best[one.beyond], strict=True)]
        cells = [one.title, *(f"{number:.2f}" for number in best[one.title]), one.beyond, *more]
        lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))
    probe = f"import sys, onward; print(*[name for name in {FRAMEWORKS} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout.split()
    print(f"frameworks that `import onward` loads: {', '.join(loaded) or 'none'}")
    if args.write:
        PAGE.write_text(page(lines, args.rounds), encoding="utf-8")
        print(f"wrote {PAGE}")
    beyond = {one.title: one.beyond for one in every}
    slow = [name for name, limit in LIMITS.items() if best[name][0] - best[beyond[name]][0] > limit]
    sys.exit(bool(slow or loaded))


def page(table: Sequence[str], rounds: int) -> str:
    where = machine.describe("onward", "torch", "tensorflow-cpu", "onnx", "onnx-ir", "onnxruntime")
    return "\n".join(
        [
            "# Commands: time beyond the import of a framework",
            "",
            "Made by `benchmarks/command_time.py`, on `examples/digits/digits.onnx`: 43,000 numbers, so that next to",
            "nothing of the time is the model's. Seconds, from the start of the process to its end; `convert` checks",
            f"its result. The best of {rounds} rounds, all commands in turns.",
            "",
            *table,
            "",
            f"{where}. Other programs ran on the machine: only the processor times are what an idle one takes.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
