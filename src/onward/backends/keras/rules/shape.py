"""Layers that rearrange elements: all but the first axis, which stays the batch's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_dim
from onward.backends.keras.target import applied, is_tensor, made, rule
from onward.spec.shape import Concat, Flatten, Reshape, Transpose


@rule("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, p: Reshape) -> Expr | None:
    """Where the first axis stays, and at most one of the others is to be found out."""
    known, wanted = e.shape(x), e.numbers(shape)
    if known is None or isinstance(wanted, Expr) or len(wanted) < 2:
        return None
    if p.allowzero and any(not isinstance(n, Expr) and n == 0 for n in wanted):
        return None
    rest = [known[i] if n == 0 and i < len(known) else n for i, n in enumerate(wanted) if i and not isinstance(n, Expr)]
    if len(rest) < len(wanted) - 1 or None in rest or 0 in rest:
        return None
    first = wanted[0]
    if isinstance(first, Expr) or first > 0:
        kept = is_dim(e, x, 0, first)
    else:
        kept = first == 0 or (None not in known[1:] and -1 not in rest and math.prod(known[1:]) == math.prod(rest))  # type: ignore[arg-type]
    return _reshaped(e, x, rest) if kept else None


def _reshaped(e: Emitter, x: Expr, rest: Sequence[int | None]) -> Expr:
    sizes = (e.shape(x) or ())[1:]
    size = None if None in sizes else math.prod(n or 0 for n in sizes)
    if len(rest) == 1 and sizes and rest[0] in (-1, size):
        return applied(e, made(e, x, "Flatten"), x)
    return applied(e, made(e, x, "Reshape", tuple(rest)), x)


@rule("Flatten")
def flatten(e: Emitter, x: Expr, p: Flatten) -> Expr | None:
    rank = e.rank(x) or 0
    return applied(e, made(e, x, "Flatten"), x) if rank > 1 and p.axis % rank == 1 else None


@rule("Squeeze")
def squeeze(e: Emitter, x: Expr, axes: Expr | None = None) -> Expr | None:
    known, chosen = e.shape(x), e.static_ints(axes)
    if known is None or not chosen:
        return None
    gone = {a % len(known) for a in chosen}
    rest = [n for axis, n in enumerate(known) if axis and axis not in gone]
    return _with_one_open(e, x, rest) if 0 not in gone and all(known[a] == 1 for a in gone) else None


@rule("Unsqueeze")
def unsqueeze(e: Emitter, x: Expr, axes: Expr) -> Expr | None:
    known, chosen = e.shape(x), e.static_ints(axes)
    if known is None or not chosen:
        return None
    rank = len(known) + len(chosen)
    new, old = {a % rank for a in chosen}, iter(known)
    full = [1 if axis in new else next(old) for axis in range(rank)]
    return _with_one_open(e, x, full[1:]) if 0 not in new else None


def _with_one_open(e: Emitter, x: Expr, rest: list[int | None]) -> Expr | None:
    """Axes of these lengths, of which the layer finds out one."""
    if rest.count(None) > 1 or 0 in rest or not rest:
        return None
    return _reshaped(e, x, [-1 if n is None else n for n in rest])


@rule("Transpose")
def transpose(e: Emitter, x: Expr, p: Transpose) -> Expr | None:
    if p.perm is None or len(p.perm) < 2 or p.perm[0] != 0:
        return None
    return applied(e, made(e, x, "Permute", tuple(p.perm[1:])), x)


@rule("Concat")
def concat(e: Emitter, *inputs: Expr, p: Concat) -> Expr | None:
    rank = e.rank(inputs[0]) or 0
    if len(inputs) < 2 or not is_tensor(e, *inputs) or p.axis % rank == 0:
        return None
    axis = p.axis % rank
    return applied(e, made(e, inputs[0], "Concatenate", **({} if axis == rank - 1 else {"axis": axis})), list(inputs))
