"""Where the channels of images are, and how JAX's convolutions are told."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.layout.orders import to_first, to_last
from onward.spec.meaning import CHANNELS_LAST

SPATIAL = "DHW"


def is_last(e: Emitter) -> bool:
    """Whether the images of the node have their channels as the last axis."""
    return e.node.domain == CHANNELS_LAST


def flag(e: Emitter) -> dict[str, bool]:
    """What tells a helper that channels are last."""
    return {"channels_last": True} if is_last(e) else {}


def channel_axis(e: Emitter, x: Expr) -> dict[str, int]:
    """What tells a helper the axis of the channels, where that is not the last one."""
    return {} if is_last(e) or e.rank(x) == 2 else {"axis": 1}


def spatial(e: Emitter, rank: int) -> range:
    """The axes of an image between or behind batch and channels."""
    return range(1, rank - 1) if is_last(e) else range(2, rank)


def around(e: Emitter, inner: Any, pixel: Any = 1) -> tuple[Any, ...]:
    """Something for each axis of an image, of which the spatial ones are `inner`."""
    return (pixel, *inner, pixel) if is_last(e) else (pixel, pixel, *inner)


def dimension_numbers(e: Emitter, rank: int, *, arranged: bool) -> dict[str, tuple[str, str, str]]:
    """What a convolution over so many spatial axes is told, unless all is channels first.

    Filters are `arranged` with the channels at the end, else they are as in ONNX.
    """
    if not is_last(e):
        return {}
    letters = SPATIAL[-rank:]
    image = f"N{letters}C"
    return {"dimension_numbers": (image, f"{letters}IO" if arranged else f"OI{letters}", image)}


def first(e: Emitter, x: Expr) -> Expr:
    """An image of the node as a helper takes it that has its channels first only."""
    return x.transpose(*to_first(_rank(e, x))) if is_last(e) else x


def last(e: Emitter, x: Expr, rank: int) -> Expr:
    """What such a helper gives, as the node gives it."""
    return x.transpose(*to_last(rank)) if is_last(e) else x


def _rank(e: Emitter, x: Expr) -> int:
    rank = e.rank(x)
    assert rank is not None
    return rank
