"""Sums and the like over rows that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor
from onward.graph.scan import scan

REDUCTIONS = {"Sum": "add", "Prod": "mul", "Max": "max", "Min": "min"}


def _start(op: Writer, x: Tensor, kind: str) -> Tensor:
    """What an empty group has."""
    if kind in ("Sum", "Prod"):
        return op.like(0 if kind == "Sum" else 1, x)
    limits = np.iinfo(x.dtype.numpy()) if x.dtype.numpy().kind in "iu" else np.finfo(x.dtype.numpy())
    return op.like(limits.min if kind == "Max" else limits.max, x)


def grouped(op: Writer, x: Tensor, groups: Tensor, count: Tensor, kind: str, start: Tensor | None = None) -> Tensor:
    """One row a group; rows of a negative group are left out."""
    rank = op.rank(groups, "the groups")
    places = op.flat(op.int64(groups))
    inner = op.Slice(op.Shape(x), op.ints([rank]), op.ints([FAR]))
    rows = op.Reshape(x, op.Concat(op.ints([-1]), inner, axis=0))
    size = op.flat(op.int64(count))
    one_more = size + op.ints([1])
    begin = _start(op, x, kind) if start is None else start
    empty = op.Expand(begin, op.Concat(one_more, inner, axis=0))
    places = op.where(places < op.index(0), size, places)
    summed = op.ScatterND(empty, op.unsqueeze(places, [1]), rows, reduction=REDUCTIONS[kind])
    return op.Slice(summed, op.ints([0]), size, op.ints([0]))


def _unsorted(kind: str) -> Callable[..., Tensor]:
    def function(op: Writer, x: Tensor, groups: Tensor, count: Tensor) -> Tensor:
        return grouped(op, x, groups, count, kind)

    return function


def _sorted(kind: str) -> Callable[..., Tensor]:
    def function(op: Writer, x: Tensor, groups: Tensor) -> Tensor:
        return _by_last(op, x, groups, kind)

    return function


def _by_last(op: Writer, x: Tensor, groups: Tensor, kind: str) -> Tensor:
    """As many groups as the last one says; a group without rows has 0 (1 for products)."""
    last = op.Gather(op.int64(groups), op.ints([-1])) + op.ints([1])
    found = grouped(op, x, groups, last, kind)
    if kind in ("Sum", "Prod"):
        return found
    filled = _counts(op, x, groups, last) > 0
    return op.where(filled, found, op.like(0, x))


def _counts(op: Writer, x: Tensor, groups: Tensor, count: Tensor) -> Tensor:
    """How many rows each group has, as columns beside them."""
    ones = op.Expand(op.index(1), op.Shape(op.int64(groups)))
    counted = grouped(op, ones, groups, count, "Sum")
    rank = op.rank(x, "the rows") - op.rank(groups, "the groups")
    return op.unsqueeze(counted, list(range(1, rank + 1)))


for _kind in REDUCTIONS:
    rule(f"UnsortedSegment{_kind}")(_unsorted(_kind))
    rule(f"Segment{_kind}")(_sorted(_kind))
    rule(f"Segment{_kind}V2")(_unsorted(_kind))


@rule("SegmentMean")
def segment_mean(op: Writer, x: Tensor, groups: Tensor) -> Tensor:
    last = op.Gather(op.int64(groups), op.ints([-1])) + op.ints([1])
    counts = _counts(op, x, groups, last)
    return grouped(op, x, groups, last, "Sum") / op.Max(counts, op.index(1)).cast(x.dtype)


_OVER_CHOSEN = ("SparseSegmentMean", "SparseSegmentSum", "SparseSegmentSqrtN")


@rule(*_OVER_CHOSEN, *(f"{kind}WithNumSegments" for kind in _OVER_CHOSEN))
def sparse_segment(op: Writer, x: Tensor, rows: Tensor, groups: Tensor, count: Tensor | None = None) -> Tensor:
    """Over chosen rows."""
    chosen = op.Gather(x, rows)
    last = op.Gather(op.int64(groups), op.ints([-1])) + op.ints([1]) if count is None else op.flat(op.int64(count))
    total = grouped(op, chosen, groups, last, "Sum")
    if op.operation.type.startswith("SparseSegmentSum"):
        return total
    counts = op.Max(_counts(op, chosen, groups, last), op.index(1)).cast(x.dtype)
    return total / (op.Sqrt(counts) if "SqrtN" in op.operation.type else counts)


@rule("DenseBincount", "Bincount")
def bincount(op: Writer, x: Tensor, size: Tensor, weights: Tensor, *, binary_output: bool = False) -> Tensor:
    """Of all numbers, or where there are rows of each row by itself; those beyond the size are left out."""
    if op.rank(x, "what is counted") != 2 or op.operation.type != "DenseBincount":
        return bins(op, x, size, weights, binary_output)
    rows = op.Slice(op.Shape(x), op.ints([0]), op.ints([1]))
    row = op.unsqueeze(op.Range(op.index(0), op.squeeze(rows, [0]), op.index(1)), [1])
    return bins(op, x, size, weights, binary_output, row, rows)


def bins(
    op: Writer,
    x: Tensor,
    size: Tensor,
    weights: Tensor,
    binary: bool,
    row: Tensor | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """How often each number is there; with `row`, the row of each number, in each of `rows`."""
    whole, count = op.int64(x), op.flat(op.int64(size))
    within = op.And(whole >= op.index(0), whole < count)
    places, size = whole, count
    if row is not None and rows is not None:
        places, size = whole + row * count, count * rows
    weighted = weights.sizes is None or 0 not in weights.sizes
    each = op.flat(weights) if weighted else op.Expand(op.like(1, weights), op.flat(op.Size(x)))
    counted = grouped(op, each, op.flat(op.where(within, places, op.index(-1))), size, "Sum")
    if rows is not None:
        counted = op.Reshape(counted, op.Concat(rows, count, axis=0))
    return op.Min(counted, op.like(1, counted)) if binary else counted


@rule("Cumprod")
def cumprod(op: Writer, x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return _running(op, x, axis, exclusive, reverse, 1, lambda a, b: op.Mul(a, b))


@rule("CumulativeLogsumexp")
def cumulative_logsumexp(
    op: Writer, x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    def joined(a: Tensor, b: Tensor) -> Tensor:
        """The larger one, and what the smaller adds to it."""
        high = op.Max(a, b)
        level = op.where(op.IsInf(high), op.like(0, high), high)
        return op.Log(op.Exp(a - level) + op.Exp(b - level)) + level

    return _running(op, x, axis, exclusive, reverse, float("-inf"), joined)


def _running(
    op: Writer,
    x: Tensor,
    axis: Tensor,
    exclusive: bool,
    reverse: bool,
    neutral: float,
    join: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """A running result along an axis, by a scan."""
    where = op.axis(op.numbers(axis, "the axis")[0], op.rank(x, "what is accumulated"))
    first = op.squeeze(op.Slice(x, op.ints([0]), op.ints([1]), op.ints([where])), [where])
    start = op.Expand(op.like(neutral, x), op.Shape(first))

    def step(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        total = join(*states, *rows)
        return [total], [states[0] if exclusive else total]

    return scan(op, step, [start], [x], axis=where, backwards=reverse)[1]
