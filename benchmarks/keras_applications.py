"""Every model of `keras.applications` as ONNX, beside Keras: `keras_applications.py [--only PATTERN]`.

The weights are random, and the statistics of batch normalisation are those of a batch of noise: with the statistics
that Keras starts with, every output would be the same. Prints a row a model: nodes, transposes, seconds, the largest
difference as a share of the largest number, and what verification says.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from machine import describe

import onward
from onward.frontends.keras.convert import from_keras
from onward.verification.sides import Side


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


def row(name: str) -> str:
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None)
    size = model.input_shape[1:]
    images = np.random.default_rng(0).uniform(0, 255, (4, *size)).astype(np.float32)
    calibrated(model, images)
    start = time.perf_counter()
    made = from_keras(model)
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
    print(describe("tensorflow-cpu", "keras", "onnx", "onnxruntime"), flush=True)
    print("| model | nodes | transposes | seconds | worst error | verdict |\n|---|---|---|---|---|---|", flush=True)
    for name in names():
        if re.search(args.only, name):
            print(row(name), flush=True)
            keras.backend.clear_session()


if __name__ == "__main__":
    main()
