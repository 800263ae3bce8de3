"""`onward run`: every row of a table through a model, in batches."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onward.cli.plugins import add_plugins
from onward.cli.trust import add_trust
from onward.errors import OnwardError

BATCH = 4096
EXAMPLES = """examples:
  onward run all.onnx --data table.parquet --out scored.parquet --keep id     data processing and model in one file
  onward run model.onnx --data rows.csv --column features=a,b,c --out scored.csv
  onward run model.onnx --data images.npz --outputs logits --out scored.npz
  onward run all.onnx --data parts/ --out scored.parquet --on ray://head:10001 --workers 8

exit codes: 0 every row is scored, 2 bad input, a row that fails, or rows that depend on one another (nothing is
written)"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "run",
        help="run a model on every row of a table, in batches",
        description="Run a model on every row of a file, in batches and bounded memory. The results have as many rows,"
        " in the same order, and are written as a whole or not at all.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", help="the .onnx file; a model of another framework is converted first")
    command.add_argument(
        "--data",
        required=True,
        metavar="PATH",
        help="read the rows from a .parquet, .csv, .feather, .npz or .npy file, or a folder of .parquet files",
    )
    command.add_argument(
        "--out", required=True, metavar="FILE", help="the .parquet, .csv, .feather or .npz file to write"
    )
    command.add_argument(
        "--batch", type=int, default=BATCH, metavar="N", help=f"run the model on N rows at once (default: {BATCH})"
    )
    command.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="INPUT=A,B,…",
        help="feed an input with these columns side by side (repeatable; default: the column of its name)",
    )
    command.add_argument("--keep", default="", metavar="A,B,…", help="copy these columns of the data to the results")
    command.add_argument("--outputs", default="", metavar="A,B,…", help="write only these outputs (default: all)")
    command.add_argument(
        "--mixed", action="store_true", help="score a model whose results depend on the rows that share a batch, too"
    )
    command.add_argument(
        "--threads", type=int, default=0, help="limit the threads of ONNX Runtime (default: all cores)"
    )
    command.add_argument("--force", action="store_true", help="write over a file that is there")
    command.add_argument("--quiet", action="store_true", help="hide the progress bar")
    add_trust(command)
    add_plugins(command)
    cluster = command.add_argument_group("Ray cluster")
    cluster.add_argument(
        "--on",
        metavar="PLACE",
        help="score on a Ray cluster: ray (one that runs on this machine, else a new one), ray://local (a new one), or"
        " ray://HOST:PORT, whose machines have the data under the same path",
    )
    cluster.add_argument(
        "--workers", type=int, metavar="N", help="score in N processes of it (default: one for each processor)"
    )
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from onward.scoring.score import score

    began = time.perf_counter()
    with progress(args.quiet) as told:
        rows = score(
            args.model,
            args.data,
            args.out,
            batch=args.batch,
            column=columns(args.column),
            keep=args.keep,
            outputs=args.outputs,
            mixed=args.mixed,
            on=args.on,
            workers=args.workers,
            threads=args.threads,
            force=args.force,
            told=told,
        )
    seconds = time.perf_counter() - began
    print(f"{args.out}: {rows:,} rows in {seconds:.1f} s")
    return 0


def columns(pairs: list[str]) -> dict[str, str]:
    """`features=a,b` as {"features": "a,b"}."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, rest = pair.partition("=")
        if not name or not equals or not rest.strip(", "):
            raise OnwardError(f"--column {pair}: write it as INPUT=A,B,…")
        if name in found:
            raise OnwardError(f"--column: {name} is given twice")
        found[name] = rest
    return found


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """A bar of the rows that are done, where there is a terminal to draw it on."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (
        TextColumn("{task.completed:,} rows"),
        BarColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    began = time.perf_counter()
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, speed="")

        def told(done: int, total: int | None) -> None:
            speed = f"{done / max(time.perf_counter() - began, 1e-9):,.0f} a second"
            bar.update(task, completed=done, total=total, speed=speed)

        yield told
