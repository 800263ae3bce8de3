"""Sampling images at given places, and boxes."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.matlab.rules.signal import number
from onward.backends.matlab.target import moves, ops, rank_of, row, rule
from onward.spec.sample import AffineGrid, GridSample, NonMaxSuppression, RoiAlign


@rule("GridSample")
def grid_sample(e: Emitter, x: Expr, grid: Expr, p: GridSample) -> Expr:
    return ops.grid_sample(x, grid, rank_of(e, x) - 2, p.mode, p.padding_mode, bool(p.align_corners))


@rule("AffineGrid")
def affine_grid(e: Emitter, theta: Expr, size: Expr, p: AffineGrid) -> Expr:
    wanted: Any = e.numbers(size)
    return ops.affine_grid(theta, wanted if isinstance(wanted, Expr) else row(wanted), bool(p.align_corners))


@rule("RoiAlign")
def roi_align(e: Emitter, x: Expr, rois: Expr, batch_indices: Expr, p: RoiAlign) -> Expr:
    cells = row([p.output_width, p.output_height])
    return ops.roi_align(x, rois, batch_indices, cells, p.spatial_scale, p.sampling_ratio, p.mode, p.half_pixel)


@moves("NonMaxSuppression")
def non_max_suppression(
    e: Emitter,
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr | None = None,
    iou_threshold: Expr | None = None,
    score_threshold: Expr | None = None,
    *,
    p: NonMaxSuppression,
) -> Expr:
    most, overlap = (0 if x is None else number(e, x) for x in (max_output_boxes_per_class, iou_threshold))
    least = number(e, score_threshold)
    return ops.non_max_suppression(boxes, scores, most, overlap, least, bool(p.center_point_box))
