"""Sampling images, which are channels last, at given places, and boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.target import ops, rule
from onward.spec.pool import MaxRoiPool


def image_rule(op: str) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    """Register a rule for images that are channels last, and for those whose rank has no layout."""

    def register(last: Callable[..., Expr]) -> Callable[..., Expr]:
        @rule(op)
        def first(e: Emitter, x: Expr, *more: Expr | None, **attributes: Any) -> Expr:
            return ops.channels_first(last(e, ops.channels_last(x), *more, **attributes))

        rule(f"onward.nhwc::{op}")(last)
        return last

    return register


def said(defaults: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The arguments that differ from a helper's defaults."""
    return {name: value for name, value in given.items() if value != defaults[name]}


@image_rule("GridSample")
def grid_sample(
    e: Emitter,
    x: Expr,
    grid: Expr,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Expr:
    defaults = {"mode": "linear", "padding": "zeros", "align_corners": False}
    arguments = said(defaults, mode=mode, padding=padding_mode, align_corners=bool(align_corners))
    return ops.grid_sample(x, grid, **arguments)


@rule("AffineGrid")
def affine_grid(e: Emitter, theta: Expr, size: Expr, *, align_corners: int = 0) -> Expr:
    return ops.affine_grid(theta, e.numbers(size), **({"align_corners": True} if align_corners else {}))


@image_rule("RoiAlign")
def roi_align(
    e: Emitter,
    x: Expr,
    rois: Expr,
    batch_indices: Expr,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Expr:
    arguments = said(
        {"scale": 1.0, "sampling_ratio": 0, "mode": "avg", "half_pixel": True},
        scale=spatial_scale,
        sampling_ratio=sampling_ratio,
        mode=mode,
        half_pixel=coordinate_transformation_mode == "half_pixel",
    )
    return ops.roi_align(x, rois, batch_indices, [output_height, output_width], **arguments)


@image_rule("MaxRoiPool")
def max_roi_pool(e: Emitter, x: Expr, rois: Expr, p: MaxRoiPool) -> Expr:
    return ops.max_roi_pool(x, rois, list(p.pooled_shape), **said({"scale": 1.0}, scale=p.spatial_scale))


@rule("NonMaxSuppression")
def non_max_suppression(
    e: Emitter,
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr | None = None,
    iou_threshold: Expr | None = None,
    score_threshold: Expr | None = None,
    *,
    center_point_box: int = 0,
) -> Expr:
    limits = {
        "max_boxes": (max_output_boxes_per_class, ir.DataType.INT64),
        "iou_threshold": (iou_threshold, ir.DataType.FLOAT),
        "score_threshold": (score_threshold, ir.DataType.FLOAT),
    }
    given = {name: scalar(e, value, kind) for name, (value, kind) in limits.items() if value is not None}
    return ops.non_max_suppression(boxes, scores, **given, **({"center_point_box": True} if center_point_box else {}))
