"""QuantizeLinear and DequantizeLinear: blocks, axes and the types of numbers in few bits."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, input_of, needed, set_inputs, take

T = ir.DataType
_BYTES = {T.INT4: T.INT8, T.UINT4: T.UINT8, T.INT2: T.INT8, T.UINT2: T.UINT8}
LARGEST = 2**31


@downgrade("DequantizeLinear", since=25)
@downgrade("DequantizeLinear", since=21)
def dequantize_blocks(node: ir.Node, op: Older) -> None:
    """Weights in few bits are stored in bytes; blocks have their scales repeated."""
    x, scale, zero = needed(node, 0), needed(node, 1), input_of(node, 2)
    if op.target >= 21 and x.dtype in (T.INT4, T.UINT4):
        return
    wide = [_in_bytes(v, op) for v in (x, zero) if v is not None]
    block = take(node, "block_size", 0)
    if not block:
        set_inputs(node, [wide[0], scale, *wide[1:]])
        return
    axis = counted(node.attributes.get_int("axis", 1), x, op)
    size = op.sizes(x)
    real = [op("Cast", v, to=T.FLOAT) for v in wide]
    parts = [_repeated(v, axis, block, size, op) for v in (op("Cast", scale, to=T.FLOAT), *real[1:])]
    y = real[0] if len(parts) == 1 else op("Sub", real[0], parts[1])
    y = op("Mul", y, parts[0])
    op.replace(y if scale.dtype == T.FLOAT else op("Cast", y, to=op.typed(scale)))


def _in_bytes(value: ir.Value, op: Older) -> ir.Value:
    """A constant of 4 bits in 8."""
    dtype = _BYTES.get(op.typed(value))
    if dtype is None:
        return value
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None or value.is_graph_input():
        refuse(f"its {value.dtype.name.lower() if value.dtype else ''} input is computed when the model runs")
    if tensor.size > LARGEST:
        refuse("its weight has too many elements")
    return op.constant(tensor.numpy().astype(dtype.numpy()))


def _repeated(value: ir.Value, axis: int, block: int, size: list[int], op: Older) -> ir.Value:
    """Each element along an axis, a block of times."""
    steps = op.sizes(value)
    apart = op("Unsqueeze", value, op.ints([axis + 1]))
    wide = op("Expand", apart, op.ints([*steps[: axis + 1], block, *steps[axis + 1 :]]))
    whole = op("Reshape", wide, op.ints([*steps[:axis], steps[axis] * block, *steps[axis + 1 :]]))
    if steps[axis] * block == size[axis]:
        return whole
    return op("Slice", whole, op.ints([0]), op.ints([size[axis]]), op.ints([axis]))


@downgrade("DequantizeLinear", since=23)
def dequantized_type(node: ir.Node, op: Older) -> None:
    dtype = take(node, "output_dtype", 0)
    if dtype and T(dtype) != op.typed(needed(node, 1), "its scale"):
        refuse("its result is of another type than its scale")


@downgrade("DequantizeLinear", since=19)
def dequantize_halves(node: ir.Node, op: Older) -> None:
    """The scale was a float."""
    x, scale, zero = needed(node, 0), needed(node, 1), input_of(node, 2)
    if op.typed(scale) == T.FLOAT:
        return
    y = op("DequantizeLinear", x, op("Cast", scale, to=T.FLOAT), zero, **node.attributes)
    op.replace(op("Cast", y, to=op.typed(scale)))


def _along_axis(node: ir.Node, op: Older) -> ir.Value | None:
    """The shape in which scales stand along their axis; None where there is one for all."""
    x, axis = needed(node, 0), take(node, "axis", 1)
    if dims(needed(node, 1)) in ([], [1]):
        return None
    return op.ints([-1, *[1] * (op.ranked(x) - 1 - counted(axis, x, op))])


@downgrade("DequantizeLinear", since=13)
def dequantize_tensor(node: ir.Node, op: Older) -> None:
    """There was one scale for the tensor."""
    x, scale, zero = needed(node, 0), needed(node, 1), input_of(node, 2)
    shape = _along_axis(node, op)
    if shape is None:
        return
    y = op("Cast", x, to=T.FLOAT)
    if zero is not None:
        y = op("Sub", y, op("Reshape", op("Cast", zero, to=T.FLOAT), shape))
    op.replace(op("Mul", y, op("Reshape", scale, shape)))


@downgrade("QuantizeLinear", since=21)
def quantize_blocks(node: ir.Node, op: Older) -> None:
    """The type of the result was that of the zero point alone."""
    x, scale, zero = needed(node, 0), needed(node, 1), input_of(node, 2)
    if take(node, "block_size", 0):
        refuse("it has blocks")
    dtype = take(node, "output_dtype", 0)
    if dtype and zero is None:
        shape = dims(scale)
        if shape is None or None in shape:
            refuse("the shape of its scale is not known")
        set_inputs(node, [x, scale, op.constant(np.zeros([d or 0 for d in shape], T(dtype).numpy()))])


@downgrade("QuantizeLinear", since=23)
def quantized_precision(node: ir.Node, op: Older) -> None:
    precision = take(node, "precision", 0)
    if precision and T(precision) != op.typed(needed(node, 1), "its scale"):
        refuse("it computes in another type than its scale")


@downgrade("QuantizeLinear", since=19)
def quantize_halves(node: ir.Node, op: Older) -> None:
    """Data and scale were floats: what is computed in halves is rounded in between."""
    if op.typed(needed(node, 0)) in (T.FLOAT16, T.BFLOAT16):
        refuse(f"it quantises {op.typed(needed(node, 0)).name.lower()}, which is rounded before")


@downgrade("QuantizeLinear", since=13)
def quantize_tensor(node: ir.Node, op: Older) -> None:
    """There was one scale for the tensor."""
    x, scale, zero = needed(node, 0), needed(node, 1), input_of(node, 2)
    shape = _along_axis(node, op)
    if shape is None:
        return
    dtype = T.UINT8 if zero is None else op.typed(zero)
    ends = np.iinfo(dtype.numpy())
    real = x if x.dtype == T.FLOAT else op("Cast", x, to=T.FLOAT)
    steps = op("Round", op("Div", real, op("Reshape", scale, shape)))
    if zero is not None:
        steps = op("Add", steps, op("Reshape", op("Cast", zero, to=T.FLOAT), shape))
    op.replace(op("Cast", op("Clip", steps, op.floats(float(ends.min)), op.floats(float(ends.max))), to=dtype))
