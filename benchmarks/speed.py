"""Speed of converted models and of conversion, beside the original modules and two other converters.

    python benchmarks/speed.py forward      eager forward pass, as a ratio to the original PyTorch module
    python benchmarks/speed.py convert      conversion, including the writing of files
    python benchmarks/speed.py scaling      conversion time against the number of nodes, up to 20,000
    python benchmarks/speed.py              all three; with --out FILE the tables are written as Markdown

All contestants of a row run in one process, in turns: a slow moment of the machine hits each alike. The machine
should be idle nevertheless; where it is not, --processor-time is the steadier measure.
"""

import argparse
import contextlib
import gc
import io
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import machine
import models
import peers
import synthetic
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import onward
from onward.backends.torch.convert import generate, write_package

Files = dict[tuple[str, str], Path]
"""The exported networks, by name and exporter."""

CLOCK = time.perf_counter
SAVED = " + torch.save"
CONVERTERS: dict[str, Callable[[Path], nn.Module]] = {
    "onward": onward.to_torch,
    "onnx2torch": peers.onnx2torch,
    "onnx2pytorch": peers.onnx2pytorch,
}


def in_turns(contestants: dict[str, Callable[[], object]], seconds: float, least: int) -> dict[str, list[float]]:
    """Times of each contestant, a round at a time, the order rotating; the first round is not counted."""
    names = list(contestants)
    times: dict[str, list[float]] = {name: [] for name in names}
    start = time.perf_counter()
    rounds = 0
    while rounds <= least or time.perf_counter() - start < seconds:
        for name in names[rounds % len(names) :] + names[: rounds % len(names)]:
            begin = CLOCK()
            contestants[name]()
            if rounds:
                times[name].append(CLOCK() - begin)
        rounds += 1
    return times


def ratio(times: dict[str, list[float]], name: str, base: str) -> str:
    """The median over rounds of `name` divided by `base` in the same round; in brackets, fastest by fastest."""
    median = statistics.median(a / b for a, b in zip(times[name], times[base], strict=True))
    return f"{median:.3f} ({min(times[name]) / min(times[base]):.3f})"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def converted(path: Path, inputs: dict[str, Tensor], expected: Tensor) -> dict[str, nn.Module | str]:
    """The module of each converter, or why it does not count."""
    found: dict[str, nn.Module | str] = {}
    for name, convert in CONVERTERS.items():
        try:
            with quiet(), torch.inference_mode():
                net = convert(path).eval()
                error = (net(*inputs.values()) - expected).abs().max() / expected.abs().max()
            found[name] = net if error < 1e-3 else f"wrong by {error:.0e}"
        except Exception as problem:
            found[name] = f"fails: {type(problem).__name__}"
    return found


def forward(files: Files, batch: int, seconds: float) -> Table:
    table = Table(title=f"Forward pass, eager, batch {batch}: time divided by the original module's")
    _columns(table, 2, "network", "exporter", "original", *CONVERTERS)
    for (name, how), path in files.items():
        original = models.build(name)
        inputs = models.example_inputs(name, batch)
        with torch.inference_mode():
            expected = original(*inputs.values())
        nets = {"original": original, **converted(path, inputs, expected)}
        arguments = tuple(inputs.values())
        runs = {key: partial(net, *arguments) for key, net in nets.items() if isinstance(net, nn.Module)}
        with torch.inference_mode():
            times = in_turns(runs, seconds, least=10)
        cells = [f"{1000 * statistics.median(times['original']):.1f} ms"]
        for key in CONVERTERS:
            cells.append(ratio(times, key, "original") if key in times else str(nets[key]))
        table.add_row(name, how, *cells)
        del nets, runs, original
        gc.collect()
    return table


def convert_and_write(path: Path, folder: Path) -> None:
    write_package(generate(onward.load(path)), folder / "package")


def convert_and_save(convert: Callable[[Path], nn.Module], path: Path, folder: Path) -> None:
    torch.save(convert(path).state_dict(), folder / "peer.pt")


def conversion(files: Files, folder: Path, seconds: float) -> Table:
    table = Table(title="Conversion from the .onnx file, seconds")
    headings = ["onward, files written"]
    headings += [f"{name}{suffix}" for name in peers.NAMES for suffix in ("", SAVED)]
    _columns(table, 2, "network", "exporter", *headings, "onward ÷ fastest peer, both with files written")
    for (name, how), path in files.items():
        runs: dict[str, Callable[[], object]] = {headings[0]: partial(convert_and_write, path, folder)}
        for peer in peers.NAMES:
            runs[peer] = partial(CONVERTERS[peer], path)
            runs[f"{peer}{SAVED}"] = partial(convert_and_save, CONVERTERS[peer], path, folder)
        able: dict[str, Callable[[], object]] = {}
        for key, run in runs.items():
            with contextlib.suppress(Exception), quiet():
                run()
                able[key] = run
        with quiet():
            times = in_turns(able, seconds, least=3)
        medians = {key: statistics.median(values) for key, values in times.items()}
        written = [key for key in medians if key.endswith(SAVED)]
        best = min(written, key=lambda key: medians[key], default=None)
        cells = [f"{medians[key]:.2f}" if key in medians else "fails" for key in headings]
        able_ours = headings[0] in medians and best is not None
        table.add_row(name, how, *cells, ratio(times, headings[0], best) if able_ours else "-")
    return table


def scaling(folder: Path, sizes: list[int]) -> Table:
    table = Table(title="Conversion with files written: microseconds of processor time a node")
    _columns(table, 1, "graph", *(f"{size:,} nodes" for size in sizes), "last ÷ first")
    for kind, make in synthetic.KINDS.items():
        paths = {size: make(size, folder / f"{kind}{size}.onnx") for size in sizes}
        cost: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(2):
            for size, path in paths.items():
                gc.collect()
                begin = time.process_time()
                convert_and_write(path, folder)
                cost[size].append(1e6 * (time.process_time() - begin) / size)
        fastest = [min(cost[size]) for size in sizes]
        table.add_row(kind, *(f"{value:.0f}" for value in fastest), f"{fastest[-1] / fastest[0]:.2f}")
    return table


def _columns(table: Table, left: int, *headings: str) -> None:
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right")


def markdown(table: Table) -> str:
    columns = [list(column.cells) for column in table.columns]
    rows = [[str(column.header) for column in table.columns], ["---"] * len(columns), *zip(*columns, strict=True)]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return f"### {table.title}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="*", default=[], help="forward, convert, scaling; all by default")
    parser.add_argument("--networks", nargs="+", choices=models.NETWORKS, default=list(models.NETWORKS))
    parser.add_argument("--exporters", nargs="+", choices=models.EXPORTERS, default=["default", "torchscript"])
    parser.add_argument("--models", type=Path, help="folder that keeps the exported networks for the next run")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--processor-time", action="store_true", help="instead of time on the wall")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="time for each row")
    parser.add_argument("--sizes", nargs="+", type=int, default=[2500, 5000, 10000, 20000])
    parser.add_argument("--out", type=Path, help="also write the tables to this file, as Markdown")
    args = parser.parse_args()
    what = args.what or ["forward", "convert", "scaling"]

    torch.set_num_threads(args.threads)
    if args.processor_time:
        global CLOCK
        CLOCK = time.process_time
    console = Console()
    tables = []
    with tempfile.TemporaryDirectory(prefix="onward-speed-") as scratch:
        folder = Path(scratch)
        jobs: dict[str, Callable[[], Table]] = {
            "forward": lambda: forward(files, args.batch, args.seconds),
            "convert": lambda: conversion(files, folder, args.seconds),
            "scaling": lambda: scaling(folder, args.sizes),
        }
        files: Files = {}
        if {"forward", "convert"} & set(what):
            home = args.models or folder
            home.mkdir(parents=True, exist_ok=True)
            files = {(name, how): home / f"{name}-{how}.onnx" for name in args.networks for how in args.exporters}
        for (name, how), path in files.items():
            if not path.exists():
                models.export(name, path, how)
        for name in what:
            tables.append(jobs[name]())
            console.print(tables[-1])
    clock = "processor time" if args.processor_time else "time on the wall"
    threads = f"{args.threads} threads; {clock}; medians, in brackets the fastest."
    remarks = [machine.describe("onward", "torch", *peers.NAMES), threads, peers.remark()]
    console.print(*remarks, highlight=False)
    if args.out:
        args.out.write_text("\n".join([*map(markdown, tables), " ".join(remarks)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
