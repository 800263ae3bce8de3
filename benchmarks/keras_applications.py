"""Every model of `keras.applications` as ONNX, beside Keras; writes docs/measured/keras-applications.md.

python benchmarks/keras_applications.py                  all of them, each in a process of its own
python benchmarks/keras_applications.py --only NASNet    those whose names have the pattern; writes nothing

The weights are random, and the statistics of batch normalisation are those of a batch of blots: with the statistics
that Keras starts with, every output would be the same.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from machine import describe

import onward
from onward.exporters import from_keras
from onward.verification.sides import Side

PAGE = Path(__file__).parent.parent / "docs/measured/keras-applications.md"
WORDS = """# The models of `keras.applications` as ONNX

Weights are random. The statistics of batch normalisation come from a batch of blots, because with Keras's initial ones
every output would be the same. The error is the largest difference between Keras and ONNX Runtime, divided by the
largest number; the verdict is that of `onward.verify`. Made by `benchmarks/keras_applications.py`."""
HEAD = "| model | nodes | transposes | seconds to convert | largest error | verdict |\n|---|--:|--:|--:|--:|---|"


def names() -> list[str]:
    """The functions of `keras.applications` that make a model."""
    makers = vars(keras.applications).items()
    return sorted(name for name, make in makers if name[0].isupper() and callable(make))


def calibrated(model: Any, images: Any) -> None:
    """Set the statistics of batch normalisation to those of these images."""
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = 0.0
    model(images, training=True)
    for layer, momentum in zip(norms, momenta, strict=True):
        layer.momentum = momentum


def pictures(count: int, size: Sequence[int]) -> Any:
    """Blots of different sizes and colours: of plain noise, every image would be the same to a network."""
    rng, whole = np.random.default_rng(0), 0.0
    for grid in (1, 4, 16):
        coarse = rng.uniform(0, 85, (count, grid, grid, size[2])).astype(np.float32)
        whole = whole + np.asarray(keras.ops.image.resize(coarse, tuple(size[:2]), "bilinear"))
    return whole


def row(name: str) -> str:
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None)
    size = [edge or 224 for edge in model.input_shape[1:]]
    images = pictures(4, size)
    calibrated(model, images)
    start = time.perf_counter()
    made = from_keras(model, check=False)
    seconds = time.perf_counter() - start

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        result = model(next(iter(inputs.values())), training=False)
        return {made.ir.graph.outputs[0].name or "": np.asarray(result)}

    feed = {made.ir.graph.inputs[0].name or "": images[:1]}
    report = onward.verify(made, Side("Keras", run), inputs=feed)
    worst = report.worst
    nodes = list(made.ir.graph)
    transposes = sum(node.op_type == "Transpose" for node in nodes)
    error = "" if worst is None else f"{worst.metrics.worst:.1e}"
    return f"| {name} | {len(nodes)} | {transposes} | {seconds:.1f} | {error} | {report.status} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="a regular expression for names")
    args = parser.parse_args()
    machine = describe("tensorflow-cpu", "keras", "onnx", "onnxruntime")
    print(machine, HEAD, sep="\n", flush=True)
    rows = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for line in pool.map(row, [name for name in names() if re.search(args.only, name)]):
            print(line, flush=True)
            rows.append(line)
    if not args.only:
        PAGE.write_text("\n\n".join([WORDS, machine, "\n".join([HEAD, *rows])]) + "\n")


if __name__ == "__main__":
    main()
