"""The distance of two arrays of one shape, found in one pass over them that holds a small part in double precision."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 1 << 16
"""Elements looked at together: their copies in double precision stay in the cache."""
FILL = 1e4
"""A value as large as this that several elements have, and so many times larger than all others, fills what is masked:
it is no part of the scale, next to which the others would look small."""
LOGIT_CLASSES = range(5, 100_001)


@dataclass(frozen=True)
class Error:
    """How far an output is off: a distance that decides, or a noise that such distances are held against."""

    worst: float = 0.0
    """Of a single element, as `Metrics.worst`."""
    overall: float = 0.0
    """Of the output as a whole, as `Metrics.overall`."""
    scale: float = 0.0
    """The root mean square of the output on ordinary data; 0 where it is not known."""
    samples: int = 0
    """How many elements it was measured on, over all runs."""
    steps: bool = False
    """Whether it is in steps of a quantised output."""
    how: str = ""
    """What a noise was measured by, in a few words."""

    def __or__(self, other: Error) -> Error:
        """The larger of the two, of each kind."""
        how = other.how if other.overall > self.overall or not self.how else self.how
        return Error(
            max(self.worst, other.worst),
            max(self.overall, other.overall),
            self.scale or other.scale,
            self.samples + other.samples,
            self.steps or other.steps,
            how,
        )


INCOMPARABLE = Error(math.inf, math.inf)


@dataclass(frozen=True)
class Limit:
    """Beyond what an element counts as mismatching: `worst`, or `atol + rtol * |expected|` where these are given."""

    worst: float = math.inf
    atol: float | None = None
    rtol: float = 0.0


@dataclass
class Distance:
    """What one pass over two arrays found; elements that are not finite on both sides are left out."""

    error: Error = Error()
    index: tuple[int, ...] | None = None
    """Of the worst element."""
    max_abs: float = 0.0
    largest: float = 0.0
    """max |expected|."""
    mismatched: float = 0.0
    """The share of elements beyond the limit."""
    furthest: float = 0.0
    """Where absolute and relative tolerances are given: the largest |difference| over what they allow."""
    ulp: float | None = None
    cosine: float | None = None
    histogram: tuple[tuple[float, ...], tuple[int, ...]] | None = None

    @property
    def over_scale(self) -> float:
        return ratio(self.max_abs, self.largest)

    @property
    def snr_db(self) -> float | None:
        """Infinite where the two are equal."""
        if self.cosine is None or self.error.steps:
            return None
        return -20 * math.log10(self.error.overall) if self.error.overall else math.inf


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def is_text(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "OUST"


def epsilon(dtype: np.dtype[Any]) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


def digits_apart(one: float, other: float) -> int:
    """How many digits tell two numbers apart; two at least, and two where nothing does."""
    return next((digits for digits in range(2, 8) if f"{one:.{digits}g}" != f"{other:.{digits}g}"), 2)


def ratio(value: float, base: float) -> float:
    if base:
        return value / base
    return math.inf if value else 0.0


def distance(
    expected: Array, actual: Array, *, quiet: float = 0.0, steps: bool = False, limit: Limit | None = None
) -> Distance:
    """Compare two arrays of one shape and dtype.

    `quiet` is the least root mean square that an output of floats is measured by, `steps` says that integers are steps
    of a quantised scale. Without a `limit` only what decides is computed.
    """
    if expected.size == 0:
        return Distance()
    if is_float(expected.dtype):
        return _floats(expected, actual, quiet, limit)
    if is_text(expected.dtype):
        return _text(expected, actual)
    return _integers(expected, actual, steps, limit)


def rms(array: Array) -> float:
    """The root mean square of the finite elements of an array of floats."""
    return _size(_flat(array))[0] if array.size else 0.0


def top(expected: Array, actual: Array) -> tuple[float, float] | tuple[None, None]:
    """Where the two look like logits: how often the best class agrees, and is among the other's best five."""
    if expected.ndim != 2 or expected.shape[1] not in LOGIT_CLASSES or not len(expected):
        return None, None
    best = np.argmax(expected, axis=1)
    first = float(np.mean(best == np.argmax(actual, axis=1)))
    value = np.take_along_axis(actual, best[:, None], axis=1)
    return first, float(np.mean(np.count_nonzero(actual > value, axis=1) < 5))


def _floats(expected: Array, actual: Array, quiet: float, limit: Limit | None) -> Distance:
    parts = 2 if expected.dtype.kind == "c" else 1
    wanted, found = _flat(expected), _flat(actual)
    own, largest, filled = _size(wanted)
    scale = max(own, quiet) or epsilon(wanted.dtype)
    tally = _Tally(scale, largest, limit, _edges(wanted.dtype) if limit else (), filled)
    for start in range(0, wanted.size, CHUNK):
        tally.add(start, wanted[start : start + CHUNK], found[start : start + CHUNK])
    overall = math.sqrt(tally.squares / wanted.size)
    made = Distance(
        Error(tally.worst, overall, own, expected.size),
        _unravel(tally.position // parts, expected.shape) if tally.worst else None,
        tally.max_abs,
        largest,
        tally.beyond / wanted.size,
        tally.furthest,
    )
    if limit:
        norms = math.sqrt(tally.expected_squares) * math.sqrt(tally.actual_squares)
        made.cosine = tally.product / norms if norms and math.isfinite(norms) else None
        made.ulp = tally.ulp
        made.histogram = tally.edges, tuple(tally.bins)
    return made


@dataclass
class _Tally:
    scale: float
    largest: float
    limit: Limit | None
    edges: tuple[float, ...]
    filled: bool
    """Whether the largest elements are no part of the scale."""
    worst: float = 0.0
    position: int = 0
    squares: float = 0.0
    """Of the differences; like the other two in units of the scale."""
    expected_squares: float = 0.0
    actual_squares: float = 0.0
    product: float = 0.0
    max_abs: float = 0.0
    beyond: int = 0
    furthest: float = 0.0
    ulp: float = 0.0
    bins: list[int] = field(default_factory=list)

    def add(self, start: int, expected: Array, actual: Array) -> None:
        wanted, found = expected.astype(np.float64), actual.astype(np.float64)
        finite = np.isfinite(wanted) & np.isfinite(found)
        if not finite.all():
            wanted[~finite] = found[~finite] = 0.0
        off = np.abs(found - wanted)
        size = np.abs(wanted)
        relative = off / (size + self.scale)
        position = int(np.argmax(relative))
        if relative[position] > self.worst:
            self.worst, self.position = float(relative[position]), start + position
        self.max_abs = max(self.max_abs, float(off.max()))
        scaled = off / (np.where(size == self.largest, size, self.scale) if self.filled else self.scale)
        self.squares += _dot(scaled, scaled)
        if self.limit:
            self._inform(wanted, found, off, size, relative)
            self.ulp = max(self.ulp, _ulps(expected, actual, finite))

    def _inform(self, wanted: Array, found: Array, off: Array, size: Array, relative: Array) -> None:
        assert self.limit is not None
        if self.limit.atol is None:
            self.beyond += int(np.count_nonzero(relative > self.limit.worst))
        else:
            allowed = self.limit.atol + self.limit.rtol * size
            self.beyond += int(np.count_nonzero(off > allowed))
            with np.errstate(divide="ignore", invalid="ignore"):
                self.furthest = max(self.furthest, float(np.nan_to_num(off / allowed, posinf=np.inf).max()))
        wanted, found = wanted / self.scale, found / self.scale
        self.expected_squares += _dot(wanted, wanted)
        self.actual_squares += _dot(found, found)
        self.product += _dot(wanted, found)
        self.bins = [a + b for a, b in zip(self.bins or [0] * (len(self.edges) - 1), self._count(off), strict=True)]

    def _count(self, off: Array) -> Iterator[int]:
        """The exactly equal, then how many are below each inner edge; what is beyond the last one is in the last."""
        unit = self.largest or 1.0
        above = [int(np.count_nonzero(off))]
        above += [int(np.count_nonzero(off >= unit * 10.0**edge)) for edge in self.edges[2:-1]]
        yield off.size - above[0]
        yield from (here - beyond for here, beyond in zip(above, [*above[1:], 0], strict=True))


def _integers(expected: Array, actual: Array, steps: bool, limit: Limit | None) -> Distance:
    differs = expected != actual
    share = float(np.mean(differs))
    if not share:
        return Distance(
            Error(samples=expected.size, steps=steps), None, 0.0, float(np.abs(expected.astype(float)).max())
        )
    off, size = _apart(expected, actual), np.abs(expected.astype(np.float64))
    position = int(np.argmax(off))
    made = Distance(index=_unravel(position, expected.shape), max_abs=float(off.max()), largest=float(size.max()))
    made.mismatched = share
    made.error = Error(share, share, 0.0, expected.size)
    if steps:
        made.error = Error(made.max_abs, float(off.mean()), 0.0, expected.size, True)
        made.mismatched = float(np.mean(off > (limit.worst if limit else 0.0)))
    if limit and limit.atol is not None:
        allowed = limit.atol + limit.rtol * size
        made.mismatched = float(np.mean(off > allowed))
        with np.errstate(divide="ignore", invalid="ignore"):
            made.furthest = float(np.nan_to_num(off / allowed, posinf=np.inf).max())
    return made


def _apart(one: Array, other: Array) -> Array:
    """|difference| of integers, which never becomes 0 by rounding: as doubles, 2**53 and 2**53 + 1 are equal."""
    whole = np.dtype(np.uint64 if one.dtype == np.uint64 else np.int64)
    one, other = one.astype(whole), other.astype(whole)
    return (np.maximum(one, other).view(np.uint64) - np.minimum(one, other).view(np.uint64)).astype(np.float64)


def _text(expected: Array, actual: Array) -> Distance:
    differs = np.asarray(expected.astype(object) != actual.astype(object), bool)
    share = float(np.mean(differs))
    index = _unravel(int(np.argmax(differs)), expected.shape) if share else None
    return Distance(
        Error(share, share, 0.0, expected.size), index, mismatched=share, furthest=math.inf if share else 0.0
    )


def _flat(array: Array) -> Array:
    """One axis; the two parts of a complex number one after the other."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _size(flat: Array) -> tuple[float, float, bool]:
    """The root mean square and the largest size of what is finite, and whether the first is without a fill value."""
    largest = _largest(flat)
    if largest >= FILL:
        ordinary = flat[np.abs(flat) != largest]
        if ordinary.size and flat.size - ordinary.size > 1 and 0 < (rest := _largest(ordinary)) < largest / FILL:
            return _rms(ordinary, rest), largest, True
    return _rms(flat, largest), largest, False


def _largest(flat: Array) -> float:
    found = 0.0
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK].astype(np.float64)
        found = max(found, float(np.max(np.abs(part), where=np.isfinite(part), initial=0.0)))
    return found


def _rms(flat: Array, largest: float) -> float:
    if not largest:
        return 0.0
    squares = 0.0
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK].astype(np.float64) / largest
        if not np.isfinite(part).all():
            part[~np.isfinite(part)] = 0.0
        squares += _dot(part, part)
    return largest * math.sqrt(squares / flat.size)


def _dot(one: Array, other: Array) -> float:
    """The inner product without the threads of BLAS, which cost more than they bring at this length."""
    return float(np.einsum("i,i->", one, other))


def _edges(dtype: np.dtype[Any]) -> tuple[float, ...]:
    """Powers of ten from below the dtype's precision to ten times the scale."""
    return tuple(float(edge) for edge in range(math.floor(math.log10(epsilon(dtype))) - 3, 2))


def _ulps(expected: Array, actual: Array, finite: Array) -> float:
    """The largest number of representable values between two elements."""
    bits: np.dtype[Any] = np.dtype(f"i{expected.dtype.itemsize}")
    lowest = np.iinfo(bits).min
    raw = (np.ascontiguousarray(array).view(bits) for array in (expected, actual))
    one, other = (np.where(r < 0, lowest - r, r) for r in raw)
    unsigned = np.dtype(f"u{bits.itemsize}")
    apart = np.maximum(one, other).view(unsigned) - np.minimum(one, other).view(unsigned)
    return float(np.max(apart, where=finite, initial=0))


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(position, shape))
