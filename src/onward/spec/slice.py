"""What slices and pads mean, for every backend. Numbers may be expressions where they are known at run time only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onward.spec.meaning import Spec, means


@means("Pad")
@dataclass(frozen=True)
class Pad(Spec):
    mode: str = "constant"


@means("CenterCropPad")
@dataclass(frozen=True)
class CenterCropPad(Spec):
    axes: Sequence[int] | None = None


FAR = 10**9
"""Exporters write this or more where they mean 'to the end': no tensor has so many elements along an axis."""


def from_the_start(start: Any) -> bool:
    """Whether a forward slice begins with the first element, whatever the size."""
    return isinstance(start, int) and (start == 0 or start <= -FAR)


def to_the_end(end: Any) -> bool:
    """Whether a forward slice ends with the last element, whatever the size."""
    return isinstance(end, int) and end >= FAR


def reverses(start: Any, end: Any, step: int) -> bool:
    """Whether a slice is a whole axis backwards, whatever the size."""
    last = isinstance(start, int) and (start == -1 or start >= FAR)
    return step == -1 and last and isinstance(end, int) and end <= -FAR


def pad_sides(pads: Sequence[Any], axes: Sequence[int] | None, rank: int) -> dict[int, tuple[Any, Any]]:
    """How much Pad adds before and after each axis, axes counted from the front."""
    order = range(rank) if axes is None else [axis % rank for axis in axes]
    return {axis: (pads[i], pads[i + len(order)]) for i, axis in enumerate(order)}
