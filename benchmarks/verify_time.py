"""Time of a verification beside Polygraphy's: one model, ONNX Runtime on both sides, imports done.

python benchmarks/verify_time.py [MODEL] [--networks mobilenetv2 resnet50] [--polygraphy FOLDER]

Polygraphy is run by the entry point of its command line, `polygraphy run MODEL --onnxrt --onnxrt`, in this process,
in turns with `onward verify MODEL --on onnxruntime,onnxruntime`, which compares on several sets of inputs (two sizes
of the batch, and zeros) unless it is given one. It is no dependency of Onward: install it, or point to a folder that
it was installed to with `pip install --target`.
"""

import argparse
import contextlib
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import machine
import models
import numpy as np
from rich.console import Console
from rich.table import Table

from onward.cli import main as onward
from onward.graph.slots import slots
from onward.model import Model, load
from onward.verification.data.sets import make_inputs


def seconds(actions: list[Callable[[], object]], rounds: int) -> list[list[float]]:
    """Times of several actions, in turns; the first round, which imports, is not counted."""
    times: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for kept, run in zip(times, actions, strict=True):
            begin = time.perf_counter()
            run()
            if number:
                kept.append(time.perf_counter() - begin)
    return times


def dynamic(model: Model) -> list[str]:
    return [dim for slot in slots(model.ir) for dim in slot.dims if isinstance(dim, str)]


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

    table = Table("model", "data", "onward", "polygraphy", "onward ÷ polygraphy")
    with tempfile.TemporaryDirectory() as folder:
        paths = list(args.model)
        for name in [] if paths else args.networks:
            paths.append(Path(folder) / f"{name}.onnx")
            models.export(name, paths[-1], "default")
        for path in paths:
            model = load(path)
            given = Path(folder) / f"{path.stem}.npz"
            np.savez(given, **make_inputs(model, dims=dict.fromkeys(dynamic(model), 1)))

            def theirs(path: Path = path) -> object:
                sys.argv = ["polygraphy", "run", str(path), "--onnxrt", "--onnxrt"]
                return polygraphy()

            command = ["verify", str(path), "--on", "onnxruntime,onnxruntime"]
            ours = [partial(onward, command), partial(onward, [*command, "--inputs", str(given)])]
            *mine, other = seconds([quietly(run) for run in (*ours, theirs)], args.rounds)
            for what, times in zip(("as it comes", "one set of inputs, as Polygraphy"), mine, strict=True):
                ratio = statistics.median(a / b for a, b in zip(times, other, strict=True))
                cells = [f"{statistics.median(t):.2f} s" for t in (times, other)]
                table.add_row(path.stem, what, *cells, f"{ratio:.2f}")
    console = Console()
    console.print(table)
    console.print(machine.describe("onward", "onnxruntime"), highlight=False)


if __name__ == "__main__":
    main()
