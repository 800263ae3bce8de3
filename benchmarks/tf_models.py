"""SavedModel and TensorFlow Lite, beside onnx2tf and Keras: transposes left, speed, time of conversion, errors.

python benchmarks/tf_models.py --onnx2tf ENV/bin/python   all networks; writes docs/measured/speed-tensorflow.md
python benchmarks/tf_models.py --only U-Net               one of them, without onnx2tf; writes nothing

onnx2tf pins its own versions of everything, so it runs in an environment of its own: `pip install onnx2tf` in a fresh
one. Speeds are medians of ratios of calls in turn, in one process, with a batch of one.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras_networks
import machine
import numpy as np
import tensorflow as tf
import vision

import onward
from onward.formats import open_artifact
from onward.runners.calls import Inputs, Outputs
from onward.verification.sides import Side

PAGE = Path(__file__).parent.parent / "docs/measured/speed-tensorflow.md"
WORKER = Path(__file__).parent / "tf_peer_worker.py"
NAMES = ("ResNet-50", "MobileNetV2", "EfficientNet-B0", "U-Net", "YOLO-like", "ConvNeXt", "ViT")
WHO = ("onward", "onnx2tf")
FILES = ("float32", "float16", "dynamic")
Call = Callable[[], Any]


@dataclass
class Row:
    name: str
    images: int
    """Inputs and outputs of four dimensions."""
    transposes: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    speed: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def convert(who: str, python: str, path: Path, folder: Path, rounds: int, row: Row) -> None:
    """In a process each; the times are the least of several rounds."""
    found = []
    for _ in range(rounds):
        command = [python, str(WORKER), who, str(path), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            row.failures[who] = done.stderr.strip().splitlines()[-1][:120]
            return
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    row.seconds[who] = {key: min(one[key] for one in found) for key in ("wall", "cpu")}
    row.seconds[who] |= {"versions": found[0]["versions"]}


def transposes(folder: Path) -> int:
    """Those in the graph of a SavedModel, and in the functions that it calls."""
    graph = tf.saved_model.load(str(folder)).signatures["serving_default"].graph.as_graph_def()
    library = {function.signature.name: function.node_def for function in graph.library.function}

    def count(nodes: Any) -> int:
        called = [value.func.name for node in nodes for value in node.attr.values() if value.func.name in library]
        return sum(node.op == "Transpose" for node in nodes) + sum(count(library[name]) for name in called)

    return count(graph.node)


def caller(folder: Path, image: np.ndarray[Any, Any]) -> Call:
    """Calls a SavedModel, which takes the image channels first or last."""
    model = tf.saved_model.load(str(folder))
    serve = model.signatures["serving_default"]
    ((name, spec),) = serve.structured_input_signature[1].items()
    fed = tf.constant(image if spec.shape[1] == 3 else image.transpose(0, 2, 3, 1))
    return lambda: (model, serve(**{name: fed}))


def compare(calls: dict[str, Call], base: str, seconds: float, row: Row) -> None:
    """Ratios to `base`, of processor time and by the clock: the calls take turns."""
    for call in calls.values():
        call()
        call()
    cpu: dict[str, list[float]] = {who: [] for who in calls}
    wall: dict[str, list[float]] = {who: [] for who in calls}
    end = time.perf_counter() + seconds
    while len(cpu[base]) < 15 or time.perf_counter() < end:
        for who in list(calls) if len(cpu[base]) % 2 else list(calls)[::-1]:
            began, used = time.perf_counter(), time.process_time()
            calls[who]()
            wall[who].append(time.perf_counter() - began)
            cpu[who].append(time.process_time() - used)
    for who in calls:
        row.speed[who] = statistics.median(a / b for a, b in zip(cpu[who], cpu[base], strict=True))
        row.wall[who] = statistics.median(a / b for a, b in zip(wall[who], wall[base], strict=True))


def verdict(path: Path, file: Path) -> str:
    """The worst error against ONNX Runtime, as `onward verify` has it; in bold where it is beyond the tolerance."""
    opened, names = open_artifact(file), [value.name or "" for value in onward.load(path).ir.graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        found = dict(zip(names, opened.run(inputs).values(), strict=True))
        last = {name for name, array in found.items() if array.ndim == 4 and file.parent.name.endswith("onnx2tf")}
        return {name: np.moveaxis(array, -1, 1) if name in last else array for name, array in found.items()}

    side = onward.verify(str(path), Side("the file", run), dims={"batch": 1}).sides[-1]
    results = [output for trial in side.trials for output in trial.outputs]
    if side.failure or not results:
        return f"fails: {side.failure or next(t.failure for t in side.trials if t.failure)}"[:80]
    worst = max(output.metrics.worst for output in results)
    return f"{worst:.0e}" if side.status == "same" else f"**{worst:.0e}**"


def measure(name: str, folder: Path, python: str | None, seconds: float, rounds: int) -> Row:
    path = folder / f"{name}.onnx"
    vision.write(name, path)
    graph = onward.load(path).ir.graph
    row = Row(name, sum(v.shape is not None and len(v.shape) == 4 for v in (*graph.inputs, *graph.outputs)))
    for who, executable in zip(WHO, (sys.executable, python), strict=True):
        if executable is not None:
            convert(who, executable, path, folder / f"{name}_{who}", rounds, row)
    made = [who for who in WHO if who in row.seconds]
    row.transposes = {who: str(transposes(folder / f"{name}_{who}" / "saved")) for who in made}
    image = np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32)
    calls = {who: caller(folder / f"{name}_{who}" / "saved", image) for who in made}
    if name in keras_networks.NETWORKS:
        keras_networks.build(name).export(folder / f"{name}_keras", verbose=False)
        calls["keras"] = caller(folder / f"{name}_keras", image)
    compare(calls, "keras" if "keras" in calls else "onward", seconds, row)
    for file in FILES:
        row.errors[file] = verdict(path, folder / f"{name}_onward" / f"{file}.tflite")
    if "onnx2tf" in made:
        row.errors["onnx2tf"] = verdict(path, folder / f"{name}_onnx2tf" / "float32.tflite")
    return row


def said(row: Row, who: str, value: str | None) -> str:
    return value if value is not None else "fails" if who in row.failures else "–"


def section(title: str, words: str, columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return f"## {title}\n\n{words}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables(rows: list[Row]) -> str:
    return "\n\n".join(
        (
            section(
                "Transposes left",
                "onnx2tf takes and gives images channels last, so it needs none for those. Onward keeps the interface\n"
                "of the file, unless `--inputs-nhwc` and `--outputs-nhwc` say otherwise.",
                ["network", "images in and out", *WHO],
                [[r.name, str(r.images), *(said(r, who, r.transposes.get(who)) for who in WHO)] for r in rows],
            ),
            section(
                "Forward pass",
                "Processor time ÷ that of the same network written in Keras, each as a SavedModel; in brackets by the\n"
                "clock. Where there is none in Keras, ÷ Onward's.",
                ["network", *WHO],
                [[r.name, *(speeds(r, who) for who in WHO)] for r in rows],
            ),
            section(
                "Time to convert to a SavedModel",
                "Seconds of the processor, and by the clock in brackets.",
                ["network", *WHO, "times faster"],
                [[r.name, *seconds_of(r)] for r in rows],
            ),
            section(
                "TensorFlow Lite: worst error against ONNX Runtime",
                "As `onward verify` measures it; in bold where it is beyond the tolerance, as rounded weights are\n"
                "meant to be.",
                ["network", *(f"onward, {file}" for file in FILES), "onnx2tf, float32"],
                [
                    [r.name, *(r.errors[file] for file in FILES), said(r, "onnx2tf", r.errors.get("onnx2tf"))]
                    for r in rows
                ],
            ),
        )
    )


def speeds(row: Row, who: str) -> str:
    return f"{row.speed[who]:.2f} ({row.wall[who]:.2f})" if who in row.speed else said(row, who, None)


def seconds_of(row: Row) -> list[str]:
    mine, theirs = (row.seconds.get(who) for who in WHO)
    cells = [
        said(row, who, times and f"{times['cpu']:.1f} ({times['wall']:.1f})")
        for who, times in zip(WHO, (mine, theirs), strict=True)
    ]
    faster = [f"{theirs[key] / mine[key]:.1f}" for key in ("cpu", "wall")] if mine and theirs else None
    return [*cells, "–" if faster is None else f"{faster[0]} ({faster[1]})"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what becomes of networks in TensorFlow.")
    parser.add_argument("--onnx2tf", metavar="PYTHON", help="the interpreter of an environment with onnx2tf")
    parser.add_argument("--only", default="", help="a part of the names of the networks")
    parser.add_argument("--seconds", type=float, default=20, help="for the speed of each network")
    parser.add_argument("--rounds", type=int, default=2, help="conversions, of which the fastest counts")
    args = parser.parse_args()
    rows: list[Row] = []
    for name in NAMES:
        if args.only in name:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(name, Path(folder), args.onnx2tf, args.seconds, args.rounds))
            print(rows[-1], flush=True)
    print(tables(rows))
    if not args.only and args.onnx2tf:
        PAGE.write_text(page(rows))


def page(rows: list[Row]) -> str:
    theirs = next((r.seconds["onnx2tf"]["versions"] for r in rows if "onnx2tf" in r.seconds), {})
    versions = ", ".join(f"{name} {number}" for name, number in dict(theirs).items())
    failed = "".join(f"{who} on {r.name}: `{why}`\n\n" for r in rows for who, why in r.failures.items())
    return (
        "# TensorFlow: speed, transposes and errors, beside onnx2tf\n\nWritten by `python benchmarks/tf_models.py"
        " --onnx2tf PYTHON`. Networks are those of `benchmarks/vision.py`, exported\nby PyTorch with an open batch;"
        " onnx2tf gets them with a batch of one, since it cannot convert all with an open one.\n\n"
        f"{tables(rows)}\n\n{failed}{machine.describe('tensorflow-cpu', 'keras', 'onnxruntime')} · beside: {versions}\n"
    )


if __name__ == "__main__":
    main()
