"""Training beside onnxruntime-training 1.19.2, the one tool that trained from ONNX files, in an environment of its own.

    python -m venv ort && ort/bin/pip install onnxruntime-training-cpu==1.19.2 onnx==1.16.2 "numpy<2" torch
    python benchmarks/ort_training.py --python ort/bin/python   everything; writes docs/measured/speed-training.md
    python benchmarks/ort_training.py --python ort/bin/python --only steps mlp cnn --results rival.json    some rows

It needs other versions than Onward, so both are compared by their ratio to PyTorch, which runs in turns with each in
its own environment: the same networks, the same data, as many threads. The real models are given to it with constants
made initializers, and with the names of what Onward trains in them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import machine
import onnx_ir as ir
import torch
from networks import NETWORKS, Bert
from onnx_ir.passes import common
from rich.console import Console
from rich.table import Table
from zoo_files import entries, files

import onward
from onward import training
from onward.errors import OnwardError
from onward.model import Model
from onward.zoo.trainings import objectives
from training import OPTIMIZERS, measured

PAGE = Path(__file__).parent.parent / "docs/measured/speed-training.md"
WORKERS = "<!-- workers.py begins -->"
"""What follows on the page is written by that script."""
WORKER = Path(__file__).with_name("ort_worker.py")
TIMEOUT = 1200
ROUNDS = 3
QUANTISED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"}


@dataclass
class Found:
    """What is known so far; a part that was not asked for is empty."""

    versions: dict[str, str] = field(default_factory=dict)
    steps: list[list[str]] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    """Model to why no training graph was generated; '' if one was."""
    ours: int = 0
    prepare: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Tool to seconds, of the clock and of the processor."""


class Rival:
    def __init__(self, python: str) -> None:
        self.python = python

    def __call__(self, *command: str) -> dict[str, Any]:
        """The answer of the worker, or what it said at last."""
        environment = os.environ | {"PYTHONPATH": str(WORKER.parent)}
        done = subprocess.run(
            [self.python, str(WORKER), *command], capture_output=True, text=True, timeout=TIMEOUT, env=environment
        )
        if done.returncode:
            raise OnwardError(reason(done.stderr) or f"the process ended with {done.returncode}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer


def reason(text: str) -> str:
    """The last line of a traceback that says something."""
    lines = [line.strip() for line in text.splitlines() if "Error" in line and "[I:" not in line]
    return lines[-1] if lines else ""


def steps(rival: Rival, networks: Sequence[str], threads: int, seconds: float) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory(prefix="onward-rival-") as folder:
        for name in networks:
            for optimizer in OPTIMIZERS:
                *_, wall, _, processor, apart = measured(name, optimizer, threads, seconds, Path(folder))
                try:
                    theirs = rival("steps", name, optimizer, str(threads), str(seconds))
                    other = [f"{theirs['wall']:.2f}", f"{theirs['cpu']:.2f}", f"{theirs['apart']:.0e}"]
                except (OnwardError, subprocess.TimeoutExpired) as error:
                    other = ["fails", "fails", " ".join(str(error).split())]
                row = [name, optimizer, wall, other[0], processor, other[1], apart, other[2]]
                print(*row, file=sys.stderr, flush=True)
                yield row


def lifted(model: Model) -> Model:
    """With constants as initializers, which is what it trains."""
    graph = model.ir.clone()
    common.LiftConstantsToInitializersPass(size_limit=2)(graph)
    return Model(graph, [], None, model.ir_version)


def zoo(rival: Rival, found: Found) -> None:
    """Only models that Onward trains are tried, by the same output and weights."""
    chosen = [(name, path) for name, path in files(entries()) if not is_quantised(onward.load(path))]
    with tempfile.TemporaryDirectory(prefix="onward-rival-") as folder:
        jobs = []
        for number, (name, file) in enumerate(chosen):
            prepared = trainable(file)
            if prepared is not None:
                path = Path(folder) / f"{number}.onnx"
                lifted(onward.load(file)).save(path)
                jobs.append([name, str(path), *prepared])
        (Path(folder) / "jobs.json").write_text(json.dumps(jobs))
        found.ours = len(jobs)
        answers = rival("zoo", str(Path(folder) / "jobs.json"))
    found.models = {name: shortened(why) for name, why in answers.items()}


def is_quantised(model: Model) -> bool:
    """Whether a part of it computes with, or is stored as, small integers."""
    small = (ir.DataType.INT8, ir.DataType.UINT8)
    held = [value for value in model.ir.graph.initializers.values() if value.const_value is not None]
    stored = any(value.dtype in small and value.const_value.size > 256 for value in held)
    return stored or any(node.op_type in QUANTISED for node in model.ir.graph.all_nodes())


def shortened(why: str) -> str:
    """The end of a message, which says what is wrong; before it comes where in its source that was found."""
    return why if len(why) <= 200 else "…" + why[-199:]


def trainable(path: Path) -> tuple[str, list[str]] | None:
    """The output and the weights that Onward trains by it; None if no weight can be."""
    for objective in objectives(onward.load(path)):
        try:
            made = training.prepare(path, "mse", output=objective.output)
            return objective.output, list(made.parameters)
        except OnwardError:
            continue
    return None


def bert(path: Path) -> None:
    """BERT-base of 110 M parameters, at the opset that onnxruntime-training takes."""
    torch.manual_seed(0)
    net = Bert(30522, 768, 12, 128)
    x = torch.randint(0, 30522, (8, 128))
    torch.onnx.export(
        net, (x,), str(path), input_names=["x"], output_names=["y"], dynamo=False, opset_version=14,
        training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
    )  # fmt: skip


def prepare(rival: Rival) -> dict[str, tuple[float, float]]:
    times: dict[str, list[tuple[float, float]]] = {"onward": [], "saved": [], "onnxruntime-training": []}
    with tempfile.TemporaryDirectory(prefix="onward-rival-") as folder:
        path = Path(folder) / "bert.onnx"
        bert(path)
        for _ in range(ROUNDS):
            began, used = time.perf_counter(), time.process_time()
            made = training.prepare(path)
            times["onward"].append((time.perf_counter() - began, time.process_time() - used))
            made.save(Path(folder) / "trainable.onnx")
            times["saved"].append((time.perf_counter() - began, time.process_time() - used))
            theirs = rival("prepare", str(path), json.dumps(list(made.parameters)))
            del made
            times["onnxruntime-training"].append((theirs["wall"], theirs["cpu"]))
    return {who: tuple(map(statistics.median, zip(*each, strict=True))) for who, each in times.items()}  # type: ignore[misc]


STEPS = "## Time per step ÷ PyTorch eager"
HEADINGS = ["network", "optimizer", "onward", "ort-training", "onward, CPU", "ort-training, CPU", "apart", "its apart"]


def page(found: Found, threads: int) -> str:
    versions = " · ".join(f"{name} {version}" for name, version in found.versions.items())
    good = [name for name, why in found.models.items() if not why]
    lines = [
        "# Training beside onnxruntime-training",
        "",
        *(__doc__ or "").split("\n\n")[-1].splitlines(),
        "Made by `benchmarks/ort_training.py`.",
        "",
        machine.describe("onward", "onnxruntime", "torch") + f" · the other environment: {versions}",
        "",
        *(step_lines(found, threads) if found.steps else [STEPS]),
        "## Real models made trainable",
        "",
        f"Of the float models of `zoo.csv` that have weights to train, `prepare` takes **{found.ours}**, and",
        f"`generate_artifacts` **{len(good)}**. What stops it elsewhere:",
        "",
        *(f"- `{name}`: {why}" for name, why in found.models.items() if why),
        "",
        "## Preparing a BERT of 110 M parameters",
        "",
        f"Medians of {ROUNDS} rounds in turns.",
        "",
        "| | seconds | of processor time |",
        "|---|---|---|",
        *(f"| {_words(who)} | {wall:.1f} | {cpu:.1f} |" for who, (wall, cpu) in found.prepare.items()),
    ]
    return "\n".join(lines) + "\n"


def step_lines(found: Found, threads: int) -> list[str]:
    """Ends in a line with nothing on it, before the next heading."""
    versions = " · ".join(f"{name} {version}" for name, version in found.versions.items())
    where = f"{machine.describe('onward', 'onnxruntime', 'torch')} · load {os.getloadavg()[1]:.0f}"
    return [
        STEPS,
        "",
        f"Threads: {threads}. Medians of pairs in turns; the second pair of columns is processor time, which others on",
        "the machine disturb least. *Apart* is the largest relative difference of losses to PyTorch's over 10 steps",
        "(20 for onnxruntime-training, whose AdamW has other defaults than PyTorch's).",
        "",
        f"{where} · the other environment: {versions}",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
        *("| " + " | ".join(row) + " |" for row in found.steps),
        "",
    ]


def write_steps(found: Found, threads: int) -> None:
    """Put the table of steps in the place of the one that the page has."""
    before, rest = PAGE.read_text(encoding="utf-8").split(STEPS, 1)
    after = rest[rest.index("## ") :]
    PAGE.write_text(before + "\n".join(step_lines(found, threads)) + "\n" + after, encoding="utf-8")


def _words(who: str) -> str:
    return {
        "onward": "`onward.training.prepare`",
        "saved": "and saved with the state of its optimizer",
        "onnxruntime-training": "`generate_artifacts`, the reading of the file included",
    }[who]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=f"whose steps: {', '.join(NETWORKS)}")
    parser.add_argument("--python", required=True, help="of the environment that has onnxruntime-training")
    parser.add_argument("--only", choices=["steps", "zoo", "prepare"])
    parser.add_argument(
        "--results", type=Path, help="a file that keeps parts, measured one after another, for the page"
    )
    parser.add_argument("--seconds", type=float, default=10, help="for each row")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    rival = Rival(args.python)
    torch.set_num_threads(args.threads)
    found = Found(rival("versions")["versions"])
    if args.results and args.results.exists():
        found = Found(**json.loads(args.results.read_text()))
    if args.only in (None, "prepare"):
        found.prepare = prepare(rival)
        print(found.prepare)
    if args.only in (None, "zoo"):
        zoo(rival, found)
        print(f"{sum(not why for why in found.models.values())} of {found.ours}")
    if args.only in (None, "steps"):
        for row in steps(rival, args.networks or list(NETWORKS), args.threads, args.seconds):
            found.steps = [old for old in found.steps if old[:2] != row[:2]] + [row]
            if args.results:
                args.results.write_text(json.dumps(asdict(found)))
        found.steps.sort(key=lambda row: (list(NETWORKS).index(row[0]), list(OPTIMIZERS).index(row[1])))
        table = Table(*HEADINGS)
        for row in found.steps:
            table.add_row(*row)
        Console(width=140).print(table)
    if args.results:
        args.results.write_text(json.dumps(asdict(found)))
    if args.only == "steps":
        write_steps(found, args.threads)
    elif found.models and found.prepare:
        others = "".join(PAGE.read_text(encoding="utf-8").partition(WORKERS)[1:])
        PAGE.write_text(page(found, args.threads) + others, encoding="utf-8")
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
