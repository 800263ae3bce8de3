"""The one interpreter of small values: what each op makes of numbers that follow from shapes and constants.

A value is an object array. An element of it is a Python number, something that an `Algebra` knows how to calculate
with (the name of a dimension, a product of dimensions, an expression of generated code), or None where it is unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import partial, reduce
from itertools import accumulate, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Items = npt.NDArray[np.object_]
Rule = Callable[..., "Items | list[Items] | None"]

LIMIT = 64
"""The most elements a value may have to be followed: nobody wants to read 1,000 numbers in source code."""
INTEGERS = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL}


class Algebra:
    """What is known of the inputs of nodes, and how to calculate with elements that are no numbers."""

    def of(self, value: ir.Value | None) -> Items | None:
        """The elements of a value, or None."""
        raise NotImplementedError

    def rank(self, value: ir.Value) -> int | None:
        """How many dimensions a value has."""
        return None if value.shape is None else len(value.shape)

    def dim(self, value: ir.Value, axis: int) -> Any:
        """A dimension of a value whose rank is known, as an element."""
        raise NotImplementedError

    def symbolic(self, op: str, *row: Any) -> Any:
        """One element of an elementwise op, or of a cast to 'int', 'float' or 'bool', of what is not all numbers."""
        return None

    def element(self, op: str, *row: Any) -> Any:
        """One element of the result of an elementwise op."""
        if op in NUMBERS and all(isinstance(item, int | float) for item in row):
            return NUMBERS[op](*row)
        if op == "Where" and isinstance(row[0], int):
            return row[1] if row[0] else row[2]
        return self.symbolic(op, *row)

    def each(self, op: str, *operands: Items) -> Items:
        """All elements of an elementwise op."""
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        if math.prod(shape) > LIMIT:
            raise ValueError("too many elements")
        rows = zip(*(np.broadcast_to(operand, shape).reshape(-1).tolist() for operand in operands), strict=True)
        return array([self.element(op, *row) for row in rows], shape)


def evaluate(node: ir.Node, algebra: Algebra) -> list[Items] | None:
    """The elements of all outputs of a node, or None where it is not followed."""
    rule = RULES.get(node.op_type)
    if rule is None or node.domain not in ("", "ai.onnx") or not node.inputs or node.inputs[0] is None:
        return None
    operands: list[Any] = [node.inputs[0]]
    if node.op_type not in ("Shape", "Size"):
        operands = [None if value is None else algebra.of(value) for value in node.inputs]
        if any(found is None and value is not None for found, value in zip(operands, node.inputs, strict=True)):
            return None
    try:
        result = rule(algebra, *operands, **{name: _as_input(a) for name, a in node.attributes.items()})
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError):
        return None
    results = result if isinstance(result, list) else [] if result is None else [result]
    if len(results) != len(node.outputs):
        return None
    return results if all(_fits(r, value.dtype) for r, value in zip(results, node.outputs, strict=True)) else None


def array(items: Iterable[Any], shape: tuple[int, ...] | None = None) -> Items:
    """An object array holding `items`, of the given shape or one-dimensional."""
    items = list(items)
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out if shape is None else out.reshape(shape)


def constant_items(data: np.ndarray[Any, Any]) -> Items:
    """The elements of a constant; those of types that numpy does not have are floats."""
    return array((data.astype(np.float64) if data.dtype.kind == "V" else data).reshape(-1).tolist(), data.shape)


def _fits(items: Items, dtype: ir.DataType | None) -> bool:
    """Whether there are few enough, and numbers are those of a tensor, where too large ones wrap around."""
    limit = 2**31 if dtype == ir.DataType.INT32 else 2**63
    return items.size <= LIMIT and all(not isinstance(n, int) or -limit <= n < limit for n in items.flat)


def _as_input(attribute: ir.Attr) -> Any:
    """What old opsets have as an attribute and newer ones as an input is the same to the rules."""
    is_input = attribute.name in ("axes", "starts", "ends", "split") and attribute.type == ir.AttributeType.INTS
    return array(attribute.value) if is_input else attribute.value


def _ints(items: Items) -> list[int]:
    """Indices, sizes or axes, all of which have to be known."""
    numbers: list[int] = items.reshape(-1).tolist()
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("not known")
    return numbers


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        with np.errstate(all="ignore"):
            return float(np.divide(a, b))
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _extreme(pick: Callable[..., Any], *row: Any) -> Any:
    return math.nan if any(map(math.isnan, row)) else pick(row)


def _whole(fold: Callable[[float], int], number: float) -> float | None:
    return math.copysign(fold(number), number) if math.isfinite(number) else None


NUMBERS: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _divide,
    "Mod": lambda a, b: None if b == 0 else a % b,
    "Neg": operator.neg,
    "Abs": abs,
    "Sqrt": lambda a: math.sqrt(a) if a >= 0 else None,
    "Floor": partial(_whole, math.floor),
    "Ceil": partial(_whole, math.ceil),
    "Min": partial(_extreme, min),
    "Max": partial(_extreme, max),
    "Equal": operator.eq,
    "Less": operator.lt,
    "Greater": operator.gt,
    "LessOrEqual": operator.le,
    "GreaterOrEqual": operator.ge,
    "And": lambda a, b: a and b,
    "Or": lambda a, b: a or b,
    "Not": operator.not_,
    "int": lambda a: int(a) if math.isfinite(a) else None,
    "float": float,
    "bool": bool,
}
"""One element of elementwise ops and casts where all operands are numbers."""


def _elementwise(op: str) -> Rule:
    return lambda algebra, *operands, **_: algebra.each(op, *operands)


def _cast(algebra: Algebra, x: Items, *, to: int, **_: Any) -> Items | None:
    dtype = ir.DataType(to)
    if dtype not in INTEGERS and not dtype.is_floating_point():
        return None
    return algebra.each("bool" if dtype == ir.DataType.BOOL else "int" if dtype in INTEGERS else "float", x)


def _shape(algebra: Algebra, x: ir.Value, *, start: int = 0, end: int | None = None) -> Items | None:
    rank = algebra.rank(x)
    return None if rank is None else array(algebra.dim(x, axis) for axis in range(rank)[start:end])


def _size(algebra: Algebra, x: ir.Value) -> Items | None:
    dims = _shape(algebra, x)
    return None if dims is None else _reduction(_product)(algebra, dims, keepdims=0)  # type: ignore[return-value]


def _product(algebra: Algebra, items: list[Any]) -> Any:
    return reduce(partial(algebra.element, "Mul"), items, 1)


def _sum(algebra: Algebra, items: list[Any]) -> Any:
    return reduce(partial(algebra.element, "Add"), items, 0)


def _reduction(combine: Callable[[Algebra, list[Any]], Any]) -> Rule:
    """Of ops that make one element of all those of a vector."""

    def rule(
        algebra: Algebra, x: Items, axes: Items | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Items | None:
        if x.ndim != 1 or (noop_with_empty_axes and (axes is None or not axes.size)):
            return None
        found = combine(algebra, x.tolist())
        return None if found is None else array([found], (1,) if keepdims else ())

    return rule


def _gather(_: Algebra, x: Items, indices: Items, *, axis: int = 0) -> Items:
    taken = np.take(x, np.array(_ints(indices), np.int64).reshape(indices.shape), axis=axis)
    return taken if isinstance(taken, np.ndarray) else array([taken], ())


def _slice(
    _: Algebra, x: Items, starts: Items, ends: Items, axes: Items | None = None, steps: Items | None = None
) -> Items:
    index = [slice(None)] * x.ndim
    places = range(x.ndim) if axes is None else _ints(axes)
    strides = repeat(1) if steps is None else _ints(steps)
    for start, end, axis, step in zip(_ints(starts), _ints(ends), places, strides, strict=False):
        index[axis] = slice(max(start, -x.shape[axis]) if step < 0 else start, end, step)
    return x[tuple(index)]


def _reshape(_: Algebra, x: Items, shape: Items, *, allowzero: int = 0) -> Items:
    return x.reshape([x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(_ints(shape))])


def _expand(_: Algebra, x: Items, shape: Items) -> Items:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_ints(shape))))


def _tile(_: Algebra, x: Items, repeats: Items) -> Items | None:
    return np.tile(x, _ints(repeats)) if x.size * math.prod(_ints(repeats)) <= LIMIT else None


def _split(_: Algebra, x: Items, split: Items | None = None, *, axis: int = 0, num_outputs: int = 0) -> list[Items]:
    length = x.shape[axis]
    sizes = _even(length, num_outputs) if split is None else _ints(split)
    if sum(sizes) != length or min(sizes) < 0:
        raise ValueError("other sizes than the parts of an axis have")
    return np.split(x, list(accumulate(sizes))[:-1], axis=axis)


def _even(length: int, count: int) -> list[int]:
    """Equal parts, the last of which may be smaller."""
    size = -(-length // count)
    return [size] * (count - 1) + [length - size * (count - 1)]


def _constant_of_shape(_: Algebra, shape: Items, *, value: ir.TensorProtocol | None = None) -> Items | None:
    sizes = _ints(shape)
    if math.prod(sizes) > LIMIT:
        return None
    return np.full(sizes, 0.0 if value is None else value.numpy().reshape(-1)[0].item(), dtype=object)


def _range(_: Algebra, *bounds: Items, **kind: Any) -> Items | None:
    numbers = range(*(n for bound in bounds for n in _ints(bound)))
    return array(numbers) if len(numbers) <= LIMIT else None


RULES: dict[str, Rule] = {op: _elementwise(op) for op in (*NUMBERS, "Pow", "Reciprocal", "Where") if op[0].isupper()}
"""By op, what makes the elements of its outputs from an algebra, those of its inputs, and its attributes."""
RULES |= {
    "Mod": lambda algebra, a, b, fmod=0: None if fmod else algebra.each("Mod", a, b),
    "Cast": _cast,
    "Shape": _shape,
    "Size": _size,
    "ReduceProd": _reduction(_product),
    "ReduceSum": _reduction(_sum),
    "ReduceMin": _reduction(lambda algebra, items: algebra.element("Min", *items)),
    "ReduceMax": _reduction(lambda algebra, items: algebra.element("Max", *items)),
    "Identity": lambda _, x: x,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": lambda _, *parts, axis: np.concatenate(parts, axis=axis),
    "Unsqueeze": lambda _, x, axes: np.expand_dims(x, tuple(_ints(axes))),
    "Squeeze": lambda _, x, axes=None: np.squeeze(x, None if axes is None else tuple(_ints(axes))),
    "Reshape": _reshape,
    "Expand": _expand,
    "Tile": _tile,
    "Transpose": lambda _, x, perm=None: np.transpose(x, perm),
    "Split": _split,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
}
