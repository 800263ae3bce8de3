"""Networks of `keras.applications` that were taught to tell shapes apart: what int8 costs is counted on their labels.

    python benchmarks/labelled.py                    teaches all that are not kept yet, and says how good they are
    python benchmarks/labelled.py --only V2          those whose names have the pattern

Networks are kept as ONNX files under build/labelled.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

KEPT = Path("build/labelled")
SIZE, CLASSES = 64, 8
TAUGHT, JUDGED, AT_ONCE = 4000, 100_000, 5000
NETWORKS: dict[str, dict[str, Any]] = {
    "MobileNetV2": {"alpha": 0.5},
    "MobileNetV3Small": {"include_preprocessing": False},
}
EPOCHS, BATCH = 10, 32


@dataclass(frozen=True)
class Labelled:
    images: Any
    labels: Any


def shapes(count: int, seed: int) -> Labelled:
    """Images from 0 to 1 of one shape each, of any bright colour, size and place, on a dark colour, with noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    images = np.empty((count, SIZE, SIZE, 3), np.float32)
    for image, label in zip(images, labels, strict=True):
        middle, radius, angle = rng.uniform(22, 42, 2), rng.uniform(9, 20), rng.uniform(-0.5, 0.5)
        along = ((x - middle[0]) * np.cos(angle) + (y - middle[1]) * np.sin(angle)) / radius
        across = ((y - middle[1]) * np.cos(angle) - (x - middle[0]) * np.sin(angle)) / radius
        inside = _inside(int(label), along, across)
        one, other = rng.uniform(0.5, 1, 3), rng.uniform(0, 0.4, 3)
        image[:] = np.where(inside[..., None], one, other) + rng.normal(0, 0.05, image.shape)
    return Labelled(np.clip(images, 0, 1), labels)


def _inside(label: int, x: Any, y: Any) -> Any:
    far = np.hypot(x, y)
    angle = np.arctan2(y, x)
    return [
        far < 1,
        (far < 1) & (far > 0.6),
        np.maximum(abs(x), abs(y)) < 0.85,
        np.hypot(x, y / 0.5) < 1,
        (y > -0.5) & (y + 1.73 * abs(x) < 1),
        (abs(x) < 0.3) & (abs(y) < 1) | (abs(y) < 0.3) & (abs(x) < 1),
        far < 0.65 + 0.35 * np.cos(5 * angle),
        (far < 1) & (x > 0),
    ][label]


def taught(name: str) -> Path:
    """The file of a network, which is taught where it is not kept."""
    path = KEPT / f"{name}.onnx"
    if path.exists():
        return path
    import keras
    from keras_applications import calibrated

    import onward

    keras.utils.set_random_seed(0)
    make = getattr(keras.applications, name)
    network = make(weights=None, input_shape=(SIZE, SIZE, 3), classes=CLASSES, **NETWORKS[name])
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9
    steps = EPOCHS * TAUGHT // BATCH
    rate = keras.optimizers.schedules.CosineDecay(0.0, steps, warmup_target=1e-3, warmup_steps=steps // 10)
    network.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    for epoch in range(EPOCHS):  # of new images each
        data = shapes(TAUGHT, 10 + epoch)
        network.fit(_given(data.images), data.labels, batch_size=BATCH, verbose=2)
    calibrated(network, _given(data.images[:500]))
    path.parent.mkdir(parents=True, exist_ok=True)
    onward.from_keras(network).save(path)
    return path


def _given(images: Any) -> Any:
    return 2 * images - 1


def fed(count: int, seed: int) -> Labelled:
    """Images as the networks take them, with their labels."""
    data = shapes(count, seed)
    return Labelled(_given(data.images), data.labels)


def judged() -> Iterator[Labelled]:
    """Images that no network has seen, some at a time."""
    for first in range(0, JUDGED, AT_ONCE):
        yield fed(min(AT_ONCE, JUDGED - first), 1000 + first)


def main() -> None:
    from onward import load
    from onward.bits.search import accuracy
    from onward.runners import prepare

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN")
    args = parser.parse_args()
    for name in NETWORKS:
        if re.search(args.only, name):
            start = time.time()
            model = load(taught(name))
            data = fed(AT_ONCE, 2)
            (entry,) = model.ir.graph.inputs
            right = accuracy([prepare("onnxruntime", model)({entry.name or "": data.images})], [data.labels])
            print(
                f"{name}: {100 * right:.2f} % right, {model.nbytes / 1e6:.1f} MB, {time.time() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
