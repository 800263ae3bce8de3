"""A small step from a large weight is compared as far as the weight can hold it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from onward.training.verification.steps import judged, measured, rounded_once_more

LARGE = np.random.default_rng(0).uniform(1, 2, (400, 50)).astype(np.float32)
RATE, DECAY = np.float32(1e-3), np.float32(1e-3)


def statuses(actual: np.ndarray) -> list[str]:
    """Of a step of weight decay, and of gradients for the first row."""
    step = np.zeros_like(LARGE)
    step[0] = RATE
    after = LARGE - RATE * DECAY * LARGE - step
    start: Any = SimpleNamespace(parameters={"w": LARGE})
    expected: Any = {"update": {"w": after - LARGE}}
    noise = measured(expected, [expected, rounded_once_more(start, expected)])
    other: Any = {"update": {"w": actual - LARGE}}
    return [check.status for check in judged(1, expected, other, noise)]


def test_another_order_of_the_same_step() -> None:
    after = LARGE * (1 - RATE * DECAY)
    after[0] -= RATE
    assert statuses(after) == ["same"]


def test_another_step() -> None:
    """Without weight decay; or with another rate."""
    without = LARGE.copy()
    without[0] -= RATE
    assert statuses(without) == ["different"]
    after = LARGE * (1 - RATE * DECAY)
    after[0] -= RATE * np.float32(1.1)
    assert statuses(after) == ["different"]
