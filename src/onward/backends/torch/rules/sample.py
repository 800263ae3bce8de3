"""Sampling images at given places, and boxes."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.rules.signal import number
from onward.backends.torch.target import F, ops, rule

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@rule("GridSample")
def grid_sample(
    e: Emitter,
    x: Expr,
    grid: Expr,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Expr:
    padding = {} if padding_mode == "zeros" else {"padding_mode": padding_mode}
    alike = e.dtype(x) == e.dtype(grid) and e.dtype(x) in _WIDE
    if alike and e.rank(x) in ((4,) if mode == "cubic" else (4, 5)):
        names = {"linear": {}, "nearest": {"mode": "nearest"}, "cubic": {"mode": "bicubic"}}
        return F.grid_sample(x, grid, **names[mode], **padding, align_corners=bool(align_corners))
    given = {"mode": mode, "padding": padding_mode, "align_corners": bool(align_corners)}
    defaults = {"mode": "linear", "padding": "zeros", "align_corners": False}
    return ops.grid_sample_nd(x, grid, **{k: v for k, v in given.items() if v != defaults[k]})


@rule("AffineGrid")
def affine_grid(e: Emitter, theta: Expr, size: Expr, *, align_corners: int = 0) -> Expr:
    return F.affine_grid(theta, e.numbers(size), align_corners=bool(align_corners))


@rule("RoiAlign")
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
    given = {
        "scale": spatial_scale,
        "sampling_ratio": sampling_ratio,
        "mode": mode,
        "half_pixel": coordinate_transformation_mode == "half_pixel",
    }
    defaults = {"scale": 1.0, "sampling_ratio": 0, "mode": "avg", "half_pixel": True}
    changed = {k: v for k, v in given.items() if v != defaults[k]}
    return ops.roi_align(x, rois, batch_indices, (output_height, output_width), **changed)


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
    keywords = options(
        max_boxes=number(e, max_output_boxes_per_class),
        iou_threshold=number(e, iou_threshold),
        score_threshold=number(e, score_threshold),
        center_point_box=bool(center_point_box),
    )
    return ops.non_max_suppression(boxes, scores, **keywords)
