"""Resizing images."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.matlab.target import ops, rank_of, row, rule
from onward.backends.shared.resize import METHOD, scales_of, sizes_of
from onward.spec.resize import Resize, nearest_index, spread

_PERIODIC = ("half_pixel", "pytorch_half_pixel", "asymmetric")
"""Coordinates that do not depend on where an image ends."""


@rule("Resize")
def resize(
    e: Emitter,
    x: Expr,
    roi: Expr | None = None,
    scales: Expr | None = None,
    sizes: Expr | None = None,
    *,
    p: Resize,
) -> Expr:
    rank, factors, lengths = rank_of(e, x), scales_of(e, scales), sizes_of(e, sizes)
    times = _times(rank, factors, p)
    if times is not None:
        return Name("repelem")(x, *reversed(times), *[1] * (2 - rank)) if max(times) > 1 else x
    dims = row(rank - axis % rank for axis in (range(rank) if p.axes is None else p.axes))
    region = e.numbers(roi) if p.crops and roi is not None else None
    numbers = given(size=_listed(lengths), scales=_listed(factors), roi=_listed(region))
    return ops.resize(x, dims, **numbers, **changed(p, *METHOD, "outside"))


def _listed(numbers: Any) -> Any:
    return row(numbers) if isinstance(numbers, list) else numbers


def _times(rank: int, scales: Any, p: Resize) -> list[int] | None:
    """How often each element stands along each axis, where that is what the node means, whatever the sizes are."""
    if not rank or p.mode != "nearest" or p.coordinates not in _PERIODIC or not isinstance(scales, list):
        return None
    full = spread(rank, p.axes, scales, [1.0] * rank)
    if any(s not in range(1, 9) for s in full) or not all(_copies(int(s), p) for s in full):
        return None
    return [int(s) for s in full]


def _copies(times: int, p: Resize) -> bool:
    """Whether the elements of an axis that grows so many times are copies of each element in turn."""
    found = nearest_index(None, None, float(times), p.coordinates, p.rounding)
    return bool((found == np.arange(len(found)) // times).all())
