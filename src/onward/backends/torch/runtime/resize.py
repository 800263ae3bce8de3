"""Resizing in all of ONNX's modes, with sizes known only when it runs."""

import itertools
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from onward.backends.shared.runtime.host import float32


def resize(
    x: Tensor,
    size: Sequence[int] | None = None,
    scales: Sequence[float] | None = None,
    axes: Sequence[int] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    policy: str = "stretch",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Sequence[float] | None = None,
    outside: float = 0.0,
) -> Tensor:
    """Resize the given axes (all, if None) to `size`, or by `scales`.

    `mode` is nearest, linear or cubic; `coordinates` says where the elements of the result lie in `x`; `rounding`
    which element is the nearest; `policy` whether the sizes may stretch the image or are bounds ("not_larger",
    "not_smaller"). `roi` lists the beginning of each axis, then the end of each, as parts of its length; what
    lies outside of `x` is `outside` then.
    """
    axes = [a % x.ndim for a in axes] if axes is not None else list(range(x.ndim))
    regions = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True)) if roi else [(0.0, 1.0)] * len(axes)
    crops = coordinates == "tf_crop_and_resize"
    targets = resize_targets([x.shape[a] for a in axes], size, scales, policy)
    if any(target == 0 for target, _ in targets):
        lengths = dict(zip(axes, (target for target, _ in targets), strict=True))
        return x.new_zeros([lengths.get(a, n) for a, n in enumerate(x.shape)])
    kind = x.dtype
    if mode != "nearest" and kind not in (torch.float32, torch.float64):
        x = x.to(torch.int64 if antialias and kind in (torch.uint8, torch.int8) else torch.float32)
    whole = mode == "linear" and not antialias and not kind.is_floating_point
    blank: Tensor | None = None
    corners: list[tuple[int, Tensor, Tensor]] = []
    for axis, (target, scale), region in reversed(list(zip(axes, targets, regions, strict=True))):
        length = x.shape[axis]
        plain = target == length and scale == 1 and not (crops and region != (0.0, 1.0))
        if plain and not (whole and axis >= x.ndim - 2):
            continue
        places = resize_places(target, length, scale, coordinates, region)
        if crops:
            beyond = ((places < 0) | (places > length - 1)).to(x.device)
            beyond = beyond.reshape(-1, *[1] * (x.ndim - 1 - axis))
            blank = beyond if blank is None else blank | beyond
        if mode == "nearest":
            index = nearest_index(places, rounding).clamp(0, length - 1)
            x = x.index_select(axis, index.to(x.device))
        elif antialias:
            taps, weights = antialias_taps(places, length, scale, mode, cubic, exclude_outside)
            if x.dtype == torch.int64:
                x = weigh_bytes(x, axis, taps, weights, kind)
            else:
                x = weigh(x, axis, taps, weights)
                x = x if kind.is_floating_point else (x.abs() + 0.5).floor() * x.sign()
        elif whole:
            corners.append((axis, *linear_taps(places, length)))
        elif mode == "linear":
            x = weigh(x, axis, *linear_taps(places, length))
        else:
            x = weigh(x, axis, *cubic_taps(places, length, cubic, exclude_outside))
    if corners:
        x = weigh_corners(x, corners)
    if blank is not None:
        x = torch.where(blank, outside, x)
    return x.to(kind)


def resize_half_pixel(
    x: Tensor,
    size: Sequence[int] | None = None,
    scale_factor: Sequence[float] | None = None,
    mode: str = "linear",
) -> Tensor:
    """Resize the spatial axes by linear or cubic interpolation; an axis of one element keeps its first element."""
    scales = None if scale_factor is None else [float32(s) for s in scale_factor]
    targets = resize_targets(x.shape[2:], size, scales, "stretch")
    if min(target for target, _ in targets) > 1:
        method = "bicubic" if mode == "cubic" else ("linear", "bilinear", "trilinear")[x.ndim - 3]
        return F.interpolate(x, size, scales, method)
    axes = range(2, x.ndim)
    return resize(x, size, scales, axes, mode, "pytorch_half_pixel")


def resize_targets(
    lengths: Sequence[int], size: Sequence[int] | None, scales: Sequence[float] | None, policy: str
) -> list[tuple[int, float]]:
    """The new length of each axis and the scale that leads to it."""
    if scales is not None:
        return [
            (n * int(s), s) if s == int(s) else (math.floor(float32(n * float32(s))), float32(s))
            for n, s in zip(lengths, scales, strict=True)
        ]
    assert size is not None
    if any(target and not n for target, n in zip(size, lengths, strict=True)):
        raise ValueError(f"axes of the lengths {list(lengths)} cannot be resized to {list(size)}")
    found = [float32(target / n) if target != n else 1.0 for target, n in zip(size, lengths, strict=True)]
    if policy == "stretch":
        return list(zip(size, found, strict=True))
    scale = min(found) if policy == "not_larger" else max(found)
    return [(math.floor(scale * n + 0.5), scale) for n in lengths]


def resize_places(
    target: int, length: int, scale: float, coordinates: str, region: tuple[float, float] = (0.0, 1.0)
) -> Tensor:
    """Where each element of a resized axis lies in the axis before, rounded as in single precision."""
    steps = torch.arange(target, dtype=torch.float64)
    if coordinates == "asymmetric":
        return (steps / scale).float()
    if coordinates == "align_corners":
        resized = target if abs(length * scale - target) < 1e-6 * target else length * scale
        return (steps * (length - 1) / (resized - 1)).float() if resized != 1 else steps.float() * 0
    if coordinates == "tf_crop_and_resize":
        begin, end = region
        if target <= 1:
            return (steps * 0 + 0.5 * (begin + end) * (length - 1)).float()
        return (begin * (length - 1) + steps * (end - begin) * (length - 1) / (target - 1)).float()
    if coordinates == "pytorch_half_pixel" and target <= 1:
        return steps.float() * 0
    if coordinates == "half_pixel_symmetric":
        adjustment = float32(target / float32(length * scale))
        return (length / 2 * (1 - adjustment) + (steps + 0.5) / scale - 0.5).float()
    return ((steps + 0.5) / scale).float() - 0.5


def nearest_index(places: Tensor, rounding: str) -> Tensor:
    """The whole numbers nearest to `places`; what is a millionth from the middle counts as the middle."""
    if rounding == "floor":
        return places.floor().long()
    if rounding == "ceil":
        return places.ceil().long()
    if rounding == "round_prefer_ceil":
        return (places.double() + 0.500001).floor().long()
    return (places.double() - 0.500001).ceil().long()


def linear_taps(places: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The two elements between which each place lies, and their weights."""
    places = places.clamp(0, length - 1)
    low = places.floor()
    part = torch.where(low == length - 1, 0.5, places - low)
    taps = torch.stack([low, low + 1], 1).long().clamp(max=length - 1)
    return taps, torch.stack([1 - part, part], 1)


def cubic_taps(places: Tensor, length: int, a: float, exclude_outside: bool) -> tuple[Tensor, Tensor]:
    """The four elements around each place, and their weights."""
    low = places.floor()
    steps = torch.arange(-1, 3)
    taps = low.long()[:, None] + steps
    weights = cubic_filter((places - low)[:, None] - steps, a)
    return within(taps, weights, length, exclude_outside)


def cubic_filter(distance: Tensor, a: float) -> Tensor:
    """The weight of an element at some distance, in Keys' family of cubic splines."""
    d = distance.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, torch.zeros_like(d)))


def within(taps: Tensor, weights: Tensor, length: int, exclude_outside: bool) -> tuple[Tensor, Tensor]:
    """Elements outside an axis are those at its ends, or have no weight."""
    if exclude_outside:
        weights = torch.where((taps >= 0) & (taps < length), weights, torch.zeros_like(weights))
        weights = weights / weights.sum(1, keepdim=True)
    return taps.clamp(0, length - 1), weights


def antialias_taps(
    places: Tensor, length: int, scale: float, mode: str, a: float, exclude_outside: bool
) -> tuple[Tensor, Tensor]:
    """The elements that shrink into each place, and their weights."""
    reach = (1.0 if mode == "linear" else 2.0) * max(1 / scale, 1.0)
    centre = places + 0.5
    first = (centre - reach + 0.5).floor()
    last = (centre + reach + 0.5).floor()
    taps = first[:, None] + torch.arange(2 * math.ceil(reach) + 2)
    distance = (taps - centre[:, None] + 0.5) * min(scale, 1.0)
    weights = (1 - distance.abs()).clamp(min=0) if mode == "linear" else cubic_filter(distance, a)
    weights = torch.where(taps < last[:, None], weights, torch.zeros_like(weights))
    taps, weights = within(taps.long(), weights, length, exclude_outside)
    return taps, weights / weights.sum(1, keepdim=True)


def weigh(x: Tensor, axis: int, taps: Tensor, weights: Tensor) -> Tensor:
    """The weighted sums of the elements numbered in each row of `taps`."""
    taps, weights = taps.to(x.device), weights.to(x.device, x.dtype)
    shape = [-1, *[1] * (x.ndim - 1 - axis)]
    total: Tensor | None = None
    for tap, weight in zip(taps.unbind(1), weights.unbind(1), strict=True):
        part = x.index_select(axis, tap) * weight.reshape(shape)
        total = part if total is None else total + part
    assert total is not None
    return total


def weigh_corners(x: Tensor, corners: Sequence[tuple[int, Tensor, Tensor]]) -> Tensor:
    """`weigh` along several axes in one sum, so that whole numbers are rounded once."""
    total: Tensor | None = None
    for picks in itertools.product(range(2), repeat=len(corners)):
        part, weight = x, torch.ones((), device=x.device)
        for pick, (axis, taps, weights) in zip(reversed(picks), corners, strict=True):
            part = part.index_select(axis, taps[:, pick].to(x.device))
            weight = weight * weights[:, pick].to(x.device).reshape(-1, *[1] * (x.ndim - 1 - axis))
        part = weight * part
        total = part if total is None else total + part
    assert total is not None
    return total


def weigh_bytes(x: Tensor, axis: int, taps: Tensor, weights: Tensor, kind: torch.dtype) -> Tensor:
    """`weigh` in whole numbers, rounded to the range of `kind`."""
    fixed = (weights.double() * 2**22).round().long()
    total = weigh(x, axis, taps, fixed)
    limits = torch.iinfo(kind)
    return ((total + 2**21) >> 22).clamp(limits.min, limits.max)
