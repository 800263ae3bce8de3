"""Resize, and GridSample."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, input_of, needed, put, set_inputs, take


@downgrade("Resize", since=19)
def resize_modes(node: ir.Node, op: Older) -> None:
    """`half_pixel_symmetric` is `half_pixel` where the size is the scale times the size, with nothing cut off."""
    if node.attributes.get_string("coordinate_transformation_mode", "half_pixel") != "half_pixel_symmetric":
        return
    scales = None if input_of(node, 2) is None else op.fixed(input_of(node, 2), "its scale")
    if scales is not None and len(scales):
        along = _along(node, op)
        sizes = op.sizes(needed(node, 0))
        wanted = [float(s) * sizes[a] for s, a in zip(scales, along, strict=True)]
        if any(w != int(w) for w in wanted):
            refuse("coordinate_transformation_mode is 'half_pixel_symmetric'")
    put(node, coordinate_transformation_mode="half_pixel")


def _along(node: ir.Node, op: Older) -> list[int]:
    axes = node.attributes.get_ints("axes", None)
    x = needed(node, 0)
    return list(range(op.ranked(x))) if axes is None else [counted(a, x, op) for a in axes]


@downgrade("Resize", since=18)
def resize_axes(node: ir.Node, op: Older) -> None:
    """Scales and sizes were given for all axes, and sizes were what came out."""
    x, roi, scales, sizes = (input_of(node, i) for i in range(4))
    x = needed(node, 0)
    policy = take(node, "keep_aspect_ratio_policy", "stretch")
    axes = take(node, "axes")
    if axes is None and (sizes is None or policy == "stretch"):
        return
    put_back = list(range(op.ranked(x))) if axes is None else [counted(a, x, op) for a in axes]
    if roi is not None and dims(roi) != [0] and axes is not None:
        refuse("its region is given for some axes")
    if sizes is not None and dims(sizes) != [0] and policy != "stretch":
        wanted, known = op.fixed(sizes, "its size"), op.sizes(x)
        ratios = [float(n) / known[a] for n, a in zip(wanted, put_back, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        scale = np.ones(len(known), np.float32)
        scale[put_back] = ratio
        exact = [known[a] * ratio for a in put_back]
        if any(abs(e - round(e)) > 1e-6 for e in exact):
            refuse(f"keep_aspect_ratio_policy is '{policy}', and the size that it comes to is no whole number")
        full = np.array(known, np.int64)
        full[put_back] = [round(e) for e in exact]
        set_inputs(node, [x, roi, None, op.constant(full)])
    elif sizes is not None and dims(sizes) != [0]:
        set_inputs(node, [x, roi, None, _full(op.shape(x), sizes, put_back, op.ranked(x), op)])
    elif scales is not None:
        ones = op.constant(np.ones(op.ranked(x), np.float32))
        set_inputs(node, [x, roi, _full(ones, scales, put_back, op.ranked(x), op)])


def _full(rest: ir.Value, given: ir.Value, axes: list[int], size: int, op: Older) -> ir.Value:
    """What is given for some axes, and the rest for the others."""
    if axes == list(range(size)):
        return given
    known, others = op.read(given), op.read(rest)
    if known is not None and others is not None:
        whole = others.copy()
        whole[axes] = known
        return op.constant(whole)
    return op("ScatterElements", rest, op.ints(axes), given, axis=0)


@downgrade("Resize", since=13)
def resize_inputs(node: ir.Node, op: Older) -> None:
    """All inputs but sizes had to be given, if empty."""
    x, roi, scales, sizes = (input_of(node, i) for i in range(4))
    empty = op.constant(np.zeros(0, np.float32))
    if roi is not None and roi.dtype != ir.DataType.FLOAT:
        refuse("its region is not of floats")
    set_inputs(node, [x, roi or empty, scales or empty, sizes])


@downgrade("Resize", since=11)
def resize_scales(node: ir.Node, op: Older) -> None:
    """Coordinates were divided by the scale, and nearest was the element before, for what grows."""
    x, scales, sizes = needed(node, 0), input_of(node, 2), input_of(node, 3)
    mode, where = take(node, "mode", "nearest"), take(node, "coordinate_transformation_mode", "half_pixel")
    rounding = take(node, "nearest_mode", "round_prefer_floor")
    factors = op.read(scales)
    if sizes is not None:
        given = op.sizes(x)
        wanted = op.fixed(sizes, "its size")
        factors = np.array([w / g for w, g in zip(wanted, given, strict=True)], np.float32)
        if any(int(np.floor(f * g)) != w for f, g, w in zip(factors, given, wanted, strict=True)):
            refuse("its size is not a scale times that of its input")
        scales = op.constant(factors)
    for name in ("cubic_coeff_a", "exclude_outside", "extrapolation_value"):
        take(node, name)
    if mode == "cubic" or scales is None:
        refuse(f"its mode is '{mode}'")
    if mode == "linear" and where != "asymmetric":
        refuse(f"coordinate_transformation_mode is '{where}'")
    if mode == "nearest":
        if factors is None:
            refuse("its scales are computed when the model runs")
        whole = bool((factors == np.round(factors)).all() and (factors >= 1).all())
        halves = where == "half_pixel" and rounding in ("round_prefer_floor", "round_prefer_ceil") and whole
        before = where == "asymmetric" and rounding == "floor" and bool((factors >= 1).all())
        if not (halves or before):
            refuse(f"coordinate_transformation_mode is '{where}' and nearest_mode '{rounding}'")
    put(node, mode=mode)
    set_inputs(node, [x, scales])


@downgrade("Resize", since=10)
def resize_is_upsample(node: ir.Node, op: Older) -> None:
    factors = op.read(input_of(node, 1))
    if factors is None or (factors < 1).any():
        refuse("its scales are not known to be 1 or more")
    op.replace(op.of_version(9, "Upsample", needed(node, 0), needed(node, 1), mode=take(node, "mode", "nearest")))


@downgrade("Upsample", since=9)
def upsample_scales(node: ir.Node, op: Older) -> None:
    factors = op.fixed(input_of(node, 1), "its scale")
    set_inputs(node, [needed(node, 0)])
    put(node, scales=[float(f) for f in factors])


@downgrade("GridSample", since=20)
def grid_sample_mode(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    if op.ranked(x) != 4:
        refuse(f"its input has {op.ranked(x)} dimensions")
    mode = take(node, "mode", "linear")
    put(node, mode={"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))
