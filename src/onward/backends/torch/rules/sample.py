"""Sampling images at given places, and boxes."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.sample import roi_align
from onward.backends.torch.rules.signal import number
from onward.backends.torch.target import F, ops, rule
from onward.spec.sample import AffineGrid, GridSample, NonMaxSuppression

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)

rule("RoiAlign")(roi_align)


@rule("GridSample")
def grid_sample(e: Emitter, x: Expr, grid: Expr, p: GridSample) -> Expr:
    alike = e.dtype(x) == e.dtype(grid) and e.dtype(x) in _WIDE
    if alike and e.rank(x) in ((4,) if p.mode == "cubic" else (4, 5)):
        mode = {"linear": {}, "nearest": {"mode": "nearest"}, "cubic": {"mode": "bicubic"}}[p.mode]
        return F.grid_sample(x, grid, **mode, **changed(p, "padding_mode"), align_corners=p.align_corners)
    return ops.grid_sample_nd(x, grid, **changed(p, "mode", padding="padding_mode", align_corners="align_corners"))


@rule("AffineGrid")
def affine_grid(e: Emitter, theta: Expr, size: Expr, p: AffineGrid) -> Expr:
    return F.affine_grid(theta, e.numbers(size), align_corners=p.align_corners)


@rule("NonMaxSuppression")
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
    keywords = given(
        max_boxes=number(e, max_output_boxes_per_class),
        iou_threshold=number(e, iou_threshold),
        score_threshold=number(e, score_threshold),
    )
    return ops.non_max_suppression(boxes, scores, **keywords, **changed(p, "center_point_box"))
