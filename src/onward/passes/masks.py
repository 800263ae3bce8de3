"""What can be proved about attention masks: that they are causal, and that they hide no row completely."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onward.graph.facts import Facts, Number
from onward.graph.replace import constant, made_by
from onward.spec.cast import INTEGER_RANGES

LARGEST = 1 << 22
"""The most elements of a constant mask that are looked at."""
DEPTH = 30

_MOVES = ("Unsqueeze", "Squeeze", "Expand", "Reshape", "Transpose", "Slice", "Identity", "Gather")


def is_finite(value: ir.Value | None) -> bool:
    """Whether a float mask can be shown never to reach minus infinity.

    A fully hidden row of a finite mask is uniform attention; one of minus infinities is NaN in ONNX's Softmax
    but zero in a framework's attention function. Integers and booleans that are cast are taken to be 0 or 1.
    """
    bounds = _bounds(value)
    dtype = None if value is None else value.dtype
    largest = {ir.DataType.FLOAT16: 65504.0, ir.DataType.DOUBLE: float(np.finfo(np.float64).max)}
    limit = largest.get(dtype or ir.DataType.FLOAT, float(np.finfo(np.float32).max))
    return bounds is not None and -limit <= bounds[0] and bounds[1] <= limit


def _bounds(value: ir.Value | None, depth: int = 0) -> tuple[float, float] | None:
    """The least and the largest number a mask can hold, rounded as they are where it is computed."""
    found = _exact_bounds(value, depth)
    if found is None or value is None or value.dtype != ir.DataType.FLOAT:
        return found
    with np.errstate(over="ignore"):
        low, high = (float(np.float32(bound)) for bound in found)
    return low, high


def _exact_bounds(value: ir.Value | None, depth: int) -> tuple[float, float] | None:
    if value is None or depth > DEPTH:
        return None
    tensor = constant(value)
    if tensor is not None:
        if not 0 < tensor.size <= LARGEST or tensor.dtype == ir.DataType.STRING:
            return None
        data = tensor.numpy().astype(np.float64)
        return (float(data.min()), float(data.max())) if np.all(np.isfinite(data)) else None
    if value.dtype is not None and not value.dtype.is_floating_point():
        return (0.0, 1.0)
    node = value.producer()
    if node is None or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in (*_MOVES, "Cast", "CastLike"):
        return _bounds(node.inputs[0], depth + 1)
    if node.op_type == "ConstantOfShape":
        fill = node.attributes.get_tensor("value", None)
        number = 0.0 if fill is None else float(fill.numpy().reshape(-1)[0])
        return (number, number) if math.isfinite(number) else None
    if node.op_type == "DequantizeLinear":
        return _decoded_bounds(node, depth)
    parts = node.inputs[1:] if node.op_type == "Where" else node.inputs
    known = [b for b in (_bounds(v, depth + 1) for v in parts) if b is not None]
    if len(known) != len(parts) or not known:
        return None
    match node.op_type:
        case "Where" | "Concat":
            return min(b[0] for b in known), max(b[1] for b in known)
        case "Add":
            return known[0][0] + known[1][0], known[0][1] + known[1][1]
        case "Sub":
            return known[0][0] - known[1][1], known[0][1] - known[1][0]
        case "Mul":
            corners = [a * b for a in known[0] for b in known[1]]
            return min(corners), max(corners)
        case "Neg":
            return -known[0][1], -known[0][0]
        case "Min":
            return min(b[0] for b in known), min(b[1] for b in known)
        case "Max":
            return max(b[0] for b in known), max(b[1] for b in known)
    return None


def _decoded_bounds(node: ir.Node, depth: int) -> tuple[float, float] | None:
    """Those of integers that stand for floats; of a type without bounds, none."""
    codes = node.inputs[0]
    low, high = INTEGER_RANGES.get((codes.dtype if codes is not None else None) or ir.DataType.UNDEFINED, (0, 0))
    scale = _bounds(node.inputs[1], depth + 1) if high else None
    corners = [(high - low) * bound for bound in scale or ()]
    return (-max(map(abs, corners)), max(map(abs, corners))) if corners else None


def is_causal_bias(mask: ir.Value | None, rows: Number, columns: Number, facts: Facts) -> bool:
    """Whether a float mask of that size is 0 where column ≤ row and hides the rest."""
    where = made_by(_before_unsqueeze(mask, facts), "Where")
    if where is not None:
        yes, no = facts.number(where.inputs[1]), facts.number(where.inputs[2])
        for shown, hidden, sign in ((yes, no, True), (no, yes, False)):
            if shown == 0 and hides(hidden, mask):
                return is_causal(where.inputs[0], rows, columns, facts) is sign
    tensor = constant(mask)
    if tensor is None or mask is None or not 0 < tensor.size <= LARGEST or not tensor.dtype.is_floating_point():
        return False
    data = tensor.numpy()
    if data.ndim < 2 or data.shape[-2:] != (rows, columns) or math.prod(data.shape[:-2]) != 1:
        return False
    matrix = data.reshape(data.shape[-2:])
    lower = np.tril(np.ones(matrix.shape, np.bool_))
    return not np.any(matrix[lower]) and all(hides(x, mask) for x in np.unique(matrix[~lower]).tolist())


def hides(number: Number | None, like: ir.Value | None) -> bool:
    """Whether adding a number to a score leaves it no weight, whatever the score."""
    if not isinstance(number, float | int):
        return False
    return number <= (-65504.0 if like is not None and like.dtype == ir.DataType.FLOAT16 else -1e30)


def is_causal(mask: ir.Value | None, rows: Number, columns: Number, facts: Facts) -> bool | None:
    """True if a condition of that size holds exactly where column ≤ row, False if exactly where it does not."""
    found = _triangle(mask, facts)
    if found is None:
        return None
    sign, shape = found
    fits = shape[-2:] == [rows, columns] and all(n == 1 for n in shape[:-2])
    return sign if fits else None


def _before_unsqueeze(value: ir.Value | None, facts: Facts) -> ir.Value | None:
    """What a value was before dimensions of one were put in front of it."""
    while (node := made_by(value, "Unsqueeze")) is not None and _leading(node, facts):
        value = node.inputs[0]
    return value


def _leading(unsqueeze: ir.Node, facts: Facts) -> int:
    """How many dimensions are put in front of all others; 0 where they are put elsewhere."""
    axes = facts.ints(unsqueeze.inputs[1])
    return len(axes) if axes is not None and sorted(axes) == list(range(len(axes))) else 0


def _triangle(value: ir.Value | None, facts: Facts, depth: int = 0) -> tuple[bool, list[Number]] | None:
    """Whether a value is 1 on the lower triangle (True) or above it (False) and 0 elsewhere, and its shape."""
    if value is None or depth > DEPTH:
        return None
    tensor = constant(value)
    if tensor is not None:
        return _constant_triangle(tensor)
    node = value.producer()
    if node is None or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Trilu":
        return _trilu(node, facts)
    found = _triangle(node.inputs[0], facts, depth + 1)
    if found is None:
        return None
    sign, shape = found
    match node.op_type:
        case "Identity" | "Cast":
            return found
        case "Not":
            return not sign, shape
        case "Equal" if facts.number(node.inputs[1]) == 0:
            return not sign, shape
        case "Unsqueeze":
            count = _leading(node, facts)
            return (sign, [1] * count + shape) if count else None
        case "Slice":
            return _sliced(node, sign, shape, facts)
    return None


def _constant_triangle(tensor: ir.TensorProtocol) -> tuple[bool, list[Number]] | None:
    dims = tuple(tensor.shape.numpy())
    if len(dims) < 2 or not 1 < tensor.size <= LARGEST or tensor.dtype == ir.DataType.STRING:
        return None
    if math.prod(dims[:-2]) != 1:
        return None
    values = tensor.numpy().reshape(dims[-2:])
    lower = np.tril(np.ones(values.shape, np.bool_))
    if np.array_equal(values, lower):
        return True, list(dims)
    return (False, list(dims)) if np.array_equal(values, ~lower) else None


def _trilu(node: ir.Node, facts: Facts) -> tuple[bool, list[Number]] | None:
    diagonal = 0 if len(node.inputs) < 2 or node.inputs[1] is None else facts.number(node.inputs[1])
    upper = node.attributes.get_int("upper", 1)
    ones = made_by(node.inputs[0], "Expand", "ConstantOfShape")
    if ones is None or (upper, diagonal) not in ((0, 0), (1, 1)):
        return None
    if ones.op_type == "Expand":
        fill, shape = facts.number(ones.inputs[0]), facts.numbers(ones.inputs[1])
    else:
        given = ones.attributes.get_tensor("value", None)
        fill = 0 if given is None else given.numpy().reshape(-1)[0].item()
        shape = facts.numbers(ones.inputs[0])
    if fill != 1 or shape is None or len(shape) < 2:
        return None
    return upper == 0, shape


def _sliced(node: ir.Node, sign: bool, shape: list[Number], facts: Facts) -> tuple[bool, list[Number]] | None:
    """The upper left corner of a triangle is a triangle."""
    starts, ends, axes, steps = (facts.numbers(v) for v in (*node.inputs[1:], None, None)[:4])
    if starts is None or ends is None or any(s != 0 for s in starts) or any(s != 1 for s in steps or [1]):
        return None
    cut = list(shape)
    for axis, end in zip(axes if axes is not None else range(len(ends)), ends, strict=True):
        size = cut[axis]
        if not (isinstance(end, int) and isinstance(size, int)):
            cut[axis] = end
        else:
            cut[axis] = min(end, size) if end >= 0 else max(end + size, 0)
    return sign, cut
