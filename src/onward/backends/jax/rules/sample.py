"""Sampling images at given places, and boxes."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.target import ops, rule
from onward.backends.shared.sample import affine_grid, grid_sample, roi_align
from onward.graph.origin import origin
from onward.spec.sample import NonMaxSuppression

rule("RoiAlign")(roi_align)
rule("GridSample")(grid_sample)
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
    keywords = given(
        max_boxes=_number(e, max_output_boxes_per_class),
        iou_threshold=_number(e, iou_threshold),
        score_threshold=_number(e, score_threshold),
    )
    keywords |= changed(p, "center_point_box")
    size = e.bound()
    if size is None:
        return ops.non_max_suppression(boxes, scores, str(origin(e.node)), **keywords)
    found, e.counts[e.node] = e.unpack(ops.first_boxes(boxes, scores, size, **keywords), 2)
    return found


def _number(e: Emitter, x: Expr | None) -> Any:
    """A limit: the number, or the tensor of one."""
    found = None if x is None else e.scalar(x, 1)
    return x if found is None else found
