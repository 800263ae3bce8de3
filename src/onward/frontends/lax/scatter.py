"""Writing windows at places that are computed: what is there is replaced, or combined with what is written.

ONNX Runtime's ScatterND loses updates where several threads add to one place, so that those which may meet are written
by ScatterElements, one after the other, as XLA does on a processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose.loops import loop
from onward.frontends.lax.elementwise import FLOAT, HALVES, INT32, maximum, minimum
from onward.frontends.lax.index import Windows, bounded, component, replaced, window_at
from onward.frontends.lax.sizes import Size, minus, product, reshaped, scalar, size, sizes, vector
from onward.frontends.writer import Writer
from onward.graph.build import Number, Tensor

Body = Callable[[Tensor, Tensor], Tensor]
"""Of what is there and what is written, of one shape: what is there then."""

COMBINED: dict[str, Callable[[Writer, Tensor, Tensor], Tensor]] = {
    "set": lambda op, old, new: new,
    "add": lambda op, old, new: op.Or(old, new) if old.dtype == ir.DataType.BOOL else old + new,
    "mul": lambda op, old, new: op.And(old, new) if old.dtype == ir.DataType.BOOL else old * new,
    "min": minimum,
    "max": maximum,
}


def neutral(kind: str, dtype: ir.DataType) -> Number:
    """What changes nothing."""
    if kind in ("add", "mul"):
        return int(kind == "mul")
    if dtype == ir.DataType.BOOL:
        return kind == "min"
    if not dtype.is_integer():
        return math.inf if kind == "min" else -math.inf
    limits = np.iinfo(dtype.numpy())
    return int(limits.max if kind == "min" else limits.min)


def scatter(
    op: Writer,
    x: Tensor,
    indices: Tensor,
    updates: Tensor,
    windows: Windows,
    kind: str | Body = "set",
    mode: str = "fill",
    unique: bool = False,
) -> Tensor:
    """With windows of the size that the updates have, at each place.

    `kind` is set, add, mul, min or max, or a function of what is there and what is written.
    """
    dtype = x.dtype
    if isinstance(kind, str) and kind != "set" and (dtype in HALVES or dtype == ir.DataType.BOOL):
        wide = FLOAT if dtype in HALVES else INT32
        kind = {"add": "max", "mul": "min"}.get(kind, kind) if wide == INT32 else kind
        y = scatter(op, x.cast(wide), indices, updates.cast(wide), windows, kind, mode, unique)
        return y.cast(dtype)
    rank, outer = op.rank(x, "what is written to"), op.rank(indices, "indices") - 1
    if not windows.named and outer:
        raise UnsupportedError("a scatter whose indices name no axis is not supported")
    kept = [d for d in range(rank) if d not in windows.gone and d not in windows.batch]
    given = dict(zip(kept, windows.inner, strict=True))
    lengths = [size(op, updates, given[d]) if d in given else 1 for d in range(rank)]
    full = [d in given and _spans(x, updates, d, given[d]) for d in range(rank)]
    limits = [0 if full[d] else minus(op, size(op, x, d), lengths[d]) for d in windows.named]
    at, inside = (
        bounded(op, indices, limits, "clip" if mode == "clip" else "fill") if windows.named else (indices, None)
    )
    rows = [i for i in range(outer + len(kept)) if i not in windows.inner]
    ordered = op.transpose(updates, [*rows, *windows.inner])
    if outer == 0:
        return _once(op, x, at, inside, ordered, windows, lengths, full, kind)
    pointed = [d for d in range(rank) if not full[d]]
    whole = [d for d in range(rank) if full[d]]
    lines = _lines(op, x, at, windows, lengths, pointed)
    wide_axes = [d for d in pointed if d in given]
    perm = [*range(outer), *(outer + kept.index(d) for d in [*wide_axes, *whole])]
    row = product(op, [size(op, x, d) for d in whole])
    count = product(op, [size(op, x, d) for d in pointed])
    flat = reshaped(op, op.transpose(x, [*pointed, *whole]), [count, row])
    values = reshaped(op, op.transpose(ordered, perm), [product(op, sizes(op, lines)), row])
    spread = None if inside is None else _repeated(op, inside, lines, len(wide_axes))
    written = _written(op, flat, op.flat(lines), values, spread, kind, unique)
    back = [*pointed, *whole]
    y = reshaped(op, written, [size(op, x, d) for d in back])
    y = op.transpose(y, [back.index(d) for d in range(rank)])
    y.value.shape = x.value.shape
    return y


def _spans(x: Tensor, updates: Tensor, axis: int, place: int) -> bool:
    """Whether windows have all of an axis."""
    return x.dims is not None and updates.dims is not None and x.dims[axis] is not None and (
        x.dims[axis] == updates.dims[place]
    )  # fmt: skip


def _once(
    op: Writer,
    x: Tensor,
    at: Tensor,
    inside: Tensor | None,
    update: Tensor,
    windows: Windows,
    lengths: Sequence[Size],
    full: Sequence[bool],
    kind: str | Body,
) -> Tensor:
    """One window only."""
    update = op.unsqueeze(update, sorted(windows.gone))
    begin = {d: component(op, at, windows, d) for d in windows.named if not full[d]}
    begin |= {d: 0 for d in range(len(full)) if not full[d] and d not in windows.named}
    if kind != "set":
        old = window_at(op, x, begin, list(lengths))
        update = COMBINED[kind](op, old, update) if isinstance(kind, str) else kind(old, update)
    y = replaced(op, x, update, begin)
    return y if inside is None else op.Where(inside, y, x)


def _lines(
    op: Writer, x: Tensor, at: Tensor, windows: Windows, lengths: Sequence[Size], pointed: Sequence[int]
) -> Tensor:
    """For each place of each window, its number among all places along the axes that are pointed at."""
    outer = op.rank(at, "indices") - int(len(windows.named) > 1)
    wide = [d for d in pointed if d not in windows.gone and d not in windows.batch]
    rank = outer + len(wide)
    total: Tensor | None = None
    for i, axis in enumerate(pointed):
        terms: list[Tensor] = []
        if axis in windows.named:
            place = list(windows.named).index(axis)
            one = op.int64(at if len(windows.named) == 1 else op.Gather(at, op.index(place), axis=-1))
            terms.append(op.unsqueeze(one, [outer + k for k in range(len(wide))]))
        if axis in windows.batch:
            place = windows.index_batch[list(windows.batch).index(axis)]
            terms.append(_counting(op, size(op, x, axis), place, rank))
        if axis in wide and lengths[axis] != 1:
            terms.append(_counting(op, lengths[axis], outer + wide.index(axis), rank))
        step = product(op, [size(op, x, d) for d in pointed[i + 1 :]])
        for term in terms:
            moved = term if step == 1 else term * step
            total = moved if total is None else total + moved
    shape = [*(size(op, at, i) for i in range(outer)), *(lengths[d] for d in wide)]
    total = op.index(0) if total is None else total
    return total if total.sizes == shape else op.Expand(total, vector(op, shape))


def _counting(op: Writer, count: Size, axis: int, rank: int) -> Tensor:
    """0, 1, 2, … along an axis of so many."""
    if isinstance(count, int):
        numbers = op.constant(np.arange(count, dtype=np.int64))
    else:
        numbers = op.Range(op.index(0), count, op.index(1))
    return op.unsqueeze(numbers, [i for i in range(rank) if i != axis])


def _repeated(op: Writer, inside: Tensor, lines: Tensor, more: int) -> Tensor:
    """For each place what is known of its window."""
    outer = op.rank(inside, "indices")
    if not more:
        return op.flat(inside)
    return op.flat(op.Expand(op.unsqueeze(inside, [outer + i for i in range(more)]), lines.shape))


def _written(
    op: Writer, flat: Tensor, lines: Tensor, values: Tensor, inside: Tensor | None, kind: str | Body, unique: bool
) -> Tensor:
    """Rows at the lines that are named; those outside go to a line more, or change nothing."""
    known = op.known(lines)
    unique = unique or lines.sizes == [1] or (known is not None and len(np.unique(known)) == known.size)
    count = size(op, flat, 0)
    is_spare = inside is not None and (kind == "set" or not isinstance(kind, str))
    if inside is not None and isinstance(kind, str) and kind != "set":
        values = op.where(op.unsqueeze(inside, [1]), values, neutral(kind, values.dtype))
    if is_spare:
        assert inside is not None
        flat = op.Concat(flat, op.Expand(op.like(0, flat), vector(op, [1, size(op, flat, 1)])), axis=0)
        lines = op.Where(inside, lines, scalar(op, count))
    if not isinstance(kind, str):
        y = _applied(op, flat, lines, values, kind, unique and inside is None)
    elif unique and kind == "set" and inside is None:
        y = op.ScatterND(flat, op.unsqueeze(lines, [1]), values)
    else:
        spread = op.Expand(op.unsqueeze(lines, [1]), values.shape)
        y = op.ScatterElements(flat, spread, values, axis=0, reduction=None if kind == "set" else kind)
        if kind in ("min", "max") and not flat.dtype.is_integer():  # what is no number wins, which it does not there
            old, new = (op.IsNaN(x).cast(INT32) for x in (flat, values))
            none = op.ScatterElements(old, spread, new, axis=0, reduction="max")
            y = op.where(none > 0, math.nan, y)
    return op.Slice(y, op.ints([0]), vector(op, [count]), op.ints([0])) if is_spare else y


def _applied(op: Writer, flat: Tensor, lines: Tensor, values: Tensor, body: Body, unique: bool) -> Tensor:
    """By a function: at once where no line is named twice, otherwise one after the other."""
    if unique:
        return op.ScatterND(flat, op.unsqueeze(lines, [1]), body(op.Gather(flat, lines), values))

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        line = op.Gather(lines, op.unsqueeze(number, [0]))
        new = body(op.Gather(states[0], line), op.Gather(values, op.unsqueeze(number, [0])))
        return [op.ScatterND(states[0], op.unsqueeze(line, [1]), new)]

    return loop(op, step, [flat], rounds=scalar(op, size(op, lines, 0)))[0]
