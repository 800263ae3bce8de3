"""Time of a verification beside Polygraphy's: one model, ONNX Runtime on both sides, imports done.

python benchmarks/verify_time.py [MODEL] [--networks mobilenetv2 resnet50] [--polygraphy FOLDER]

Polygraphy is run by the entry point of its command line, `polygraphy run MODEL --onnxrt --onnxrt`, in this process, in
turns with `onward verify MODEL --on onnxruntime,onnxruntime`. It is no dependency of Onward: install it, or point to a
folder that it was installed to with `pip install --target`.
"""

import argparse
import contextlib
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import machine
import models
from rich.console import Console
from rich.table import Table

from onward.cli import main as onward


def seconds(action: Callable[[], object], rounds: int, others: list[Callable[[], object]]) -> list[list[float]]:
    """Times of several actions, in turns; the first round, which imports, is not counted."""
    actions = [action, *others]
    times: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for kept, run in zip(times, actions, strict=True):
            begin = time.perf_counter()
            run()
            if number:
                kept.append(time.perf_counter() - begin)
    return times


def quietly(run: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                code = run()
            except SystemExit as stop:
                code = stop.code
        if code:
            raise RuntimeError(f"ended with {code}")

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="*", type=Path)
    parser.add_argument("--networks", nargs="+", choices=models.NETWORKS, default=["mobilenetv2"])
    parser.add_argument("--polygraphy", type=Path, help="folder that it was installed to")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if args.polygraphy:
        sys.path.append(str(args.polygraphy))
    from polygraphy.tools import main as polygraphy

    table = Table("model", "onward", "polygraphy", "onward ÷ polygraphy")
    with tempfile.TemporaryDirectory() as folder:
        paths = list(args.model)
        for name in [] if paths else args.networks:
            paths.append(Path(folder) / f"{name}.onnx")
            models.export(name, paths[-1], "default")
        for path in paths:
            ours = quietly(lambda path=path: onward(["verify", str(path), "--on", "onnxruntime,onnxruntime"]))

            def theirs(path: Path = path) -> object:
                sys.argv = ["polygraphy", "run", str(path), "--onnxrt", "--onnxrt"]
                return polygraphy()

            mine, other = seconds(ours, args.rounds, [quietly(theirs)])
            ratio = statistics.median(a / b for a, b in zip(mine, other, strict=True))
            table.add_row(
                path.stem, f"{statistics.median(mine):.2f} s", f"{statistics.median(other):.2f} s", f"{ratio:.2f}"
            )
    console = Console()
    console.print(table)
    console.print(machine.describe("onward", "onnxruntime"), highlight=False)


if __name__ == "__main__":
    main()
