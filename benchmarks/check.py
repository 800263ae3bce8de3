"""What the check of the converting functions costs: each with and without it, side by side, in seconds of the CPU.

`python benchmarks/check.py` takes MobileNetV2 with random weights.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras

import onward

ROUNDS = 3


def seconds(convert: Callable[[bool], object], check: bool) -> float:
    began = time.process_time()
    convert(check)
    return time.process_time() - began


def main() -> None:
    net = keras.applications.MobileNetV2(weights=None)
    model = onward.from_keras(net, check=False)
    ways: dict[str, Callable[[bool], object]] = {
        "from_keras": lambda check: onward.from_keras(net, check=check),
        "to_torch": lambda check: onward.to_torch(model, check=check),
        "to_tensorflow": lambda check: onward.to_tensorflow(model, check=check),
        "to_keras": lambda check: onward.to_keras(model, check=check),
    }
    print(f"{'function':14}{'checked':>9}{'not':>9}{'ratio':>8}")
    for name, convert in ways.items():
        rounds = [(seconds(convert, True), seconds(convert, False)) for _ in range(1 + ROUNDS)][1:]
        checked, plain = (statistics.median(side) for side in zip(*rounds, strict=True))
        print(f"{name:14}{checked:8.2f}s{plain:8.2f}s{checked / plain:8.1f}")


if __name__ == "__main__":
    main()
