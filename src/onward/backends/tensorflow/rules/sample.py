"""Sampling images, which are channels last, at given places, and boxes."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.arguments import changed
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.sample import affine_grid, grid_sample, roi_align
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.target import ops, rule
from onward.backends.tensorflow.window import image_rule
from onward.spec.sample import NonMaxSuppression

image_rule("RoiAlign")(roi_align)
image_rule("GridSample")(grid_sample)
rule("AffineGrid")(affine_grid)


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
    limits = {
        "max_boxes": (max_output_boxes_per_class, ir.DataType.INT64),
        "iou_threshold": (iou_threshold, ir.DataType.FLOAT),
        "score_threshold": (score_threshold, ir.DataType.FLOAT),
    }
    given = {name: scalar(e, value, kind) for name, (value, kind) in limits.items() if value is not None}
    return ops.non_max_suppression(boxes, scores, **given, **changed(p, "center_point_box"))
