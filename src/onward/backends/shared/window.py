"""Sliding windows, as the helpers of every backend take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onward.backends.emit.arguments import options
from onward.spec.window import Window


def pool_arguments(win: Window, ceil_mode: int, each: Callable[[Sequence[int]], Any]) -> dict[str, Any]:
    """The arguments of helpers that pool over any window; `each` writes a number for each axis."""
    if win.begin is None or win.end is None:
        pads: Any = "same_lower" if win.lower else "same_upper"
    else:
        pads = None if win.unpadded else each((*win.begin, *win.end))
    return options(
        kernel=each(win.kernel),
        stride=None if set(win.strides) == {1} else each(win.strides),
        pads=pads,
        dilation=None if set(win.dilations) == {1} else each(win.dilations),
        ceil_mode=bool(ceil_mode),
    )
