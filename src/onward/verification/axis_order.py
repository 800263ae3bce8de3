"""Recognises an array whose axes are in another order, as frameworks that put the channels last have them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from onward.verification.metrics import Array, is_float

RANKS = range(2, 6)
SAMPLE = 256
"""Elements looked at before a permutation is compared in full."""
LETTERS = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}

Agrees = Callable[[Array, Array], bool]


def layout_difference(expected: Array, actual: Array, agrees: Agrees) -> str:
    """How the other side's axes are ordered, in words, if another order makes the two agree; otherwise ''."""
    same_axes = sorted(expected.shape) == sorted(actual.shape)
    if expected.ndim not in RANKS or not same_axes or not expected.size:
        return ""
    for order in _orders(expected.ndim):
        moved = actual.transpose(order)
        if moved.shape == expected.shape and agrees(expected, moved):
            return _name(order)
    return ""


def _orders(rank: int) -> list[tuple[int, ...]]:
    """All orders of the axes but the one there is, the moves of the channels first."""
    _, *others = itertools.permutations(range(rank))
    return sorted(others, key=lambda order: order not in _moves(rank))


def _moves(rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What makes channels first of channels last, and the reverse."""
    return (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)


def _name(order: tuple[int, ...]) -> str:
    rank = len(order)
    if rank in LETTERS and order in _moves(rank):
        first, last = LETTERS[rank]
        wanted, found = (first, last) if order == _moves(rank)[0] else (last, first)
        return f"the layout is {found} instead of {wanted}"
    return f"the axes are in another order: transposed by {list(order)} it is the same"


def plausible(expected: Array, moved: Array) -> bool:
    """Whether most of a sample of elements agree roughly, which is quickly found out."""
    rng = np.random.default_rng(0)
    where = tuple(rng.integers(0, size, SAMPLE) for size in expected.shape)
    wanted, found = expected[where], moved[where]
    if not is_float(expected.dtype):
        return bool(np.mean(wanted == found) > 0.5)
    with np.errstate(invalid="ignore"):
        off = np.abs(found.astype(complex) - wanted.astype(complex))
        rough = 0.1 * np.abs(wanted.astype(complex)) + 0.1 * float(np.std(wanted.astype(complex)))
    return bool(np.mean((off <= rough) | ~np.isfinite(off)) > 0.5)
