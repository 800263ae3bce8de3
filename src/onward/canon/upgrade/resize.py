"""Resize, Upsample before it, and GridSample."""

import numpy as np
import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import UnsupportedError
from onward.graph.rewriter import (
    Rewriter,
    describe,
    dims,
    input_of,
    needed,
    put,
    require,
    set_inputs,
    take,
)


@upgrade("Upsample", since=7)
def upsample_images(node: ir.Node, op: Rewriter) -> None:
    height, width = require(node, "height_scale"), require(node, "width_scale")
    mode = take(node, "mode", "nearest")
    put(node, scales=[1.0, 1.0, height, width], mode="linear" if mode == "bilinear" else mode)


@upgrade("Upsample", since=9)
def upsample_scales(node: ir.Node, op: Rewriter) -> None:
    set_inputs(node, [needed(node, 0), op.floats(require(node, "scales"))])


@upgrade("Upsample", since=10)
def upsample_is_resize(node: ir.Node, op: Rewriter) -> None:
    """An Upsample scales by 1 or more, for which `nearest` is the element at or before the coordinate."""
    node.op_type = "Resize"
    put(node, nearest_mode="floor")


@upgrade("Resize", since=11)
def resize_coordinates(node: ir.Node, op: Rewriter) -> None:
    """Coordinates were divided by the scale. `nearest` took the element at or before the coordinate along an
    axis that grows, and the one at or after it along an axis that shrinks."""
    x, scales = needed(node, 0), needed(node, 1)
    mode, rounding = take(node, "mode", "nearest"), take(node, "nearest_mode")
    put(node, mode=mode, coordinate_transformation_mode="asymmetric")
    known = op.read(scales)
    if mode != "nearest":
        set_inputs(node, [x, None, scales])
    elif rounding or (known is not None and ((known >= 1).all() or (known <= 1).all())):
        grows = rounding or known is None or (known >= 1).all()
        put(node, nearest_mode="floor" if grows else "ceil")
        set_inputs(node, [x, None, scales])
    else:
        one = op.floats(1.0) if known is None else None
        up = op("Max", scales, one) if known is None else op.constant(np.maximum(known, 1))
        down = op("Min", scales, one) if known is None else op.constant(np.minimum(known, 1))
        grown = op("Resize", x, None, up, **node.attributes, nearest_mode="floor")
        op.replace(op("Resize", grown, None, down, **node.attributes, nearest_mode="ceil"))


@upgrade("Resize", since=13)
def resize_inputs(node: ir.Node, op: Rewriter) -> None:
    """Where `sizes` was given, `scales` had to be there and empty; `roi` was required, if rarely read."""
    x, roi, scales, sizes = (input_of(node, i) for i in range(4))
    mode = take(node, "coordinate_transformation_mode", "half_pixel")
    if sizes is not None and dims(sizes) == [0]:
        sizes = None
    if mode == "tf_half_pixel_for_nn":
        _without_tf_half_pixel(node)
    else:
        put(node, coordinate_transformation_mode=mode)
    crops = mode == "tf_crop_and_resize"
    set_inputs(node, [x, roi if crops else None, scales if sizes is None else None, sizes])


def _without_tf_half_pixel(node: ir.Node) -> None:
    """`tf_half_pixel_for_nn` is half a pixel after `half_pixel`; another way of rounding makes up for it."""
    mode, rounding = take(node, "mode", "nearest"), take(node, "nearest_mode", "round_prefer_floor")
    same = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(rounding)
    if mode != "nearest" or same is None:
        raise UnsupportedError(
            f"{describe(node)}: coordinate_transformation_mode=tf_half_pixel_for_nn with mode={mode} and "
            f"nearest_mode={rounding} has no equivalent since version 13"
        )
    put(node, mode=mode, coordinate_transformation_mode="half_pixel", nearest_mode=same)


@upgrade("GridSample", since=20)
def grid_sample_mode(node: ir.Node, op: Rewriter) -> None:
    mode = take(node, "mode", "bilinear")
    put(node, mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))
