"""Reading an image between its elements."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from onward.backends.torch.runtime.resize import cubic_filter


def sample_linear(x: Tensor, coordinates: Sequence[Tensor]) -> Tensor:
    """The values of `x` (batch, channels, axes …) at fractional places, by linear interpolation; zero outside.

    `coordinates` has a tensor (batch, places) for each axis; the result is (batch, channels, places).
    """
    lows = [torch.floor(c) for c in coordinates]
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=len(lows)):
        places = [low.long() + up for low, up in zip(lows, corner, strict=True)]
        weight = torch.ones_like(coordinates[0])
        for c, low, up in zip(coordinates, lows, corner, strict=True):
            weight = weight * (c - low if up else 1 - (c - low))
        part = gather_or_zero(x, places) * weight.to(x.dtype)[:, None]
        total = part if total is None else total + part
    assert total is not None
    return total


def gather_or_zero(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """The elements of `x` (batch, channels, axes …) at whole places, zero outside; see `sample_linear`."""
    inside = torch.ones_like(places[0], dtype=torch.bool)
    index = torch.zeros_like(places[0])
    for place, size in zip(places, x.shape[2:], strict=True):
        inside = inside & (place >= 0) & (place < size)
        index = index * size + place.clamp(0, size - 1)
    values = x.flatten(2).gather(2, index[:, None].expand(-1, x.shape[1], -1))
    return torch.where(inside[:, None], values, torch.zeros((), dtype=x.dtype, device=x.device))


def grid_sample_nd(
    x: Tensor, grid: Tensor, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """`F.grid_sample` over any number of axes, for any dtype, and with cubic interpolation.

    `mode` is nearest, linear or cubic; `padding` is zeros, border or reflection.
    """
    sizes, shape = x.shape[2:], grid.shape[1:-1]
    kind = torch.promote_types(torch.promote_types(x.dtype, grid.dtype), torch.float32)
    values = x.to(kind)
    coordinates = []
    for axis, size in enumerate(sizes):
        c = grid[..., len(sizes) - 1 - axis].to(kind).flatten(1)
        coordinates.append((c + 1) / 2 * (size - 1) if align_corners else ((c + 1) * size - 1) / 2)
    if mode != "cubic":
        moved = [into_range(c, size, padding, align_corners) for c, size in zip(coordinates, sizes, strict=True)]
        if mode == "nearest":
            y = gather_or_zero(values, [c.round().long() for c in moved])
        else:
            y = sample_linear(values, moved)
    else:
        y = sample_cubic(values, coordinates, padding, align_corners)
    return y.reshape(*x.shape[:2], *shape).to(x.dtype)


def into_range(c: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Coordinates outside an axis, moved to its border or reflected there; for zeros, no further than these begin."""
    if padding == "zeros":
        return c.clamp(-2.0, size + 1.0)
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return torch.zeros_like(c)
        c = torch.remainder(c - low, 2 * span)
        c = torch.where(c > span, 2 * span - c, c) + low
    return c.clamp(0, size - 1)


def sample_cubic(x: Tensor, coordinates: Sequence[Tensor], padding: str, align_corners: bool) -> Tensor:
    """As `sample_linear`, but by cubic interpolation between four elements along each axis."""
    lows = [torch.floor(c) for c in coordinates]
    weights = [
        cubic_filter((c - low)[..., None] - torch.arange(-1, 3, device=c.device), -0.75)
        for c, low in zip(coordinates, lows, strict=True)
    ]
    total: Tensor | None = None
    for taps in itertools.product(range(4), repeat=len(lows)):
        places = [
            into_range(low + tap - 1, size, padding, align_corners).round().long()
            for low, tap, size in zip(lows, taps, x.shape[2:], strict=True)
        ]
        weight = torch.ones_like(lows[0])
        for each, tap in zip(weights, taps, strict=True):
            weight = weight * each[..., tap]
        part = gather_or_zero(x, places) * weight[:, None]
        total = part if total is None else total + part
    assert total is not None
    return total


def roi_align(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    size: tuple[int, int],
    scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    half_pixel: bool = True,
) -> Tensor:
    """Pool regions (x1, y1, x2, y2), each of the image numbered in `batch`, from samples between the elements.

    Each cell of the result has `sampling_ratio` samples along both axes, or about one per element if that is 0.
    With mode "max" a cell is the largest of its weighted elements.
    """
    rois = rois * scale - (0.5 if half_pixel else 0.0)
    spans = rois[:, 2:] - rois[:, :2]
    spans = spans if half_pixel else spans.clamp(min=1.0)
    lines, counts = [], []
    for axis, cells, length in ((1, size[0], x.shape[2]), (0, size[1], x.shape[3])):
        step = spans[:, axis] / cells
        count = torch.full_like(step, sampling_ratio) if sampling_ratio > 0 else step.ceil()
        lines.append(roi_samples(rois[:, axis], step, count, cells, length))
        counts.append(count)
    (rows, row_weights, row_used), (columns, column_weights, column_used) = lines
    used = (row_used[:, :, None] & column_used[:, None, :])[..., None]
    images = batch.long()[:, None, None]
    total: Tensor | None = None
    for i, j in itertools.product(range(2), repeat=2):
        weight = (row_weights[i][:, :, None] * column_weights[j][:, None, :]).to(x.dtype)
        part = x[images, :, rows[i][:, :, None], columns[j][:, None, :]] * weight[..., None]
        total = part if total is None else torch.maximum(total, part) if mode == "max" else total + part
    assert total is not None
    shape = (len(rois), size[0], rows[0].shape[1] // size[0], size[1], columns[0].shape[1] // size[1])
    if mode == "max":
        y = torch.where(used, total, -torch.inf).reshape(*shape, x.shape[1]).amax((2, 4))
        return torch.where(y == -torch.inf, 0, y).movedim(-1, 1)
    y = torch.where(used, total, 0).reshape(*shape, x.shape[1]).sum((2, 4))
    samples = (counts[0] * counts[1]).clamp(min=1).to(x.dtype)
    return (y / samples[:, None, None, None]).movedim(-1, 1)


def roi_samples(
    start: Tensor, step: Tensor, count: Tensor, cells: int, length: int
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Samples of regions along one axis: the two elements around each, their weights, and which samples count.

    Each of the `cells` of a region, which are `step` long, has `count` samples; all have room for the largest count.
    """
    most = max(int(count.max()), 1) if len(count) else 1
    sample = torch.arange(most, device=start.device)
    inside = ((sample + 0.5) / count.clamp(min=1)[:, None])[:, None]
    at = (torch.arange(cells, device=start.device)[:, None] + inside) * step[:, None, None]
    at = (start[:, None, None] + at).flatten(1)
    beside = (at < -1) | (at > length)
    at = at.clamp(0, length - 1)
    low = at.floor()
    weights = [torch.where(beside, 0, 1 - (at - low)), torch.where(beside, 0, at - low)]
    taps = [low.long(), (low.long() + 1).clamp(max=length - 1)]
    return taps, weights, (sample < count[:, None]).repeat(1, cells)


def max_roi_pool(x: Tensor, rois: Tensor, size: tuple[int, int], scale: float = 1.0) -> Tensor:
    """The maxima of the cells of regions (image, x1, y1, x2, y2), whose corners are rounded to elements."""
    results = []
    for image, *corners in rois.tolist():
        left, top, right, bottom = (math.floor(abs(c * scale) + 0.5) * (1 if c >= 0 else -1) for c in corners)
        rows = roi_bounds(top, bottom, size[0], x.shape[2])
        columns = roi_bounds(left, right, size[1], x.shape[3])
        plane = x[int(image)]
        cells = [
            plane[:, r, c].amax((1, 2)) if r.start < r.stop and c.start < c.stop else plane.new_zeros(len(plane))
            for r in rows
            for c in columns
        ]
        results.append(torch.stack(cells, 1).reshape(len(plane), *size))
    return torch.stack(results) if results else x.new_zeros(0, x.shape[1], *size)


def roi_bounds(first: int, last: int, cells: int, length: int) -> list[slice]:
    """The elements that each cell of a region covers along one axis."""
    step = max(last - first + 1, 1) / cells
    bounds = [(first + math.floor(i * step), first + math.ceil((i + 1) * step)) for i in range(cells)]
    return [slice(min(max(a, 0), length), min(max(b, 0), length)) for a, b in bounds]


def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_boxes: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    center_point_box: bool = False,
) -> Tensor:
    """The boxes (batch, class, box) that overlap no better one of their class, best first.

    `boxes` is (batch, boxes, 4): two opposite corners (y, x), or the centre (x, y), width and height. `scores` is
    (batch, classes, boxes). At most `max_boxes` of each class are selected.
    """
    classes = scores.shape[1]
    if center_point_box:
        half = boxes[..., 2:] / 2
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low, high = torch.minimum(boxes[..., :2], boxes[..., 2:]), torch.maximum(boxes[..., :2], boxes[..., 2:])
    selected = [torch.zeros(0, 3, dtype=torch.int64, device=boxes.device)]
    for row, score in enumerate(scores.flatten(0, 1)):
        image, label = row // classes, row % classes
        order = score.argsort(dim=0, descending=True, stable=True)
        if score_threshold is not None:
            order = order[score[order] > score_threshold]
        kept = best_boxes(low[image], high[image], order, max_boxes, iou_threshold)
        where = torch.tensor([image, label], device=boxes.device).expand(len(kept), 2)
        selected.append(torch.cat([where, kept[:, None]], 1))
    return torch.cat(selected)


def best_boxes(low: Tensor, high: Tensor, order: Tensor, most: int, threshold: float) -> Tensor:
    """Of the boxes in `order`, the first that do not overlap one kept before, at most `most`."""
    kept = order[:0]
    for some in torch.split(order, 256):
        if len(kept) >= most:
            break
        if len(kept):
            some = some[~boxes_overlap(low, high, kept, some, threshold).any(0)]
        hides = boxes_overlap(low, high, some, some, threshold).cpu().numpy()
        keep = np.ones(len(some), bool)
        for i in range(len(some)):
            if keep[i]:
                keep[i + 1 :] &= ~hides[i, i + 1 :]
        kept = torch.cat([kept, some[torch.from_numpy(keep).to(some.device)]])
    return kept[: max(most, 0)]


def boxes_overlap(low: Tensor, high: Tensor, a: Tensor, b: Tensor, threshold: float) -> Tensor:
    """For each of the boxes `a` and each of `b`: whether intersection over union exceeds the threshold."""
    sides = torch.minimum(high[a][:, None], high[b]) - torch.maximum(low[a][:, None], low[b])
    sides = sides.clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    first, second = high[a] - low[a], high[b] - low[b]
    union = (first[:, 0] * first[:, 1])[:, None] + second[:, 0] * second[:, 1] - shared
    return (shared > 0) & (union > 0) & (shared / union > threshold)
