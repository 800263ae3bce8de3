"""Real SavedModels and Keras files, of many versions, converted to ONNX and compared with their own framework.

python benchmarks/tensorflow_zoo.py                   all of the .csv; writes docs/measured/zoo-from-tensorflow.md
python benchmarks/tensorflow_zoo.py --only fer        only those with `fer` in their name; writes nothing
python benchmarks/tensorflow_zoo.py --peer PYTHON     with tf2onnx beside, which this other Python has
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table
from zoo_fetch import Entry, entries, fetch

import onward
from onward.errors import OnwardError
from onward.formats.saved_model import import_tensorflow

LIST = Path(__file__).with_name("tensorflow_zoo.csv")
PAGE = Path(__file__).parent.parent / "docs/measured/zoo-from-tensorflow.md"
OPSET = 18
"""The newest that tf2onnx writes."""


@dataclass(frozen=True)
class Result:
    entry: Entry
    verdict: str
    nodes: str = ""
    peer: str = ""


def convert(entry: Entry, out: Path) -> None:
    made = (
        onward.from_tensorflow(entry.path, check=False)
        if entry.is_folder
        else onward.from_keras(entry.path, check=False)
    )
    made.save(out)


def compared(out: Path, entry: Entry) -> str:
    """How an ONNX file compares with the model that it was made of."""
    report = onward.verify(out, [entry.path])
    if report.status == "failed" or report.worst is None:
        return "does not run"
    worst = report.worst.metrics.worst
    return f"verified, {worst:.0e}" if report.status == "same" else f"**wrong**, {worst:.0e}"


def tried(entry: Entry, peer: str | None) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "net.onnx"
        try:
            convert(entry, out)
            verdict, nodes = compared(out, entry), counted(out)
        except OnwardError as error:
            verdict, nodes = f"refused: {str(error).removeprefix(f'{entry.path}: ')}", ""
        return Result(entry, verdict, nodes, "" if peer is None else peers(entry, peer, Path(folder) / "peer.onnx"))


def peers(entry: Entry, python: str, out: Path) -> str:
    """What tf2onnx makes of it."""
    if entry.is_folder:
        command = [
            "-m",
            "tf2onnx.convert",
            "--saved-model",
            str(entry.path),
            "--output",
            str(out),
            "--opset",
            str(OPSET),
        ]
    else:
        command = [str(Path(__file__).with_name("tensorflow_zoo_worker.py")), str(entry.path), str(out)]
    done = subprocess.run([python, *command], capture_output=True, text=True, timeout=600)
    if done.returncode or not out.is_file():
        return "fails"
    try:
        return compared(out, entry)
    except OnwardError:
        return "ONNX Runtime does not load it"


def counted(out: Path) -> str:
    """How many nodes there are, and those that say what network it is."""
    kinds = Counter(node.op_type for node in onward.load(out).ir.graph)
    telling = [f"{n} {kind}" for kind in ("Conv", "LSTM", "GRU", "Loop", "If", "Transpose") if (n := kinds[kind])]
    return f"{sum(kinds.values())} ({', '.join(telling)})" if telling else str(sum(kinds.values()))


def page(results: list[Result], peer: bool) -> str:
    good = sum(result.verdict.startswith("verified") for result in results)
    packages = ["tensorflow-cpu", "keras", "tf_keras", "onnxruntime"]
    lines = [
        "# Real SavedModels and Keras files to ONNX",
        "",
        f"**{good} of {len(results)}** models from packages on PyPI, converted and run on ONNX Runtime beside their",
        "own framework; the figure is the worst relative error. Files of Keras 2 that Keras 3 does not open are opened",
        f"by `tf_keras`. {machine.describe(*packages)}. Made by `benchmarks/tensorflow_zoo.py`.",
        "",
        f"| model | kind | nodes | Onward |{' tf2onnx 1.17 |' if peer else ''}",
        f"|---|---|---|---|{'---|' if peer else ''}",
    ]
    for result in results:
        kind = "SavedModel" if result.entry.is_folder else result.entry.path.suffix
        row = [result.entry.name, kind, result.nodes, result.verdict, *([result.peer] if peer else [])]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models with this in their name")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has tf2onnx")
    args = parser.parse_args()
    import_tensorflow()
    wanted = [entry for entry in entries(LIST) if args.only in entry.name]
    failures = fetch(wanted)
    console = Console(stderr=True)
    for name, reason in failures.items():
        console.print(f"[red]{name}:[/] {reason}")
    there = [entry for entry in wanted if entry.name not in failures]
    results = [tried(entry, args.peer) for entry in track(there, "converting", console=console)]
    table = Table("model", "nodes", "Onward", "tf2onnx")
    for result in results:
        table.add_row(result.entry.name, result.nodes, result.verdict, result.peer)
    Console(width=160).print(table)
    if not args.only and not failures:
        PAGE.write_text(page(results, args.peer is not None), encoding="utf-8")
    sys.exit(any(not result.verdict.startswith("verified") for result in results))


if __name__ == "__main__":
    main()
