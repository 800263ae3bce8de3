"""Whether two sets of outputs come from the same model, by a tolerance that follows the model's own noise."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onward.runners.calls import Outputs
from onward.verification.axis_order import layout_difference, plausible
from onward.verification.metrics import (
    INCOMPARABLE,
    Array,
    Distance,
    Error,
    Limit,
    digits_apart,
    distance,
    epsilon,
    is_float,
    is_text,
    top,
)
from onward.verification.pairs import By, Pair, anywhere, pairs
from onward.verification.results import Kind, Metrics, OutputResult, Tolerance

__all__ = ["Array", "Error", "Outputs", "compare", "differences", "floor", "is_drowned", "measure"]

NOISE_FACTOR = 4.0
"""How many times the source model's own noise a result may be off."""
FEW = 32
"""The factor is larger where the noise was measured on few elements: √2 times as large where it was on this many."""
WIDEST = 0.5
"""No noise excuses a larger overall error: at 1, a result has nothing in common with what was expected."""
PEAK = 4.0
"""The worst of many elements that are off by rounding is off by so many times as much as they are overall."""
QUIET = 0.01
"""An output that is far smaller than on ordinary data is measured by this share of what it is there."""
STEP, STEPS_OVERALL = 1.0, 0.1
"""Rounding alone may move an element of a quantised output by a step, and a tenth of the elements."""


def compare(
    expected: Outputs,
    actual: Outputs,
    noise: Mapping[str, Error] | None = None,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    matched: By = "name",
    quantized: Collection[str] = (),
) -> list[OutputResult]:
    """Each output, in the source's order: the same, or in what way it differs.

    Two arrays are the same if both `Metrics.worst` and `Metrics.overall` are within `max(floor, factor * noise)`;
    `noise` is, by output, what `measure` says of two runs of the source that ought to be equal. With `atol` or `rtol`
    the rule is |difference| ≤ atol + rtol * |expected| for every element instead. Outputs are matched by name, those
    left over by position. `quantized` names outputs that are steps of a quantised scale.
    """
    given = None if atol is None and rtol is None else Limit(math.inf, atol or 0.0, rtol or 0.0)
    rule = _Rule(noise or {}, given, frozenset(quantized))
    found = list(pairs(expected, actual, matched))
    results = [rule.judge(pair) for pair in found]
    wrong = [i for i, result in enumerate(results) if result.status != "same"]
    for i in wrong:
        others = [found[k] for k in wrong if k != i]
        results[i] = rule.explain(found[i], results[i], others)
    return results


def is_drowned(result: OutputResult) -> bool:
    """Whether an output is so far off that no noise would excuse it, and yet no further than its own noise carries.

    Then the source itself, rounding differently, gives something else altogether: nothing can be told.
    """
    found, allowed = result.metrics, result.tolerance
    return (
        result.status == "different"
        and result.kind == "values"
        and found.worst <= allowed.worst
        and WIDEST <= allowed.overall < found.overall <= allowed.factor * allowed.noise_overall
    )


def differences(results: list[OutputResult]) -> list[str]:
    """A line for each output that is not the same."""
    return [f"{result.name}: {result.reason}" for result in results if result.status != "same"]


def measure(
    expected: Outputs, actual: Outputs, noise: Mapping[str, Error] | None = None, quantized: Collection[str] = ()
) -> dict[str, Error]:
    """The error of each output; infinite where the two have no elements to compare. Of `noise` the scale is used."""
    rule = _Rule(noise or {}, None, frozenset(quantized))
    return {pair.name: rule.error(pair) for pair in pairs(expected, actual)}


def floor(dtype: np.dtype[Any]) -> float:
    """The error that rounding alone may cause in a deep network: 3e-5 for float32, 7e-11 for float64."""
    return epsilon(dtype) ** 0.65 if is_float(dtype) else 0.0


@dataclass(frozen=True)
class _Rule:
    noise: Mapping[str, Error]
    given: Limit | None
    quantized: frozenset[str]

    def error(self, pair: Pair) -> Error:
        """Of a pair of arrays."""
        if pair.kind or _problem(pair)[0]:
            return INCOMPARABLE
        if pair.expected is None or pair.actual is None:
            return Error()
        own = self._noise(pair.name)
        quiet, steps = QUIET * own.scale, self._in_steps(pair.name, pair.expected)
        return distance(pair.expected, pair.actual, quiet=quiet, steps=steps).error

    def judge(self, pair: Pair) -> OutputResult:
        if pair.kind:
            return OutputResult(pair.name, "different", pair.kind, pair.reason)
        if pair.expected is None or pair.actual is None:
            return OutputResult(pair.name, "same", reason=pair.remark)
        expected = pair.expected
        kind, reason = _problem(pair)
        made = OutputResult(pair.name, "same", dtype=str(expected.dtype), shape=expected.shape, reason=pair.remark)
        if kind == "shape" or pair.actual.dtype.kind == "c" != expected.dtype.kind:
            return replace(made, status="different", kind=kind, reason=reason)
        actual = pair.actual.astype(expected.dtype) if kind == "dtype" else pair.actual
        steps = self._in_steps(pair.name, expected)
        tolerance, limit = self._tolerance(pair.name, expected, steps)
        with np.errstate(all="ignore"):
            found = distance(expected, actual, quiet=QUIET * self._noise(pair.name).scale, steps=steps, limit=limit)
        if self.given is not None:
            tolerance = replace(tolerance, worst=found.error.worst / found.furthest if found.furthest else 0.0)
        made = replace(
            made,
            metrics=_metrics(expected, actual, found),
            tolerance=tolerance,
            index=found.index,
            histogram=found.histogram,
        )
        agrees = _within(found, tolerance, self.given)
        if not kind and not agrees:
            kind, reason = "values", _words(made)
        elif kind == "dtype":
            agrees = agrees and not _problem(Pair(pair.name, expected, actual))[0]
            reason += "; the values agree" if agrees else ", and other values"
        elif kind:
            made = replace(made, index=_first(kind, expected, actual))
        made = _with_values(made, expected, pair.actual)
        return replace(made, status="different", kind=kind, reason=reason) if kind else made

    def explain(self, pair: Pair, result: OutputResult, others: list[Pair]) -> OutputResult:
        """A more telling reason for what differs, where there is one."""
        expected, actual = pair.expected, pair.actual
        if expected is None or actual is None or not expected.size or result.kind == "dtype" or _constant(expected):
            return result
        for other in others:
            if other.actual is not None and self._agrees(pair.name, expected, other.actual):
                reason = (
                    f"the outputs are in another order or have other names: this is the other side's {other.name!r}"
                )
                return replace(result, kind="order", reason=reason)
        if expected.dtype != actual.dtype:
            return result
        if words := layout_difference(expected, actual, lambda a, b: self._agrees(pair.name, a, b)):
            return replace(result, kind="layout", reason=f"{words}; the values agree")
        if result.kind == "shape" and expected.size == actual.size:
            if self._agrees(pair.name, expected, actual.reshape(expected.shape)):
                return replace(result, reason=f"{result.reason}; the values agree")
        elif result.kind == "values" and _constant(actual):
            reason = f"every element is {actual.reshape(-1)[0]}, which is not so in the source"
            return replace(result, kind="constant", reason=reason)
        return result

    def _agrees(self, name: str, expected: Array, actual: Array) -> bool:
        same_form = expected.shape == actual.shape and expected.dtype == actual.dtype
        return same_form and plausible(expected, actual) and self.judge(Pair(name, expected, actual)).status == "same"

    def _noise(self, name: str) -> Error:
        return self.noise.get(name) or self.noise.get(anywhere(name)) or Error()

    def _in_steps(self, name: str, array: Array) -> bool:
        return array.dtype.kind in "iu" and (name in self.quantized or self._noise(name).steps)

    def _tolerance(self, name: str, expected: Array, steps: bool) -> tuple[Tolerance, Limit]:
        if self.given is not None:
            words = f"as given: |difference| ≤ {self.given.atol:g} + {self.given.rtol:g} × |expected|"
            return Tolerance(0.0, math.inf, why=words), self.given
        made = tolerance(expected.dtype, self._noise(name), expected.size, steps)
        return made, Limit(made.worst)


def tolerance(dtype: np.dtype[Any], noise: Error, size: int, steps: bool = False) -> Tolerance:
    """How far an output of `size` elements may be off, given the source's own noise."""
    least = STEP if steps else PEAK * floor(dtype)
    least_overall = STEPS_OVERALL if steps else floor(dtype)
    widest = math.inf if steps else max(WIDEST, 0.0 if is_float(dtype) else 1 / max(size, 1))
    factor = NOISE_FACTOR * math.sqrt(1 + FEW / max(noise.samples, 1)) if noise.samples else NOISE_FACTOR
    worst = max(least, factor * _excuse(noise.worst))
    overall = max(least_overall, min(widest, factor * _excuse(noise.overall)))
    if worst > least or overall > least_overall:
        why = f"{factor:.2g} × the source's own noise" + (f" ({noise.how})" if noise.how else "")
    elif steps:
        why = "one step of a quantised output"
    else:
        why = f"the floor of {dtype}" if least else f"{dtype} has to be equal"
    return Tolerance(worst, overall, least_overall, noise.worst, noise.overall, factor, why)


def _excuse(noise: float) -> float:
    """Infinite noise, two runs of the source that cannot be compared, excuses nothing."""
    return noise if np.isfinite(noise) else 0.0


def _within(found: Distance, allowed: Tolerance, given: Limit | None) -> bool:
    if given is not None:
        return found.furthest <= 1.0
    return found.error.worst <= allowed.worst and found.error.overall <= allowed.overall


def _problem(pair: Pair) -> tuple[Kind, str]:
    """In what way two arrays cannot be, or are not to be, compared element by element, if so."""
    expected, actual = pair.expected, pair.actual
    if expected is None or actual is None:
        return "", ""
    if expected.shape != actual.shape:
        return "shape", f"shape {list(actual.shape)} instead of {list(expected.shape)}"
    if is_text(expected.dtype):
        return "", ""
    if expected.dtype != actual.dtype:
        return "dtype", f"{actual.dtype} instead of {expected.dtype}"
    if not is_float(expected.dtype) or (np.isfinite(expected).all() and np.isfinite(actual).all()):
        return "", ""
    for kind, what, pattern in (("nan", "NaN", np.isnan), ("infinite", "infinite", np.isinf)):
        wanted, found = pattern(expected), pattern(actual)
        if not np.array_equal(wanted, found):
            return kind, _pattern_words(what, wanted, found)  # type: ignore[return-value]
    infinite = np.isinf(expected)
    if not np.array_equal(expected[infinite], actual[infinite]):
        return "infinite", "infinities of the other sign"
    return "", ""


def _pattern_words(what: str, wanted: Array, found: Array) -> str:
    more, fewer = int(np.count_nonzero(found & ~wanted)), int(np.count_nonzero(wanted & ~found))
    parts = [f"{more} of {wanted.size} elements are {what} that are not in the source"] if more else []
    if fewer:
        parts.append(f"{fewer} of {wanted.size} that are {what} in the source are not")
    return "; ".join(parts)


def _first(kind: Kind, expected: Array, actual: Array) -> tuple[int, ...]:
    """The first element at which the patterns of NaN or infinity differ."""
    if kind == "nan":
        differs = np.isnan(expected) != np.isnan(actual)
    else:
        differs = (np.isinf(expected) | np.isinf(actual)) & (expected != actual)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), expected.shape))


def _metrics(expected: Array, actual: Array, found: Distance) -> Metrics:
    logits = is_float(expected.dtype) and expected.dtype.kind != "c"
    best, among = top(expected, actual) if logits else (None, None)
    return Metrics(
        found.error.worst,
        found.error.overall,
        found.max_abs,
        found.over_scale,
        found.mismatched,
        found.ulp,
        found.cosine,
        found.snr_db,
        int(found.max_abs) if found.error.steps else None,
        best,
        among,
    )


def _with_values(result: OutputResult, expected: Array, actual: Array) -> OutputResult:
    if result.index is None:
        return result
    return replace(result, expected=str(expected[result.index]), actual=str(actual[result.index]))


def _words(result: OutputResult) -> str:
    """In what way the values differ; the worst element is told apart."""
    found, allowed = result.metrics, result.tolerance
    if math.isinf(allowed.overall):
        beyond = f"{100 * found.mismatched:.3g} % of the elements are beyond the tolerance given"
        return f"{beyond}; the largest difference is {found.max_abs:.2g}"
    if found.max_steps is not None:
        return (
            f"off by up to {found.max_steps} steps (allowed {allowed.worst:.2g}), "
            f"by {found.overall:.2g} on average ({allowed.overall:.2g})"
        )
    if not result.dtype.startswith(("float", "bfloat", "complex")):
        return f"{100 * found.overall:.3g} % of the elements differ (allowed {100 * allowed.overall:.3g} %)"
    worst, overall = digits_apart(found.worst, allowed.worst), digits_apart(found.overall, allowed.overall)
    return (
        f"worst error {found.worst:.{worst}g} (allowed {allowed.worst:.{worst}g}), "
        f"overall {found.overall:.{overall}g} ({allowed.overall:.{overall}g})"
    )


def _constant(array: Array) -> bool:
    """Whether all elements, of which there are several, are one value."""
    flat = array.reshape(-1)
    return flat.size > 3 and bool(np.all(flat == flat[0]))
