"""Resizing images that are channels last, and tensors of other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter, exact
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_dim
from onward.backends.tensorflow.target import ops, rule, tf
from onward.spec.resize import nearest_index, spread, target_length

_FLOATS = (ir.DataType.FLOAT,)
_PERIODIC = ("half_pixel", "pytorch_half_pixel", "asymmetric")
"""Coordinates that do not depend on where an image ends."""


@rule("onward.nhwc::Resize")
def resize_images(e: Emitter, x: Expr, roi: Any = None, scales: Any = None, sizes: Any = None, **how: Any) -> Expr:
    rank = e.rank(x)
    assert rank is not None
    found = _idiom(e, x, scales, sizes, **how)
    return _resize(e, x, roi, scales, sizes, rank, True, **how) if found is None else found


@rule("Resize")
def resize(e: Emitter, x: Expr, roi: Any = None, scales: Any = None, sizes: Any = None, **how: Any) -> Expr:
    return _resize(e, x, roi, scales, sizes, e.rank(x), False, **how)


def _resize(
    e: Emitter,
    x: Expr,
    roi: Expr | None,
    scales: Expr | None,
    sizes: Expr | None,
    rank: int | None,
    channels_last: bool,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Expr:
    smooth = mode != "nearest"
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    places = list(axes) if axes is not None else None
    if channels_last and rank is not None:
        stored = [0, rank - 1, *range(1, rank - 1)]
        places = [stored[a % rank] for a in (range(rank) if axes is None else axes)]
    keywords = given(
        size=sizes_of(e, sizes),
        scales=scales_of(e, scales),
        axes=places,
        mode=mode if smooth else None,
        coordinates=None if coordinate_transformation_mode == "half_pixel" else coordinate_transformation_mode,
        rounding=nearest_mode if not smooth and nearest_mode != "round_prefer_floor" else None,
        policy=None if keep_aspect_ratio_policy == "stretch" else keep_aspect_ratio_policy,
        cubic=cubic_coeff_a if mode == "cubic" and cubic_coeff_a != -0.75 else None,
        exclude_outside=True if exclude_outside and smooth else None,
        antialias=True if antialias and smooth else None,
        roi=e.numbers(roi) if crops and roi is not None else None,
        outside=extrapolation_value if crops and extrapolation_value else None,
    )
    return ops.resize(x, **keywords)


def scales_of(e: Emitter, scales: Expr | None) -> Any:
    """Scales as numbers, or the tensor of them; None where an empty tensor stands for none."""
    if scales is None or e.shape(scales) == (0,):
        return None
    constant = e.const(scales)
    return e.numbers(scales) if constant is None else exact(constant).reshape(-1).tolist()


def sizes_of(e: Emitter, sizes: Expr | None) -> Any:
    return None if sizes is None or e.shape(sizes) == (0,) else e.numbers(sizes)


def _idiom(e: Emitter, x: Expr, scales: Expr | None, sizes: Expr | None, **how: Any) -> Expr | None:
    """`tf.image.resize` where it means the same, else None."""
    shape = e.shape(x)
    if shape is None or len(shape) != 4 or e.dtype(x) not in _FLOATS or how.get("antialias"):
        return None
    if how.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    lengths = shape[1:3]
    if None in lengths and (whole := _whole(scales_of(e, scales), **how)):
        return tf.image.resize(x, [e.dim(x, axis) * n for axis, n in zip((1, 2), whole, strict=True)], "nearest")
    target = _targets(e, x, lengths, scales_of(e, scales), sizes_of(e, sizes), how.get("axes"))
    if target is None or 0 in (n for n in (*lengths, *target) if isinstance(n, int)):
        return None
    mode, coordinates = how.get("mode", "nearest"), how.get("coordinate_transformation_mode", "half_pixel")
    known = [isinstance(n, int) for n in (*lengths, *target)]
    if mode == "linear" and not how.get("exclude_outside"):
        long = coordinates == "pytorch_half_pixel" and all(isinstance(n, int) and n > 1 for n in target)
        return tf.image.resize(x, target) if coordinates == "half_pixel" or long else None
    rounding = how.get("nearest_mode", "round_prefer_floor")
    if mode == "nearest" and all(known) and coordinates != "tf_crop_and_resize":
        pairs = [(n, t) for n, t in zip(lengths, target, strict=True) if n is not None]
        if all(_copies_alike(n, t, coordinates, rounding) for n, t in pairs):
            return tf.image.resize(x, target, "nearest")
    return None


def _whole(scales: Any, **how: Any) -> list[int] | None:
    """By how much height and width grow, where TensorFlow copies alike whatever they are: by small whole numbers."""
    coordinates = how.get("coordinate_transformation_mode", "half_pixel")
    if how.get("mode", "nearest") != "nearest" or not isinstance(scales, list) or coordinates not in _PERIODIC:
        return None
    full = spread(4, how.get("axes"), scales, [1.0] * 4)
    found = [int(s) for s in full if s in range(1, 9)]
    rounding = how.get("nearest_mode", "round_prefer_floor")
    alike = (
        len(found) == 4 and found[:2] == [1, 1] and all(_copies_alike(9, 9 * n, coordinates, rounding) for n in found)
    )
    return found[2:] if alike else None


def _targets(
    e: Emitter, x: Expr, lengths: Sequence[int | None], scales: Any, sizes: Any, axes: Sequence[int] | None
) -> list[Any] | None:
    """The new height and width, where only they change, and by the scale that the lengths themselves tell."""
    if isinstance(scales, list):
        full = spread(4, axes, scales, [1.0] * 4)
        if full[:2] != [1.0, 1.0] or any(n is None for n in lengths):
            return None
        targets = [int(target_length(n, s)) for n, s in zip(lengths, full[2:], strict=True) if n is not None]
        exactly = all(n is not None and t == n * s for n, t, s in zip(lengths, targets, full[2:], strict=True))
        return targets if exactly else None
    if isinstance(sizes, list):
        full = spread(4, axes, sizes, [None] * 4)
        if not all(n is None or is_dim(e, x, axis, n) for axis, n in ((0, full[0]), (3, full[1]))):
            return None
        return [e.dim(x, axis) if n is None else n for axis, n in zip((1, 2), full[2:], strict=True)]
    return None


def _copies_alike(length: int, target: int, coordinates: str, rounding: str) -> bool:
    """Whether TensorFlow's rule, `floor((i + 0.5) * length / target)` in single precision, is that of the node."""
    if not length or not target:
        return False
    one = np.float32
    wanted = nearest_index(length, target, float(one(target) / one(length)), coordinates, rounding)
    theirs = np.floor((np.arange(target).astype(one) + one(0.5)) * (one(length) / one(target))).astype(np.int64)
    return bool((np.minimum(theirs, length - 1) == wanted).all())
