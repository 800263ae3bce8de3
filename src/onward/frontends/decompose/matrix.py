"""Linear algebra on matrices, by steps whose number the shape tells; computed in double precision."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose.loops import loop
from onward.graph.build import Builder, Tensor

MOST_STEPS = 64
MOST_COLUMNS = 128
"""For which every pair of columns is turned, again and again."""
SWEEPS = 12
"""After which no pair of so few columns is turned any more."""
TERMS = 18
"""Of the exponential series, for matrices of a norm below one half."""


def grid(op: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """The number of each row as a column, and of each column as a row."""
    return numbered(op, *sides(op, x))


def sides(op: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    rank = op.rank(x, "the matrices")
    if rank < 2:
        raise UnsupportedError("a matrix has at least two axes")
    shape = op.Shape(x)
    return op.Gather(shape, op.index(rank - 2)), op.Gather(shape, op.index(rank - 1))


def numbered(op: Builder, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """As `grid`, for so many rows and columns."""
    row, column = (op.Range(op.index(0), count, op.index(1)) for count in (rows, columns))
    return op.unsqueeze(row, [1]), op.unsqueeze(column, [0])


def triangle(op: Builder, x: Tensor, upper: bool) -> Tensor:
    """With zeros on the other side of the diagonal."""
    rows, columns = grid(op, x)
    return op.Where(rows <= columns if upper else rows >= columns, x, op.like(0, x))


def wide(x: Tensor) -> Tensor:
    return x.cast(ir.DataType.DOUBLE)


def side(op: Builder, x: Tensor, axis: int = -1, most: int = MOST_STEPS) -> int:
    """The size of matrices, which must be known: it is the number of steps."""
    size = x.dims[axis] if x.dims is not None else None
    if not isinstance(size, int):
        raise UnsupportedError("the size of the matrices has to be known, as it is the number of steps")
    if size > most:
        raise UnsupportedError(f"matrices of size {size} are too large: at most {most} is supported")
    return size


def row(op: Builder, x: Tensor, i: int) -> Tensor:
    rank = op.rank(x, "the matrices")
    return op.Slice(x, op.ints([i]), op.ints([i + 1]), op.ints([rank - 2]))


def column(op: Builder, x: Tensor, i: int) -> Tensor:
    rank = op.rank(x, "the matrices")
    return op.Slice(x, op.ints([i]), op.ints([i + 1]), op.ints([rank - 1]))


def turned(op: Builder, x: Tensor) -> Tensor:
    """Transposed."""
    rank = op.rank(x, "the matrices")
    return op.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def identity(op: Builder, like: Tensor) -> Tensor:
    size = side(op, like)
    return op.zeros_like(like) + op.constant(np.eye(size, dtype=like.dtype.numpy()))


def eliminated(op: Builder, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gauss and Jordan with the largest pivot of each column: the solution of `a x = b`, log |det a|, its sign.

    A singular matrix has no finite solution, and the sign 0.
    """
    size = side(op, a)
    a, b = wide(a), wide(b)
    log = sign = None
    numbers = op.constant(np.arange(size, dtype=np.int64).reshape(size, 1))
    for i in range(size):
        candidates = op.Where(
            op.constant(np.arange(size).reshape(size, 1) >= i), op.Abs(column(op, a, i)), op.like(-1, a)
        )
        best = op.ArgMax(candidates, axis=-2, keepdims=1)
        at_best, at_own = op.Equal(numbers, best), op.constant(np.arange(size).reshape(size, 1) == i)
        swaps = op.Not(op.Equal(best, op.index(i)))
        flip = op.squeeze(op.where(swaps, op.like(-1, a), op.like(1, a)), [-2, -1])
        sign = flip if sign is None else sign * flip
        a, b = (swapped(op, m, i, at_own, at_best) for m in (a, b))
        pivot = column(op, row(op, a, i), i)
        flat = op.squeeze(pivot, [-2, -1])
        log = op.Log(op.Abs(flat)) if log is None else log + op.Log(op.Abs(flat))
        sign = sign * op.Sign(flat)
        safe = op.where(op.Equal(pivot, op.like(0, pivot)), op.like(1, pivot), pivot)
        row_a, row_b = row(op, a, i) / safe, row(op, b, i) / pivot
        factor = op.Where(at_own, op.like(0, a), column(op, a, i))
        a = op.Where(at_own, row_a, a - factor * row_a)
        b = op.Where(at_own, row_b, b - factor * row_b)
    if log is None or sign is None:
        raise UnsupportedError("a matrix without rows is not supported")
    return b, log, sign


def swapped(op: Builder, m: Tensor, i: int, at_own: Tensor, at_other: Tensor) -> Tensor:
    """With row i, which is marked, in the place of the other that is marked, and that one in its."""
    picked = op.sum(op.Where(at_other, m, op.like(0, m)), [-2])
    return op.Where(at_own, picked, op.Where(at_other, row(op, m, i), m))


def inverse(op: Builder, a: Tensor) -> Tensor:
    return eliminated(op, a, identity(op, a))[0].cast(a.dtype)


def solve(op: Builder, a: Tensor, b: Tensor) -> Tensor:
    return eliminated(op, a, b)[0].cast(a.dtype)


def log_determinant(op: Builder, a: Tensor) -> list[Tensor]:
    """The sign, and the logarithm of the size."""
    _, log, sign = eliminated(op, a, identity(op, a))
    return [sign.cast(a.dtype), log.cast(a.dtype)]


def triangular_solve(op: Builder, a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """The solution of `a x = b`, row by row, of the triangle of a; with ones on its diagonal if it is a unit one."""
    size = side(op, a)
    dtype = b.dtype
    a, b = wide(a), wide(b)
    found: list[Tensor | None] = [None] * size
    for i in reversed(range(size)) if upper else range(size):
        rest = row(op, b, i)
        of_row = row(op, a, i)
        for k in range(i + 1, size) if upper else range(i):
            known = found[k]
            assert known is not None
            rest = rest - column(op, of_row, k) * known
        found[i] = rest if unit else rest / column(op, of_row, i)
    return op.Concat(*found, axis=-2).cast(dtype)


def cholesky(op: Builder, a: Tensor) -> Tensor:
    """Column by column, of what the columns before leave."""
    size = side(op, a)
    rest = wide(a)
    columns = []
    for i in range(size):
        own = column(op, rest, i) / op.Sqrt(column(op, row(op, rest, i), i))
        own = op.Where(op.constant(np.arange(size).reshape(size, 1) >= i), own, op.like(0, own))
        columns.append(own)
        rest = rest - own * turned(op, own)
    return op.Concat(*columns, axis=-1).cast(a.dtype)


def qr(op: Builder, a: Tensor, full: bool) -> list[Tensor]:
    """By Householder's reflections, with the signs that LAPACK gives."""
    rows, columns = side(op, a, -2), side(op, a, -1)
    r = wide(a)
    q = op.zeros_like(op.MatMul(r, turned(op, r))) + op.constant(np.eye(rows))
    for i in range(min(rows - 1, columns)):
        x = op.Where(op.constant(np.arange(rows).reshape(rows, 1) >= i), column(op, r, i), op.like(0, r))
        norm = op.Sqrt(op.sum(x * x, [-2]))
        first = row(op, x, i)
        shift = op.where(first < 0.0, -norm, norm)
        v = x + shift * op.constant(np.eye(rows)[:, i : i + 1])
        square = op.sum(v * v, [-2])
        scale = 2.0 / op.where(op.Equal(square, op.like(0, square)), op.like(1, square), square)
        r = r - v * op.MatMul(turned(op, v), r) * scale
        q = q - op.MatMul(q, v) * turned(op, v) * scale
    if not full:
        kept = min(rows, columns)
        rank = op.rank(a, "the matrices")
        q = op.Slice(q, op.ints([0]), op.ints([kept]), op.ints([rank - 1]))
        r = op.Slice(r, op.ints([0]), op.ints([kept]), op.ints([rank - 2]))
    return [q.cast(a.dtype), triangle(op, r, upper=True).cast(a.dtype)]


def lu(op: Builder, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the place from which each row came, and the row that each one was swapped with."""
    rows, columns = side(op, a, -2), side(op, a, -1)
    packed = wide(a)
    numbers = op.constant(np.arange(rows, dtype=np.int64).reshape(rows, 1))
    order = op.zeros_like(op.ReduceMax(packed, op.ints([-1]), keepdims=1)) + op.constant(
        np.arange(rows, dtype=np.float64).reshape(rows, 1)
    )
    pivots = []
    for i in range(min(rows, columns)):
        below = op.constant(np.arange(rows).reshape(rows, 1) >= i)
        best = op.ArgMax(op.Where(below, op.Abs(column(op, packed, i)), op.like(-1, packed)), axis=-2, keepdims=1)
        at_best, at_own = op.Equal(numbers, best), op.constant(np.arange(rows).reshape(rows, 1) == i)
        packed, order = (swapped(op, m, i, at_own, at_best) for m in (packed, order))
        pivots.append(op.squeeze(best, [-1]))
        own = row(op, packed, i)
        pivot = column(op, own, i)
        none = op.Equal(pivot, op.like(0, pivot))
        factor = column(op, packed, i) / op.where(none, op.like(1, pivot), pivot)
        under = op.constant(np.arange(rows).reshape(rows, 1) > i)
        right = op.constant(np.arange(columns).reshape(1, columns) > i)
        changed = op.Where(right, packed - factor * own, op.Where(op.constant(np.arange(columns) == i), factor, packed))
        packed = op.Where(under, changed, packed)
    places = op.squeeze(order, [-1]).cast(ir.DataType.INT64)
    return packed.cast(a.dtype), places, op.Concat(*pivots, axis=-1)


def orthogonal_columns(op: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """`a v` with columns at right angles, and `v`, a rotation: pairs of columns are turned until all are.

    The lengths of the columns are the singular values of `a`. In each round all columns are turned in pairs, and change
    partners as the players of a tournament do: after one round less than there are columns, all have met.
    """
    count = side(op, a, -1, MOST_COLUMNS)
    a = wide(a)
    gram_like = op.MatMul(turned(op, a), a)
    start = [a, op.zeros_like(gram_like) + op.constant(np.eye(count))]
    if count < 2:
        return start[0], start[1]
    even = count + count % 2
    if even > count:  # a column of zeros is turned with nobody
        start = [op.Concat(m, op.zeros_like(column(op, m, 0)), axis=-1) for m in start]
    half, rank = even // 2, op.rank(a, "the matrices")
    players = np.arange(even)
    first, second = players[:half], players[half:][::-1]
    ring = np.concatenate([first[1:], second[::-1]])
    moved = np.roll(ring, 1)
    seats = np.concatenate([[0], moved[: half - 1]]), moved[half - 1 :][::-1]
    order = op.constant(np.concatenate([seats[0], seats[1][::-1]]).astype(np.int64))
    pairs = op.constant(first.astype(np.int64)), op.constant(second.astype(np.int64))
    back = op.constant(np.argsort(np.concatenate([first, second])).astype(np.int64))

    def meet(number: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
        left, right = (op.Gather(given[0], side_of, axis=-1) for side_of in pairs)
        cosine, sine = _turn(op, left, right)
        found = []
        for m in given:
            left, right = (op.Gather(m, side_of, axis=-1) for side_of in pairs)
            both = op.Concat(left * cosine - right * sine, left * sine + right * cosine, axis=-1)
            found.append(op.Gather(op.Gather(both, back, axis=-1), order, axis=-1))
        return found

    found = loop(op, meet, start, rounds=op.index(SWEEPS * (even - 1)))
    if even > count:
        found = [op.Slice(m, op.ints([0]), op.ints([count]), op.ints([rank - 1])) for m in found]
    return found[0], found[1]


def _turn(op: Builder, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """The cosine and sine of the angle that puts two columns at right angles."""
    dot = op.sum(first * second, [-2])
    lengths = op.sum(second * second, [-2]) - op.sum(first * first, [-2])
    none = op.Equal(dot, op.like(0, dot))
    ratio = lengths / op.where(none, op.like(1, dot), dot * 2.0)
    side_of = op.where(ratio < 0.0, op.like(-1, ratio), op.like(1, ratio))
    tangent = op.where(none, op.like(0, dot), side_of / (op.Abs(ratio) + op.Sqrt(ratio * ratio + 1.0)))
    cosine = 1.0 / op.Sqrt(tangent * tangent + 1.0)
    return cosine, cosine * tangent


def singular_values(op: Builder, a: Tensor) -> Tensor:
    """The largest first."""
    tall = a if side(op, a, -1, 10**9) <= side(op, a, -2, 10**9) else turned(op, a)
    return _in_order(op, _lengths(op, orthogonal_columns(op, tall)[0]), largest=True).cast(a.dtype)


def eigenvalues(op: Builder, a: Tensor) -> Tensor:
    """Of symmetric matrices, the smallest first: the singular values of what is moved far enough to be positive."""
    z = wide(a)
    bound = op.ReduceMax(op.sum(op.Abs(z), [-2], keepdims=False), op.ints([-1]), keepdims=1)
    moved = z + identity(op, z) * op.unsqueeze(bound, [-1])
    lengths = _lengths(op, orthogonal_columns(op, moved)[0])
    return _in_order(op, lengths - bound, largest=False).cast(a.dtype)


def _lengths(op: Builder, columns: Tensor) -> Tensor:
    return op.Sqrt(op.sum(columns * columns, [-2], keepdims=False))


def _in_order(op: Builder, x: Tensor, largest: bool) -> Tensor:
    count = op.Gather(op.Shape(x), op.ints([-1]))
    return op.many("TopK", 2, x, count, axis=-1, largest=int(largest), sorted=1)[0]


def pseudo_inverse(op: Builder, a: Tensor, absolute: Tensor, relative: Tensor) -> Tensor:
    """Without the singular values below the larger of the two limits, the second as a share of the largest."""
    is_tall = side(op, a, -1, 10**9) <= side(op, a, -2, 10**9)
    product, rotation = orthogonal_columns(op, a if is_tall else turned(op, a))
    squares = op.sum(product * product, [-2])
    lengths = op.Sqrt(squares)
    limit = op.Max(wide(absolute), wide(relative) * op.ReduceMax(lengths, op.ints([-1]), keepdims=1))
    kept = lengths > limit
    scale = op.where(kept, 1.0 / op.where(kept, squares, op.like(1, squares)), op.like(0, squares))
    found = op.MatMul(rotation * scale, turned(op, product))
    return (found if is_tall else turned(op, found)).cast(a.dtype)


def exponential(op: Builder, a: Tensor) -> Tensor:
    """The series of a matrix that is halved until it is small, squared as often."""
    z = wide(a)
    norm = op.ReduceMax(op.sum(op.Abs(z), [-2]), op.ints([-1]), keepdims=1)
    halvings = op.Max(op.Ceil(op.Log(op.Max(norm, op.like(1e-300, norm))) * (1 / math.log(2))) + 1.0, op.like(0, norm))
    share = op.Pow(op.like(2.0, halvings), -halvings)
    one = identity(op, z)
    total = one
    for k in range(TERMS, 0, -1):  # no constant beside a product: ONNX Runtime would join them, in float32
        total = one + op.MatMul(z * (share / float(k)), total)
    rounds = op.ReduceMax(halvings, keepdims=0).cast(ir.DataType.INT64)

    def square(number: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
        again = number.cast(ir.DataType.DOUBLE) < halvings
        return [op.Where(again, op.MatMul(given[0], given[0]), given[0])]

    return loop(op, square, [total], rounds=rounds)[0].cast(a.dtype)
