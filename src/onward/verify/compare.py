"""Whether two sets of outputs come from the same model, by a tolerance that follows the model's own noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

NOISE_FACTOR = 4.0
"""How many times the source model's own noise a result may be off."""

WIDEST = 0.5
"""No noise excuses a larger overall error: at 1, a result has nothing in common with what was expected."""

Array = np.ndarray[Any, np.dtype[Any]]
Outputs = Mapping[str, Any]
"""By output name: an array, a list for a sequence, a dict for a map, None for an empty optional."""


@dataclass(frozen=True)
class Error:
    """How far an output is off, see `_errors`."""

    worst: float = 0.0
    """Of a single element."""
    overall: float = 0.0
    """Root mean square of the difference, over that of the expected values; the share of elements that differ."""

    def __or__(self, other: Error) -> Error:
        """The larger of the two, of each kind."""
        return Error(max(self.worst, other.worst), max(self.overall, other.overall))


@dataclass(frozen=True)
class Difference:
    """One output, or element of a sequence or map, that is not what was expected."""

    output: str
    reason: str
    error: Error = Error(float("inf"), float("inf"))
    index: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.output}: {self.reason}"


def compare(expected: Outputs, actual: Outputs, noise: Mapping[str, Error] | None = None) -> list[Difference]:
    """What differs; nothing when the two agree within `max(floor of the dtype, NOISE_FACTOR * noise)`.

    Both kinds of error have to. `noise` is, by output, what `measure` says of two runs of the source model that
    ought to be equal.
    """
    wanted, found = dict(_leaves(expected)), dict(_leaves(actual))
    differences = [Difference(name, "missing") for name in wanted.keys() - found.keys()]
    differences += [Difference(name, "not expected") for name in found.keys() - wanted.keys()]
    for name in wanted.keys() & found.keys():
        difference = _difference(name, wanted[name], found[name], (noise or {}).get(name, Error()))
        if difference is not None:
            differences.append(difference)
    return sorted(differences, key=lambda difference: difference.output)


def measure(expected: Outputs, actual: Outputs) -> dict[str, Error]:
    """The error of each output; infinite where the two have no elements to compare."""
    wanted, found = dict(_leaves(expected)), dict(_leaves(actual))
    result = {}
    for name in wanted.keys() | found.keys():
        comparable = name in wanted and name in found and _mismatch(wanted[name], found[name]) is None
        result[name] = _error(wanted[name], found[name]) if comparable else Error(float("inf"), float("inf"))
    return result


def floor(dtype: np.dtype[Any]) -> float:
    """The error that rounding alone may cause in a deep network: 7e-5 for float32, 4e-10 for float64."""
    return float(ml_dtypes.finfo(dtype).eps) ** 0.6 if _is_float(dtype) else 0.0


def _leaves(outputs: Any, path: str = "") -> Iterator[tuple[str, Array | None]]:
    if isinstance(outputs, Mapping):
        for key, value in outputs.items():
            yield from _leaves(value, f"{path}[{key!r}]" if path else str(key))
    elif isinstance(outputs, list | tuple):
        yield f"{path}.length", np.asarray(len(outputs))
        for position, value in enumerate(outputs):
            yield from _leaves(value, f"{path}[{position}]")
    else:
        yield path, None if outputs is None else np.asarray(outputs)


def _difference(name: str, expected: Array | None, actual: Array | None, noise: Error) -> Difference | None:
    if reason := _mismatch(expected, actual):
        return Difference(name, reason)
    if expected is None or actual is None or expected.size == 0:
        return None
    error, least = _error(expected, actual), floor(expected.dtype)
    worst = max(least, NOISE_FACTOR * _excuse(noise.worst))
    overall = max(least, min(WIDEST, NOISE_FACTOR * _excuse(noise.overall)))
    if error.worst <= worst and error.overall <= overall:
        return None
    index = tuple(int(i) for i in np.unravel_index(np.argmax(_errors(expected, actual)), expected.shape))
    reason = f"worst error {error.worst:.2g} (allowed {worst:.2g}), overall {error.overall:.2g} ({overall:.2g})"
    return Difference(name, f"{reason}: {actual[index]} instead of {expected[index]} at {list(index)}", error, index)


def _excuse(noise: float) -> float:
    """Infinite noise, two runs of the source that cannot be compared, excuses nothing."""
    return noise if np.isfinite(noise) else 0.0


def _mismatch(expected: Array | None, actual: Array | None) -> str | None:
    """Why the two cannot be compared element by element, if so."""
    if expected is None or actual is None:
        return None if expected is actual else f"{_kind(actual)} instead of {_kind(expected)}"
    if expected.shape != actual.shape:
        return f"shape {list(actual.shape)} instead of {list(expected.shape)}"
    if expected.dtype != actual.dtype and not {expected.dtype.kind, actual.dtype.kind} <= set("OUST"):
        return f"{actual.dtype} instead of {expected.dtype}"
    if _is_float(expected.dtype):
        for what, pattern in (("NaN", np.isnan), ("infinite", np.isinf)):
            wanted, found = pattern(expected), pattern(actual)
            if not np.array_equal(wanted, found):
                return f"{int(found.sum())} elements are {what} instead of {int(wanted.sum())}, or elsewhere"
        infinite = np.isinf(expected)
        if not np.array_equal(expected[infinite], actual[infinite]):
            return "infinities of the other sign"
    return None


def _error(expected: Array | None, actual: Array | None) -> Error:
    if expected is None or actual is None or expected.size == 0:
        return Error()
    errors = _errors(expected, actual)
    if not _is_float(expected.dtype):
        return Error(float(errors.mean()), float(errors.mean()))
    wanted, found, rms = _finite(expected, actual)
    return Error(float(errors.max()), float(np.sqrt(np.mean(np.abs(found - wanted) ** 2)) / rms))


def _errors(expected: Array, actual: Array) -> Array:
    """Per element: |difference| / (|expected| + rms of the output) for floats, 0 or 1 for anything else.

    The rms keeps an element near zero from dominating; the element's own size keeps a few large ones from
    hiding the rest.
    """
    if not _is_float(expected.dtype):
        return np.asarray(expected != actual, np.float64)
    wanted, found, rms = _finite(expected, actual)
    return np.asarray(np.abs(found - wanted) / (np.abs(wanted) + rms))


def _finite(expected: Array, actual: Array) -> tuple[Array, Array, float]:
    """Both in double precision, 0 where not finite, and the root mean square of the expected."""
    kind = np.complex128 if expected.dtype.kind == "c" else np.float64
    finite = np.isfinite(expected)
    wanted = np.where(finite, expected, 0).astype(kind)
    found = np.where(finite, actual, 0).astype(kind)
    rms = float(np.sqrt(np.mean(np.abs(wanted) ** 2))) or float(ml_dtypes.finfo(expected.dtype).eps)
    return wanted, found, rms


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def _kind(value: Array | None) -> str:
    return "nothing" if value is None else "a value"
