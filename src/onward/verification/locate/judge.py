"""Whether two values inside a graph are the same, by the floor of their dtype and by how the source reacts to rounding.

Used where nothing but the two values is known: at a cut through a model, or at the result of a single node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from onward.runners.calls import Inputs, Outputs
from onward.verification import compare
from onward.verification.compare import Error, measure
from onward.verification.results import OutputResult

FACTOR = 4.0
"""How many times its own noise a value may be off."""
WIDEST = 0.5
"""No noise excuses a larger overall error."""
JITTER = 0.125
"""By which part of the floor of its dtype an input is moved to see how a model reacts to rounding: one that does not
magnify it is thereby excused no more than the floor."""
STEPS = 0.01
"""The share of 8-bit results that may be off by one step: where a result falls between two, rounding decides."""

HUGE, SAMPLES = 1e4, 4096
"""An element so many times larger than the median, which is taken of a few, is compared apart from the others."""


@dataclass(frozen=True)
class Verdict:
    """The error of a value and what is allowed, of the kind, worst or overall, that is closer to its limit."""

    error: float
    allowed: float

    @property
    def differs(self) -> bool:
        return self.error > self.allowed

    @property
    def ratio(self) -> float:
        """1 at the limit."""
        if self.error == 0:
            return 0.0
        return self.error / self.allowed if self.allowed else float("inf")


def judge(
    expected: Outputs,
    actual: Outputs,
    noise: Mapping[str, Error] | None = None,
    floors: Mapping[str, float] | None = None,
) -> dict[str, Verdict]:
    """A verdict on each value; `floors` are the errors that floats may always have, where not those of their dtypes."""
    noise, floors = noise or {}, floors or {}
    found = {}
    for name, value in expected.items():
        floor = floors.get(name, 0.0) if name in floors and _is_float(value) else _floor(value, actual.get(name))
        found[name] = _verdict(_error(value, actual.get(name)), noise.get(name, Error()), floor)
    return found


def as_compared(results: Iterable[OutputResult]) -> dict[str, Verdict]:
    """The verdicts of a comparison of outputs."""
    found = {}
    for result in results:
        allowed = result.tolerance
        pairs = ((result.metrics.worst, allowed.worst), (result.metrics.overall, allowed.overall))
        verdict = max((Verdict(*pair) for pair in pairs), key=lambda verdict: verdict.ratio)
        if verdict.differs != (result.status != "same"):
            verdict = Verdict(0.0 if verdict.differs else float("inf"), allowed.worst)
        found[result.name] = verdict
    return found


def errors(expected: Outputs, actual: Outputs) -> dict[str, Error]:
    """As `measure`, the elements of a sequence or map taken together."""
    return {name: _error(value, actual.get(name)) for name, value in expected.items()}


def _error(expected: Any, actual: Any) -> Error:
    found = reduce(or_, measure({"value": expected}, {"value": actual}).values(), Error())
    if not np.isfinite(found.worst) or not isinstance(expected, np.ndarray) or not _is_float(expected):
        return found
    ordinary = _ordinary(expected)
    return found if ordinary is None else found | measure({"": expected[ordinary]}, {"": actual[ordinary]})[""]


def _ordinary(array: Any) -> Any:
    """Where the elements are that others, such as the -1e9 of a mask, would make look small; None if there are none."""
    sizes = np.where(np.isfinite(array), np.abs(array), 0)
    some = sizes.reshape(-1)[:: max(1, sizes.size // SAMPLES)].astype(np.float64)
    if not some.any():
        return None
    ordinary = sizes <= HUGE * np.median(some[some > 0])
    return None if ordinary.all() else ordinary


def _verdict(error: Error, noise: Error, floor: float) -> Verdict:
    worst = Verdict(error.worst, max(floor, FACTOR * _finite(noise.worst)))
    overall = Verdict(error.overall, max(floor, min(WIDEST, FACTOR * _finite(noise.overall))))
    return max(worst, overall, key=lambda verdict: verdict.ratio)


def _finite(noise: float) -> float:
    return noise if np.isfinite(noise) else 0.0


def _is_float(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return dtype is not None and compare.floor(dtype) > 0


def _floor(expected: Any, actual: Any) -> float:
    if isinstance(expected, list | tuple):
        return max((_floor(value, None) for value in expected), default=0.0)
    if isinstance(expected, Mapping):  # numbers from a map are float32, whatever Python has made of them
        return max((_floor(np.float32(v), None) for v in expected.values() if isinstance(v, float)), default=0.0)
    dtype = getattr(expected, "dtype", None)
    if dtype is None:
        return 0.0
    if dtype.kind in "iu" and dtype.itemsize == 1:
        comparable = getattr(actual, "shape", None) == expected.shape and expected.size
        return STEPS if comparable and np.abs(expected.astype(int) - actual.astype(int)).max() <= 1 else 0.0
    return compare.floor(dtype)


def jittered_inputs(inputs: Inputs, seed: int = 0) -> Inputs:
    """The inputs, each float moved a little, up or down at random; whole numbers, such as a mask's, are left alone."""
    rng = np.random.default_rng(seed)
    return {name: _jittered(value, rng) for name, value in inputs.items()}


def _jittered(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, list):
        return [_jittered(item, rng) for item in value]
    if not isinstance(value, np.ndarray) or not (floor := compare.floor(value.dtype)):
        return value
    with np.errstate(all="ignore"):
        moved = value * (1 + JITTER * floor * rng.choice([-1.0, 1.0], value.shape))
        return np.where(value == np.floor(value), value, moved).astype(value.dtype)
