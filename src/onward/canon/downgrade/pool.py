"""Pooling: windows that are rounded up at the end, and those with holes."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import needed, put, take


@downgrade("MaxPool", since=10)
@downgrade("LpPool", since=18)
@downgrade("AveragePool", since=10)
def rounded_up(node: ir.Node, op: Older) -> None:
    """What the last window has beyond the end becomes padding, which a maximum does not see, nor an average."""
    if not take(node, "ceil_mode", 0):
        return
    if node.op_type == "AveragePool" and node.attributes.get_int("count_include_pad", 0):
        refuse("ceil_mode is 1, and padding is counted")
    if node.attributes.get_string("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return
    kernel = list(node.attributes.get_ints("kernel_shape", []))
    size = len(kernel)
    strides, holes = (list(node.attributes.get_ints(n, [1] * size)) for n in ("strides", "dilations"))
    pads = list(node.attributes.get_ints("pads", [0] * 2 * size))
    for i, length in enumerate(op.sizes(needed(node, 0))[2:]):
        wide = length + pads[i] + pads[i + size]
        window = holes[i] * (kernel[i] - 1) + 1
        count = -(-(wide - window) // strides[i]) + 1
        if (count - 1) * strides[i] >= length + pads[i]:  # a window that begins behind the end is left out
            count -= 1
        pads[i + size] += max((count - 1) * strides[i] + window - wide, 0)
    put(node, pads=pads)


@downgrade("AveragePool", since=19)
def average_with_holes(node: ir.Node, op: Older) -> None:
    """An average is a convolution by channels."""
    kernel = list(node.attributes.get_ints("kernel_shape", []))
    holes = list(node.attributes.get_ints("dilations", [1] * len(kernel)))
    if all(hole == 1 for hole in holes):
        take(node, "dilations")
        return
    pads = list(node.attributes.get_ints("pads", [0] * 2 * len(kernel)))
    if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET" or node.attributes.get_int("ceil_mode", 0):
        refuse("it has dilations, with auto_pad or ceil_mode")
    if any(pads) and not node.attributes.get_int("count_include_pad", 0):
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


