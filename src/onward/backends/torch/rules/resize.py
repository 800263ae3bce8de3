"""Resizing images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_dim
from onward.backends.shared.resize import resized, scales_of, sizes_of
from onward.backends.torch.target import F, ops, rule
from onward.backends.torch.window import short
from onward.spec.resize import Resize, is_whole, lengths_agree, nearest_index, spread, stays, target_length

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_HALF_PIXEL = ("half_pixel", "pytorch_half_pixel")


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
    scale_list, size_list = scales_of(e, scales), sizes_of(e, sizes)
    if p.crops or p.policy != "stretch":
        return resized(e, x, roi, scale_list, size_list, p.axes, p)
    spatial = _spatial(e, x, p.axes, scale_list, size_list)
    if spatial is None:
        return resized(e, x, roi, scale_list, size_list, p.axes, p)
    found = _interpolate(e, x, spatial, p)
    if found is not None:
        return found
    return resized(e, x, roi, spatial.scales, spatial.sizes, range(2, 2 + len(spatial.lengths)), p)


@dataclass(frozen=True)
class _Spatial:
    """The axes after batch and channels: lengths where known, and either scales or sizes (numbers or expressions)."""

    lengths: tuple[int | None, ...]
    scales: tuple[float, ...] | None
    sizes: tuple[Any, ...] | None

    @property
    def targets(self) -> list[int | None]:
        if self.scales is None:
            assert self.sizes is not None
            return [n if isinstance(n, int) else None for n in self.sizes]
        return [None if n is None else int(target_length(n, s)) for n, s in zip(self.lengths, self.scales, strict=True)]

    @property
    def factors(self) -> list[float | None]:
        """The scale of each axis, where it is known now."""
        if self.scales is not None:
            return list(self.scales)
        return [
            None if n is None or t is None else float(np.float32(t) / np.float32(n))
            for n, t in zip(self.lengths, self.targets, strict=True)
        ]


def _spatial(e: Emitter, x: Expr, axes: Sequence[int] | None, scales: Any, sizes: Any) -> _Spatial | None:
    """What happens to the spatial axes, if it is certain that nothing happens to batch and channels."""
    shape = e.shape(x)
    if shape is None or not 3 <= len(shape) <= 5 or not isinstance(sizes if scales is None else scales, list):
        return None
    rank = len(shape)
    if scales is not None:
        full = spread(rank, axes, scales, [1.0] * rank)
        if any(isinstance(s, Expr) for s in full) or full[:2] != [1.0, 1.0]:
            return None
        return _Spatial(shape[2:], tuple(map(float, full[2:])), None)
    full = spread(rank, axes, sizes, [None] * rank)
    if not all(n is None or is_dim(e, x, i, n) for i, n in enumerate(full[:2])):
        return None
    kept = tuple(e.dim(x, i) if n is None else n for i, n in enumerate(full[2:], 2))
    return _Spatial(shape[2:], None, kept)


def _interpolate(e: Emitter, x: Expr, spatial: _Spatial, p: Resize) -> Expr | None:
    """`F.interpolate` where it means the same, else None; it takes and makes no axis without elements."""
    if 0 in (*spatial.lengths, *spatial.targets):
        return None
    if spatial.scales is not None:
        if any(map(stays, spatial.lengths, spatial.scales)):
            return None  # PyTorch copies an axis whose length stays the same
        if not all(map(lengths_agree, spatial.lengths, spatial.scales)):
            return None
        scales = [int(s) if s.is_integer() else s for s in spatial.scales]
        how: dict[str, Any] = {"scale_factor": short(scales)}
    else:
        how = {"size": spatial.sizes}
    if p.mode == "nearest":
        return _nearest(e, x, spatial, p, how)
    rank = len(spatial.lengths)
    if e.dtype(x) not in _FLOATS or (p.mode == "cubic" and rank != 2):
        return None
    mode = "bicubic" if p.mode == "cubic" else ("linear", "bilinear", "trilinear")[rank - 1]
    if p.antialias:
        sharp = p.mode == "linear" or p.cubic == -0.5
        same = sharp and rank == 2 and p.exclude_outside and _half_pixel(spatial, p)
        single = e.dtype(x) in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
        return F.interpolate(x, **how, mode=mode, antialias=True) if same and single else None
    if p.mode == "cubic" and (p.exclude_outside or p.cubic != -0.75):
        return None
    if p.coordinates == "align_corners":
        whole = spatial.scales is None or all(map(is_whole, spatial.lengths, spatial.scales))
        return F.interpolate(x, **how, mode=mode, align_corners=True) if whole else None
    if _half_pixel(spatial, p):
        return F.interpolate(x, **how, mode=mode)
    if p.coordinates == "pytorch_half_pixel":
        given = {k: (v,) * rank if isinstance(v, int | float) else v for k, v in how.items()}
        return ops.resize_half_pixel(x, **given, **({"mode": "cubic"} if p.mode == "cubic" else {}))
    return None


def _half_pixel(spatial: _Spatial, p: Resize) -> bool:
    """PyTorch's own coordinates: ONNX's of that name differ for a result of one element."""
    if p.coordinates == "half_pixel":
        return True
    grows = [s is not None and s >= 2 for s in spatial.scales or (None,) * len(spatial.lengths)]
    long = [t is not None and t > 1 for t in spatial.targets]
    return p.coordinates == "pytorch_half_pixel" and all(map(max, grows, long))


def _nearest(e: Emitter, x: Expr, spatial: _Spatial, p: Resize, how: dict[str, Any]) -> Expr | None:
    if e.dtype(x) not in (*_FLOATS, ir.DataType.UINT8):
        return None
    if all(_copies_alike(spatial, p, 0.0)):
        return F.interpolate(x, **how)
    if all(_copies_alike(spatial, p, 0.5)):
        return F.interpolate(x, **how, mode="nearest-exact")
    return None


def _copies_alike(spatial: _Spatial, p: Resize, shift: float) -> list[bool]:
    """For each axis, whether PyTorch's rule, `floor((i + shift) / scale)` in single precision, is that of the node."""
    found = []
    one = np.float32
    for length, target, factor in zip(spatial.lengths, spatial.targets, spatial.factors, strict=True):
        lengthless = length is None or target is None
        if factor is None or (lengthless and p.coordinates not in (*_HALF_PIXEL, "asymmetric")):
            found.append(False)
            continue
        if lengthless and p.coordinates == "pytorch_half_pixel" and factor < 2:
            found.append(False)
            continue
        wanted = nearest_index(length, target, factor, p.coordinates, p.rounding)
        if shift == 0 and factor != 2 and (2 < factor < 3 if length is None else target == 2 * length):
            found.append(False)  # PyTorch takes any doubling of the length to be a scale of 2
            continue
        inverse = one(1 / factor) if spatial.scales is not None else one(length or 1) / one(target or 1)
        index = np.floor((np.arange(len(wanted)).astype(one) + one(shift)) * inverse).astype(np.int64)
        found.append(bool((np.minimum(index, index if length is None else length - 1) == wanted).all()))
    return found
