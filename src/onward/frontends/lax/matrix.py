"""Linear algebra, one row or column after the other, in double precision: few nodes for matrices of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.decompose.eigen import singular, symmetric
from onward.frontends.decompose.loops import loop
from onward.frontends.decompose.matrix import turned, wide
from onward.frontends.lax.elementwise import BOOL, INT32, INT64
from onward.frontends.lax.sizes import size, vector
from onward.frontends.writer import Writer
from onward.graph.build import Tensor


def side(x: Tensor, axis: int = -1) -> int:
    length = x.dims[axis] if x.dims is not None else None
    if not isinstance(length, int):
        raise UnsupportedError("the size of matrices has to be known; give a number for it")
    return length


def counting(op: Writer, length: int, column: bool) -> Tensor:
    """0, 1, 2, … as a column or as a row."""
    return op.constant(np.arange(length, dtype=np.int64).reshape((-1, 1) if column else (1, -1)))


def zeros(op: Writer, like: Tensor, rows: int, columns: int) -> Tensor:
    """As many matrices of another size."""
    outer = [size(op, like, axis) for axis in range(op.rank(like, "matrices") - 2)]
    return op.Expand(op.constant(np.zeros((1, 1))), vector(op, [*outer, rows, columns]))


def _triangle(op: Writer, x: Tensor, lower: bool, strict: bool) -> Tensor:
    rows, columns = side(x, -2), side(x)
    corner = np.tril(np.ones((rows, columns), bool), -int(strict))
    corner = corner if lower else np.triu(np.ones((rows, columns), bool), int(strict))
    return op.where(op.constant(corner), x, 0.0)


def triangular_solve(
    op: Writer, a: Tensor, b: Tensor, *, left: bool, lower: bool, transpose: bool, unit: bool
) -> Tensor:
    """`a x = b`, or `x a = b`, for a triangle of `a` or of it transposed."""
    dtype = b.dtype
    a, b = wide(a), wide(b)
    if transpose:
        a, lower = turned(op, a), not lower
    if not left:
        a, lower, b = turned(op, a), not lower, turned(op, b)
    count = side(a)
    rest = _triangle(op, a, lower, strict=True)
    diagonal = None if unit else op.sum(op.where(op.constant(np.eye(count, dtype=bool)), a, 0.0), [-1])
    rows = counting(op, count, column=True)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        (x,) = states
        at = op.unsqueeze(number if lower else op.Sub(op.index(count - 1), number), [0])
        found = op.Gather(b, at, axis=-2) - op.MatMul(op.Gather(rest, at, axis=-2), x)
        if diagonal is not None:
            found = found / op.Gather(diagonal, at, axis=-2)
        return [op.Where(op.Equal(rows, at), found, x)]

    x = loop(op, step, [op.zeros_like(b)], rounds=op.index(count))[0]
    return (x if left else turned(op, x)).cast(dtype)


def cholesky(op: Writer, a: Tensor, symmetrize: bool) -> Tensor:
    """A lower triangle; no numbers at all where the matrix is not positive."""
    z = wide(a)
    z = (z + turned(op, z)) * 0.5 if symmetrize else z
    count = side(a)
    rows, columns = counting(op, count, column=True), counting(op, count, column=False)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        (found,) = states
        at = op.unsqueeze(number, [0])
        rest = op.Gather(z, at, axis=-1) - op.MatMul(found, turned(op, op.Gather(found, at, axis=-2)))
        column = op.where(rows >= at, rest / op.Sqrt(op.Gather(rest, at, axis=-2)), 0.0)
        return [op.Where(op.Equal(columns, at), column, found)]

    found = loop(op, step, [op.zeros_like(z)], rounds=op.index(count))[0]
    failed = op.reduced("ReduceMax", op.Not(op.Abs(found) < math.inf).cast(INT32), [-2, -1], keepdims=True).cast(BOOL)
    return op.where(failed, math.nan, found).cast(a.dtype)


def lu(op: Writer, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the row that each one was swapped with, and where each row came from, as int32."""
    height, width = side(a, -2), side(a)
    rows, columns = counting(op, height, column=True), counting(op, width, column=False)
    z = wide(a)
    order = zeros(op, z, height, 1).cast(INT64) + rows
    steps = min(height, width)
    places = counting(op, steps, column=True)
    pivots = zeros(op, z, steps, 1).cast(INT64)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        packed, order, pivots = states
        at = op.unsqueeze(number, [0])
        sizes = op.where(rows >= at, op.Abs(op.Gather(packed, at, axis=-1)), -1.0)
        best = op.ArgMax(sizes, axis=-2, keepdims=1)
        swap = op.Where(op.Equal(rows, at), best, op.Where(op.Equal(rows, best), at, rows))
        packed = op.GatherElements(packed, op.Expand(swap, op.Shape(packed)), axis=-2)
        order = op.GatherElements(order, swap, axis=-2)
        own, under = op.Gather(packed, at, axis=-2), rows > at
        pivot = op.Gather(own, at, axis=-1)
        factor = op.Gather(packed, at, axis=-1) / op.where(op.Equal(pivot, 0), 1.0, pivot)
        changed = op.where(columns > at, packed - factor * own, op.Where(op.Equal(columns, at), factor, packed))
        return [op.Where(under, changed, packed), order, op.Where(op.Equal(places, at), best, pivots)]

    packed, order, pivots = loop(op, step, [z, order, pivots], rounds=op.index(steps))
    rank = op.rank(a, "matrices")
    swapped, sources = (op.squeeze(x, [rank - 1]).cast(INT32) for x in (pivots, order))
    return packed.cast(a.dtype), swapped, sources


def pivots_to_permutation(op: Writer, pivots: Tensor, length: int) -> Tensor:
    """Where each row came from, of the row that each one was swapped with."""
    rank = op.rank(pivots, "pivots")
    given = op.int64(pivots)
    own = op.constant(np.arange(length, dtype=np.int64))
    start = op.Expand(own, vector(op, [*(size(op, pivots, axis) for axis in range(rank - 1)), length]))

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        (order,) = states
        at = op.unsqueeze(number, [0])
        best = op.Gather(given, at, axis=-1)
        swap = op.Where(op.Equal(own, at), best, op.Where(op.Equal(own, best), at, own))
        return [op.GatherElements(order, op.Expand(swap, op.Shape(order)), axis=-1)]

    return loop(op, step, [start], rounds=op.index(side(pivots)))[0].cast(INT32)


def reflections(op: Writer, a: Tensor) -> tuple[Tensor, Tensor]:
    """Householder's, as LAPACK packs them: R with the vectors below it, and a factor for each."""
    height, width = side(a, -2), side(a)
    rows, columns = counting(op, height, column=True), counting(op, width, column=False)
    z = wide(a)
    steps = min(height, width)
    places = counting(op, steps, column=False)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        packed, factors = states
        at = op.unsqueeze(number, [0])
        column = op.Gather(packed, at, axis=-1)
        first = op.Gather(column, at, axis=-2)
        below = op.where(rows > at, column, 0.0)
        square = op.sum(below * below, [-2])
        norm = op.Sqrt(first * first + square)
        below_zero = op.Or(first < 0.0, op.like(1, first) / first < 0.0)  # LAPACK takes the sign of -0.0, too
        beta = op.Where(below_zero, norm, -norm)
        none = op.Equal(square, 0)
        factor = op.where(none, 0.0, (beta - first) / op.where(none, 1.0, beta))
        vector_below = below / op.where(none, 1.0, first - beta)
        full = op.Where(op.Equal(rows, at), op.like(1, below), vector_below)
        right = packed - full * op.MatMul(turned(op, full), packed) * factor
        own = op.Where(op.Equal(rows, at), op.Where(none, first, beta), op.Where(rows > at, vector_below, column))
        packed = op.Where(columns > at, right, op.Where(op.Equal(columns, at), own, packed))
        return [packed, op.Where(op.Equal(places, at), factor, factors)]

    packed, factors = loop(op, step, [z, zeros(op, z, 1, steps)], rounds=op.index(steps))
    rank = op.rank(a, "matrices")
    return packed.cast(a.dtype), op.squeeze(factors, [rank - 2]).cast(a.dtype)


def product_of_reflections(op: Writer, packed: Tensor, factors: Tensor, columns: int | None = None) -> Tensor:
    """The first columns of the product of reflections that are packed in a matrix."""
    height = side(packed, -2)
    width = side(packed) if columns is None else columns
    z, rank = wide(packed), op.rank(packed, "matrices")
    each = op.unsqueeze(wide(factors), [rank - 2])
    rows = counting(op, height, column=True)
    steps = side(factors)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        (q,) = states
        at = op.unsqueeze(op.Sub(op.index(steps - 1), number), [0])
        column = op.Gather(z, at, axis=-1)
        full = op.where(rows > at, column, op.Where(op.Equal(rows, at), op.like(1, column), op.like(0, column)))
        return [q - full * op.MatMul(turned(op, full), q) * op.Gather(each, at, axis=-1)]

    start = zeros(op, z, height, width) + op.constant(np.eye(height, width))
    return loop(op, step, [start], rounds=op.index(steps))[0].cast(packed.dtype)


def qr(op: Writer, a: Tensor, full: bool) -> tuple[Tensor, Tensor]:
    height, width = side(a, -2), side(a)
    packed, factors = reflections(op, wide(a))
    count = height if full else min(height, width)
    q = product_of_reflections(op, packed, factors, count)
    r = _triangle(op, packed, lower=False, strict=False)
    rank = op.rank(a, "matrices")
    r = r if count == height else op.Slice(r, op.ints([0]), op.ints([count]), op.ints([rank - 2]))
    return q.cast(a.dtype), r.cast(a.dtype)


def svd(op: Writer, a: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Left vectors as columns, values, right vectors as rows; signs of vectors are no function of the matrix."""
    values, left, right = singular(op, wide(a))
    height, width = side(a, -2), side(a)
    if full and height > width:
        left = _completed(op, left)
    if full and width > height:
        right = _completed(op, right)
    return left.cast(a.dtype), values.cast(a.dtype), turned(op, right).cast(a.dtype)


def _completed(op: Writer, vectors: Tensor) -> Tensor:
    """With vectors at right angles to all that there are."""
    rank, count = op.rank(vectors, "matrices"), side(vectors)
    q, _ = qr(op, vectors, full=True)
    others = op.Slice(q, op.ints([count]), op.ints([side(vectors, -2)]), op.ints([rank - 1]))
    return op.Concat(vectors, others, axis=-1)


def eigh(op: Writer, a: Tensor, lower: bool) -> tuple[Tensor, Tensor]:
    """Vectors as columns, and values from the smallest up, of what one triangle says."""
    values, vectors = symmetric(op, wide(a if lower else turned(op, a)))
    return vectors.cast(a.dtype), values.cast(a.dtype)


def tridiagonal_solve(op: Writer, below: Tensor, diagonal: Tensor, above: Tensor, b: Tensor) -> Tensor:
    """By L. Thomas: down, eliminating what is below the diagonal, and up again."""
    rank = op.rank(b, "right sides")
    low, mid, high = (op.unsqueeze(wide(x), [rank - 1]) for x in (below, diagonal, above))
    z = wide(b)
    count = side(b, -2)
    rows = counting(op, count, column=True)

    def down(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        upper, right = states
        at, before = op.unsqueeze(number, [0]), op.unsqueeze(op.Max(number - 1, op.index(0)), [0])
        factor = op.where(op.Equal(number, 0), 0.0, op.Gather(low, at, axis=-2))
        scale = op.Gather(mid, at, axis=-2) - factor * op.Gather(upper, before, axis=-2)
        new_upper = op.Gather(high, at, axis=-2) / scale
        new_right = (op.Gather(z, at, axis=-2) - factor * op.Gather(right, before, axis=-2)) / scale
        here = op.Equal(rows, at)
        return [op.Where(here, new_upper, upper), op.Where(here, new_right, right)]

    upper, right = loop(op, down, [op.zeros_like(high), op.zeros_like(z)], rounds=op.index(count))

    def up(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        (x,) = states
        place = op.Sub(op.index(count - 1), number)
        at, after = op.unsqueeze(place, [0]), op.unsqueeze(op.Min(place + 1, op.index(count - 1)), [0])
        follow = op.where(op.Equal(number, 0), 0.0, op.Gather(upper, at, axis=-2))
        found = op.Gather(right, at, axis=-2) - follow * op.Gather(x, after, axis=-2)
        return [op.Where(op.Equal(rows, at), found, x)]

    return loop(op, up, [op.zeros_like(z)], rounds=op.index(count))[0].cast(b.dtype)
