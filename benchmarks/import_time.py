"""Time that commands take beyond the import of the framework they need, and what `import onward` loads.

python benchmarks/import_time.py [--rounds N] [--write]

Each command runs in a process of its own, all in turns, on a model of 43,000 numbers. Processor time is that of the
process and of those that it started, which other programs on the machine do not add to. --write puts the table into
docs/measured/commands.md.
"""

import argparse
import resource
import statistics
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
PAGE = ROOT / "docs/measured/commands.md"
BEGIN, END = "<!-- commands -->", "<!-- /commands -->"
LIMIT = 0.3
"""Seconds that `import onward` may take."""
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn", "pandas", "polars", "onnxruntime")


@dataclass(frozen=True)
class Command:
    """What is run, and what is taken off its time: what any program of that framework pays."""

    title: str
    arguments: Sequence[str]
    beyond: str = "`python -c pass`"


def python(code: str) -> list[str]:
    return ["-c", code]


def onward(*words: str) -> list[str]:
    return ["-m", "onward", *words]


def commands(folder: Path) -> list[Command]:
    torch, tensorflow = "`import torch`", "`import tensorflow`"
    found = [
        Command("`python -c pass`", python("pass")),
        Command(torch, python("import torch")),
        Command(tensorflow, python("import tensorflow; tensorflow.lite, tensorflow.keras.Model")),
        Command("`import onward`", python("import onward")),
        Command("`from onward import load`", python("from onward import load")),
        Command("`onward --help`", onward("--help")),
        Command("`onward inspect`", onward("inspect", str(DIGITS))),
        Command("`onward inspect --json`", onward("inspect", str(DIGITS), "--json")),
        Command("`onward verify --on onnxruntime,torch`", onward("verify", str(DIGITS)), torch),
    ]
    for to, base in (("torch", torch), ("tensorflow", tensorflow), ("keras", tensorflow), ("tflite", tensorflow)):
        out = folder / (to if to in ("torch", "tensorflow") else f"digits.{to}")
        words = onward("convert", str(DIGITS), "--to", to, "--out", str(out))
        found.append(Command(f"`onward convert --to {to}`", words, base))
    return found


def timed(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds that passed, and that processors worked."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    passed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = commands(Path(folder))
        for one in every:
            timed(one.arguments)  # what is read for the first time is not what is measured
        rounds = [{one.title: timed(one.arguments) for one in every} for _ in range(args.rounds)]
    lines = [
        "| command | seconds | processor time | beyond | seconds more | processor time more |",
        "|---|---|---|---|---|---|",
    ]
    more: dict[str, float] = {}
    for one in every:
        whole = [statistics.median(times[one.title][i] for times in rounds) for i in (0, 1)]
        beyond = [statistics.median(t[one.title][i] - t[one.beyond][i] for t in rounds) for i in (0, 1)]
        more[one.title] = beyond[1]
        cells = [one.title, *(f"{number:.2f}" for number in whole), one.beyond, *(f"{n:.2f}" for n in beyond)]
        lines.append(f"| {' | '.join(cells)} |")
    where = machine.describe("onward", "torch", "tensorflow-cpu", "onnx", "onnx-ir")
    lines += ["", f"Medians of {args.rounds} rounds, in turns. {where}"]
    print("\n".join(lines))
    probe = f"import sys, onward; print(*[name for name in {FRAMEWORKS} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout.split()
    print(f"frameworks that `import onward` loads: {', '.join(loaded) or 'none'}")
    if args.write:
        machine.put(PAGE, BEGIN, END, "\n".join([BEGIN, *lines, END]))
    sys.exit(more["`import onward`"] >= LIMIT or bool(loaded))


if __name__ == "__main__":
    main()
