"""Pooling: windows that are rounded up at the end, and those with holes."""

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import dims, needed, put, take


@downgrade("MaxPool", "AveragePool", since=22)
def last_window(node: ir.Node, op: Older) -> None:
    """Before, it was not said that a window which begins in the padding at the end is left out."""
    known, ceil = dims(needed(node, 0)), node.attributes.get_int("ceil_mode", 0)
    if not ceil or known is None or None in known[2:]:
        return
    windows = _windows(node, [length or 0 for length in known[2:]])
    if windows is not None and any(w.made < w.rounded_up for w in windows):
        _pad_to(node, windows)


@downgrade("MaxPool", since=10)
@downgrade("LpPool", since=18)
@downgrade("AveragePool", since=10)
def rounded_up(node: ir.Node, op: Older) -> None:
    ceil = node.attributes.get_int("ceil_mode", 0)
    if not ceil:
        return
    windows = _windows(node, op.sizes(needed(node, 0))[2:])
    if windows is None:
        take(node, "ceil_mode")
    else:
        _pad_to(node, windows)


class _Windows(NamedTuple):
    """The windows along one axis."""

    made: int
    rounded_up: int
    missing: int
    """How many elements the last window has behind the end."""


def _windows(node: ir.Node, lengths: list[int]) -> list[_Windows] | None:
    """None where `auto_pad` says how many there are."""
    if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
        return None
    kernel = node.attributes.get_ints("kernel_shape", [])
    size = len(kernel)
    strides, holes = (node.attributes.get_ints(n, [1] * size) for n in ("strides", "dilations"))
    pads = node.attributes.get_ints("pads", [0] * 2 * size)
    found = []
    for i, length in enumerate(lengths):
        whole, window = length + pads[i] + pads[i + size], holes[i] * (kernel[i] - 1) + 1
        count = rounded_up = -(-(whole - window) // strides[i]) + 1
        if (count - 1) * strides[i] >= length + pads[i]:
            count -= 1
        found.append(_Windows(count, rounded_up, max((count - 1) * strides[i] + window - whole, 0)))
    return found


def _pad_to(node: ir.Node, windows: list[_Windows]) -> None:
    """What the last window has behind the end becomes padding, which a maximum does not see, nor an average."""
    missing = [window.missing for window in windows]
    counted = node.attributes.get_int("count_include_pad", 0)
    if any(missing) and node.op_type == "AveragePool" and counted:
        refuse("ceil_mode is 1, and padding is counted")
    take(node, "ceil_mode")
    pads = list(node.attributes.get_ints("pads", [0] * 2 * len(missing)))
    put(node, pads=[*pads[: len(missing)], *(a + b for a, b in zip(pads[len(missing) :], missing, strict=True))])


@downgrade("AveragePool", since=19)
def average_with_holes(node: ir.Node, op: Older) -> None:
    """An average is a convolution by channels."""
    kernel = list(node.attributes.get_ints("kernel_shape", []))
    holes = list(node.attributes.get_ints("dilations", [1] * len(kernel)))
    if all(hole == 1 for hole in holes):
        take(node, "dilations")
        return
    pads = list(node.attributes.get_ints("pads", [0] * 2 * len(kernel)))
    ceil, counted = (node.attributes.get_int(name, 0) for name in ("ceil_mode", "count_include_pad"))
    if ceil or node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
        refuse("it has dilations, with auto_pad or ceil_mode")
    if any(pads) and not counted:
        refuse("it has dilations, and padding that is not counted")
    x = needed(node, 0)
    channels = op.sizes(x)[1]
    weight = np.full((channels, 1, *kernel), 1 / np.prod(kernel)).astype(op.typed(x).numpy())
    strides = list(node.attributes.get_ints("strides", [1] * len(kernel)))
    conv = op("Conv", x, op.constant(weight), group=channels, strides=strides, pads=pads, dilations=holes)
    op.replace(conv)


@downgrade("RoiAlign", since=16)
def regions(node: ir.Node, op: Older) -> None:
    mode = take(node, "coordinate_transformation_mode", "half_pixel")
    if mode != "output_half_pixel":
        refuse(f"coordinate_transformation_mode is '{mode}'")


@downgrade("Col2Im", since=18)
def columns_to_image(node: ir.Node, op: Older) -> None:
    """Each element of a block is a picture with holes: a transposed convolution puts all of them in place."""
    x = needed(node, 0)
    image = [int(n) for n in op.fixed(node.inputs[1], "the size of the image")]
    block = [int(n) for n in op.fixed(node.inputs[2], "the size of a block")]
    size = len(block)
    strides, holes = (list(node.attributes.get_ints(n, [1] * size)) for n in ("strides", "dilations"))
    pads = list(node.attributes.get_ints("pads", [0] * 2 * size))
    if not op.typed(x).is_floating_point():
        refuse("it adds up integers")
    per_block, batch, rows = int(np.prod(block)), *op.sizes(x)[:2]
    channels = rows // per_block
    windows = [holes[i] * (block[i] - 1) + 1 for i in range(size)]
    counts = [(image[i] + pads[i] + pads[i + size] - windows[i]) // strides[i] + 1 for i in range(size)]
    extra = [image[i] + pads[i] + pads[i + size] - windows[i] - (counts[i] - 1) * strides[i] for i in range(size)]
    pictures = op("Reshape", x, op.ints([batch * channels, per_block, *counts]))
    one_each = np.eye(per_block).reshape(per_block, 1, *block).astype(op.typed(x).numpy())
    made = op(
        *("ConvTranspose", pictures, op.constant(one_each)),
        strides=strides,
        pads=pads,
        dilations=holes,
        output_padding=extra,
    )
    op.replace(op("Reshape", made, op.ints([batch, channels, *image])))
