"""Elementwise ops."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import dims, input_of, needed, put, set_inputs, take

T = ir.DataType
FLOAT_MAX = 3.4028234663852886e38


@downgrade("Clip", since=11)
def clip_bounds(node: ir.Node, op: Older) -> None:
    """Bounds were attributes, of floats alone."""
    x, low, high = needed(node, 0), input_of(node, 1), input_of(node, 2)
    is_float = op.typed(x).is_floating_point()
    known = [None if v is None else op.read(v) for v in (low, high)]
    bounds = [None if k is None else float(k.reshape(-1)[0]) for k in known]
    is_known = all(v is None or b is not None for v, b in zip((low, high), bounds, strict=True))
    if is_float and is_known and (bounds[0] is None or bounds[1] is None or bounds[0] <= bounds[1]):
        set_inputs(node, [x])
        put(node, **{name: bound for name, bound in zip(("min", "max"), bounds, strict=True) if bound is not None})
        return
    for end, kind in ((low, "Max"), (high, "Min")):
        x = x if end is None else op(kind, x, end)
    op.replace(x)


@downgrade("Max", "Min", since=12)
def extremes_of_integers(node: ir.Node, op: Older) -> None:
    """64 bits are compared as they are, where a cast to floats would not hold them."""
    values = [v for v in node.inputs if v is not None]
    if op.typed(values[0]) not in (T.INT64, T.UINT64):
        return
    found = values[0]
    for other in values[1:]:
        first = op("Greater" if node.op_type == "Max" else "Less", found, other)
        found = op("Where", first, found, other)
    op.replace(found)


@downgrade("Max", "Min", "Sum", "Mean", since=8)
def of_one_shape(node: ir.Node, op: Older) -> None:
    """Inputs were all of one shape."""
    values = [v for v in node.inputs if v is not None]
    shapes = [tuple(op.sizes(v, "an input")) for v in values]
    if len(set(shapes)) > 1:
        full = np.broadcast_shapes(*shapes)
        zeros = op.constant(np.zeros(full, op.typed(values[0]).numpy()))
        wide = [v if s == full else op("Add", v, zeros) for v, s in zip(values, shapes, strict=True)]
        set_inputs(node, wide)


@downgrade("Pow", since=12)
def one_type(node: ir.Node, op: Older) -> None:
    """Base and exponent were floats of one type."""
    x, y = needed(node, 0), needed(node, 1)
    base, exponent = op.typed(x, "the base"), op.typed(y, "the exponent")
    if base == exponent and base.is_floating_point():
        return
    wide = base if base.is_floating_point() and not exponent.is_floating_point() else T.DOUBLE
    if base in (T.INT64, T.UINT64):
        refuse("the base is an integer of 64 bits")
    power = op("Pow", *(v if v.dtype == wide else op("Cast", v, to=wide) for v in (x, y)))
    op.replace(power if wide == base else op("Cast", power, to=base))


@downgrade("Equal", since=11)
def equal_floats(node: ir.Node, op: Older) -> None:
    """Before, integers alone were compared so; NaN equals nothing."""
    a, b = needed(node, 0), needed(node, 1)
    if not op.typed(a).is_floating_point():
        return
    zero, one = op.number(0.0, a), op.number(1.0, a)
    apart = op("Or", op("Less", a, b), op("Greater", a, b))
    real = [op("Or", op("Less", v, one), op("Greater", v, zero)) for v in (a, b)]
    op.replace(op("And", op("Not", apart), op("And", *real)))


@downgrade("GreaterOrEqual", "LessOrEqual", since=12)
def or_equal(node: ir.Node, op: Older) -> None:
    a, b = needed(node, 0), needed(node, 1)
    strict = op(node.op_type.removesuffix("OrEqual"), a, b)
    op.replace(op("Or", strict, op("Equal", a, b)))


@downgrade("Greater", "Less", since=9)
def compared_integers(node: ir.Node, op: Older) -> None:
    """Before, floats alone were compared; 64 bits do not fit into one."""
    if op.typed(needed(node, 0)) in (T.INT64, T.UINT64):
        refuse("it compares integers of 64 bits")


@downgrade("Gemm", since=11)
def gemm_sum(node: ir.Node, op: Older) -> None:
    a, c = needed(node, 0), input_of(node, 2)
    if c is None:
        zero = np.zeros(1, op.typed(a).numpy())
        set_inputs(node, [a, needed(node, 1), op.constant(zero)])


@downgrade("IsInf", since=10)
def is_infinite(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    below, above = take(node, "detect_negative", 1), take(node, "detect_positive", 1)
    largest = float(np.finfo(op.typed(x).numpy()).max)
    if not below and not above:
        op.replace(op("And", op("Less", x, x), op("Less", x, x)))
        return
    high, low = op("Greater", x, op.number(largest, x)), op("Less", x, op.number(-largest, x))
    op.replace(op("Or", high, low) if below and above else high if above else low)


@downgrade("IsNaN", since=9)
def is_not_a_number(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    real = op("Or", op("Less", x, op.number(1.0, x)), op("Greater", x, op.number(0.0, x)))
    op.replace(op("Not", real))


@downgrade("Sign", since=9)
def sign(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    zero, dtype = op.number(0.0, x), op.typed(x)
    above, below = (op("Cast", op(kind, x, zero), to=dtype) for kind in ("Greater", "Less"))
    op.replace(op("Sub", above, below))


@downgrade("Mod", since=10)
def remainder(node: ir.Node, op: Older) -> None:
    """Integers are divided towards zero; without `fmod` the remainder has the sign of the divisor."""
    a, b = needed(node, 0), needed(node, 1)
    if op.typed(a) not in (T.INT32, T.INT64):
        refuse("it is of floats, or of small or unsigned integers")
    rest = op("Sub", a, op("Mul", op("Div", a, b), b))
    if not take(node, "fmod", 0):
        moved = op("Add", rest, b)
        rest = op("Sub", moved, op("Mul", op("Div", moved, b), b))
    op.replace(rest)


@downgrade("BitwiseNot", since=18)
def bitwise_not(node: ir.Node, op: Older) -> None:
    """All bits turned: minus one less the number; of unsigned integers, the largest less it."""
    x = needed(node, 0)
    dtype = op.typed(x).numpy()
    ones = np.array(np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else -1, dtype)
    op.replace(op("Sub", op.constant(ones), x))


@downgrade("BitShift", since=11)
def shifted(node: ir.Node, op: Older) -> None:
    """A product with a power of two, or a quotient."""
    x, by = needed(node, 0), op.fixed(input_of(node, 1), "the number of bits")
    dtype = op.typed(x).numpy()
    if (by >= np.dtype(dtype).itemsize * 8).any():
        refuse("it shifts by all bits")
    powers = op.constant((np.ones_like(by) << by).astype(dtype))
    op.replace(op("Mul" if take(node, "direction") == "LEFT" else "Div", x, powers))


@downgrade("Round", since=11)
def rounded(node: ir.Node, op: Older) -> None:
    """To the nearest integer, of two to the even one."""
    x = needed(node, 0)
    one, half = op.number(1.0, x), op.number(0.5, x)
    low = op("Floor", x)
    part = op("Sub", x, low)
    odd = op("Sub", low, op("Mul", op("Floor", op("Mul", low, half)), op.number(2.0, x)))
    at_half = op(
        "And", op("Not", op("Or", op("Less", part, half), op("Greater", part, half))), op("Greater", odd, half)
    )
    up = op("Or", op("Greater", part, half), at_half)
    op.replace(op("Where", up, op("Add", low, one), low))


@downgrade("Einsum", since=12)
def einsum(node: ir.Node, op: Older) -> None:
    """Two operands: what is summed is a product of matrices, the rest a batch; of one, a reduction."""
    from onward.canon.downgrade.contraction import contracted

    values = [needed(node, i) for i in range(len(node.inputs))]
    op.replace(contracted(take(node, "equation"), values, op))


@downgrade("Where", since=9)
def chosen(node: ir.Node, op: Older) -> None:
    """A known condition decides at once; another cannot be said of numbers that may be infinite."""
    condition = op.fixed(input_of(node, 0), "its condition")
    a, b = needed(node, 1), needed(node, 2)
    if condition.all() == condition.any() and dims(node.outputs[0]) == dims(a if condition.all() else b):
        op.replace(a if condition.all() else b)
    else:
        refuse("its condition differs from element to element")
