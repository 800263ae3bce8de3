"""Regions of images, as helpers read them."""

from __future__ import annotations

from onward.backends.emit.arguments import changed
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.sample import AffineGrid, GridSample, RoiAlign


def roi_align(e: Emitter, x: Expr, rois: Expr, batch_indices: Expr, p: RoiAlign) -> Expr:
    cells = e.target.each((p.output_height, p.output_width))
    scale = changed(p, scale="spatial_scale")
    return ops.roi_align(x, rois, batch_indices, cells, **scale, **changed(p, "sampling_ratio", "mode", "half_pixel"))


def grid_sample(e: Emitter, x: Expr, grid: Expr, p: GridSample) -> Expr:
    return ops.grid_sample(x, grid, **changed(p, "mode", padding="padding_mode", align_corners="align_corners"))


def affine_grid(e: Emitter, theta: Expr, size: Expr, p: AffineGrid) -> Expr:
    return ops.affine_grid(theta, e.numbers(size), **changed(p, "align_corners"))
