"""Images made larger by a whole factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_dim
from onward.backends.keras.target import applied, made, rule
from onward.backends.shared.resize import scales_of, sizes_of
from onward.backends.tensorflow.window import short
from onward.spec.resize import Resize, nearest_index, spread


@rule("onward.nhwc::Resize")
def resize(
    e: Emitter, x: Expr, roi: Expr | None = None, scales: Expr | None = None, sizes: Expr | None = None, *, p: Resize
) -> Expr | None:
    shape = e.shape(x)
    if shape is None or len(shape) != 4 or e.dtype(x) != ir.DataType.FLOAT:
        return None
    factors = _factors(e, x, scales, sizes, p.axes)
    if factors is None or p.policy != "stretch":
        return None
    pairs = list(zip(shape[1:3], factors, strict=True))
    if p.mode == "nearest" and all(_repeats(n, factor, p.coordinates, p.rounding) for n, factor in pairs):
        return applied(e, made(e, x, "UpSampling2D", short(factors)), x)
    smooth = p.coordinates == "half_pixel" or (p.coordinates == "pytorch_half_pixel" and min(factors) > 1)
    if p.mode == "linear" and smooth and not p.exclude_outside:  # antialiasing does nothing to a larger image
        return applied(e, made(e, x, "UpSampling2D", short(factors), interpolation="bilinear"), x)
    return None


def _factors(
    e: Emitter, x: Expr, scales: Expr | None, sizes: Expr | None, axes: Sequence[int] | None
) -> list[int] | None:
    """By what height and width grow, where these are whole numbers that are known, and nothing else changes."""
    lengths = (e.shape(x) or ())[1:3]
    given, wanted = scales_of(e, scales), sizes_of(e, sizes)
    factors: list[Any] = []
    if isinstance(given, list):
        first, second, *factors = spread(4, axes, given, [1.0] * 4)
        factors = factors if first == second == 1 else []
    elif isinstance(wanted, list):
        first, second, *targets = spread(4, axes, wanted, [None] * 4)
        if all(n is None or is_dim(e, x, axis, n) for axis, n in ((0, first), (3, second))):
            pairs = zip(targets, lengths, strict=True)
            factors = [1 if n is None else n / m if isinstance(n, int) and m else 0 for n, m in pairs]
    whole = [int(f) for f in factors if not isinstance(f, Expr) and f >= 1 and f == int(f)]
    return whole if len(whole) == 2 else None


def _repeats(length: int | None, factor: int, coordinates: str, rounding: str) -> bool:
    """Whether each element comes `factor` times."""
    if coordinates not in ("half_pixel", "asymmetric", "pytorch_half_pixel") or length == 0:
        return False
    target = None if length is None else length * factor
    found = nearest_index(length, target, float(factor), coordinates, rounding)
    return bool((found == np.arange(len(found)) // factor).all())
