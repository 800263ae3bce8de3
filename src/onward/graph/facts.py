"""What passes can prove about small values: numbers computed from constants and from the dimensions of tensors.

A number is an int or float, or a `Term` such as 0.5 · dim(q, 3)^-0.5 where it depends on dimensions that are
known only at run time. Products, quotients, powers and roots of terms are terms; a sum with one is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.trained import is_trained

_ELEMENTWISE = {
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Where", "Neg", "Abs", "Sqrt", "Exp", "Log", "Erf", "Tanh"),
    *("Sigmoid", "Relu", "Gelu", "Clip", "Not", "And", "Or", "Equal"),
}
"""Ops whose result is as large as the largest of their inputs."""
LIMIT = 64
"""The most elements a value may have to be followed."""
DEPTH = 40
"""The longest chain of nodes that is followed."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Dim:
    """Dimension `axis` of `value`."""

    value: ir.Value
    axis: int


@dataclass(frozen=True)
class Term:
    """coefficient · product of dimensions to a power."""

    coefficient: float
    powers: tuple[tuple[Dim, float], ...]


Number = int | float | Term


def term(coefficient: float, powers: dict[Dim, float]) -> Number:
    kept = {dim: power for dim, power in powers.items() if power}
    if not kept:
        return coefficient
    return Term(coefficient, tuple(sorted(kept.items(), key=lambda item: (id(item[0].value), item[0].axis))))


def _split(number: Number) -> tuple[float, dict[Dim, float]]:
    return (number.coefficient, dict(number.powers)) if isinstance(number, Term) else (number, {})


def multiply(a: Number, b: Number, power: int = 1) -> Number:
    """a · b^power"""
    (left, powers), (right, others) = _split(a), _split(b)
    for dim, exponent in others.items():
        powers[dim] = powers.get(dim, 0) + power * exponent
    factor = right**power if right or power > 0 else math.copysign(math.inf, right)
    return term(left * factor, powers)


def product(numbers: Iterable[Number]) -> Number:
    total: Number = 1
    for number in numbers:
        total = multiply(total, number)
    return total


def root(a: Number) -> Number:
    coefficient, powers = _split(a)
    return term(
        math.sqrt(coefficient) if coefficient >= 0 else math.nan, {dim: power / 2 for dim, power in powers.items()}
    )


def vanishes_with(a: Number | None, b: Number) -> bool:
    """Whether `b` is certainly 0 wherever `a` is: all dimensions that make up `a` are factors of `b`."""
    if not isinstance(a, Term) or not isinstance(b, Term):
        return not isinstance(a, Term) and a is not None and a != 0
    factors = {dim for dim, _ in b.powers}
    return a.coefficient != 0 and all(power > 0 and dim in factors for dim, power in a.powers)


class Facts:
    """Answers about the values of one model; valid until the graph changes where it looked."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Array | None] = {}
        self._dims: dict[tuple[ir.Value, int], Number] = {}
        self._named: dict[str, Dim] = {}

    def numbers(self, value: ir.Value | None) -> list[Any] | None:
        """The elements of a small value, in order, or None where one of them is not known."""
        found = self.array(value)
        return None if found is None else found.reshape(-1).tolist()

    def elements(self, value: ir.Value, count: int) -> list[Any]:
        """The `count` elements of a vector, None for each that is not known."""
        found = self.numbers(value)
        if found is not None:
            return found
        node = value.producer()
        if node is not None and node.op_type == "Concat" and node.domain in ("", "ai.onnx"):
            parts = [None if v is None else v.shape for v in node.inputs]
            sizes = [p[0] if p is not None and len(p) == 1 and isinstance(p[0], int) else -count for p in parts]
            if sum(sizes) == count:
                return [n for v, size in zip(node.inputs, sizes, strict=True) if v for n in self.elements(v, size)]
        return [None] * count

    def number(self, value: ir.Value | None) -> Any:
        """The only element of a value, or None."""
        found = self.numbers(value)
        return found[0] if found is not None and len(found) == 1 else None

    def ints(self, value: ir.Value | None) -> list[int] | None:
        """The elements of a value, all of which are known integers."""
        found = self.numbers(value)
        return found if found is not None and all(isinstance(n, int) for n in found) else None

    def array(self, value: ir.Value | None, depth: int = 0) -> Array | None:
        """The elements of a small value as an object array of numbers and terms."""
        if value is None or depth > DEPTH:
            return None
        if value not in self._known:
            self._known[value] = self._find(value, depth)
        return self._known[value]

    def _find(self, value: ir.Value, depth: int) -> Array | None:
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is not None and is_trained(value):
            return None  # what it holds now is not what it will
        if tensor is not None:
            plain = tensor.size <= LIMIT and tensor.dtype not in (ir.DataType.STRING, ir.DataType.UNDEFINED)
            return _objects(tensor.numpy()) if plain else None
        node = value.producer()
        if node is None or node.domain not in ("", "ai.onnx") or len(node.outputs) != 1:
            return None
        if node.op_type == "Shape":
            return self._shape(node, depth)
        evaluate = EVALUATE.get(node.op_type)
        if evaluate is None:
            return None
        inputs, options = node.inputs, {name: a.value for name, a in node.attributes.items()}
        if node.op_type == "CastLike":
            like = node.inputs[1]
            inputs, options = node.inputs[:1], {"to": ir.DataType.UNDEFINED if like is None else like.dtype or 0}
        operands = [None if v is None else self.array(v, depth + 1) for v in inputs]
        if any(o is None and v is not None for o, v in zip(operands, inputs, strict=True)):
            return None
        try:
            result = _as_array(evaluate(*operands, **options))
        except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError):
            return None
        return result if result is not None and result.size <= LIMIT else None

    def _shape(self, node: ir.Node, depth: int) -> Array | None:
        x = node.inputs[0]
        if x is None or x.shape is None:
            return None
        rank = len(x.shape)
        kept = range(rank)[node.attributes.get_int("start", 0) : node.attributes.get_int("end", rank)]
        return _array([self.dim(x, axis, depth + 1) for axis in kept], (len(kept),))

    def dim(self, value: ir.Value, axis: int, depth: int = 0) -> Number:
        """Dimension `axis` of a value of known rank: a number, or the dimension that it is equal to."""
        assert value.shape is not None
        axis %= len(value.shape)
        known = value.shape[axis]
        if isinstance(known, int):
            return known
        if (value, axis) not in self._dims:
            found = self._dim(value, axis, depth + 1) if depth < DEPTH else None
            if found is None:
                here = Dim(value, axis)
                found = term(1, {here if known.value is None else self._named.setdefault(known.value, here): 1})
            self._dims[value, axis] = found
        return self._dims[value, axis]

    def size(self, value: ir.Value, depth: int = 0) -> Number:
        """How many elements a value of known rank has."""
        return product([self.dim(value, axis, depth) for axis in range(len(value.shape or ()))])

    def _dim(self, value: ir.Value, axis: int, depth: int) -> Number | None:
        """A dimension by way of the node that makes it, or None."""
        node = value.producer()
        shape, sources = value.shape, [] if node is None else [v for v in node.inputs if v is not None]
        if node is None or node.domain not in ("", "ai.onnx", "onward") or not sources or shape is None:
            return None
        if any(v.shape is None for v in sources):
            return None
        perm = node.attributes.get_ints("perm", None)
        match node.op_type:
            case "Identity" | "Cast":
                return self.dim(sources[0], axis, depth)
            case "Transpose" if perm:
                return self.dim(sources[0], perm[axis], depth)
            case "Reshape":
                return self._reshaped(sources[0], self.array(sources[1], depth), axis, depth)
        if shape[axis].value is not None:  # type: ignore[union-attr]
            return None
        from_end, cut = axis - len(shape), node.attributes.get_int("axis", 0)
        match node.op_type:
            case op if op in _ELEMENTWISE:
                return self._broadcast(sources, from_end, depth)
            case "Expand":
                return self._expanded(sources[0], self.numbers(sources[1]), from_end, depth)
            case "Softmax" | "LayerNormalization" | "RMSNormalization":
                return self.dim(sources[0], axis, depth)
            case "MatMul" | "MatMulInteger" if all(len(v.shape or ()) > 1 for v in sources[:2]):
                return self._broadcast(sources[:2] if from_end < -2 else [sources[from_end + 2]], from_end, depth)
            case "SDPA" if from_end < -1:
                return self._broadcast(sources[:3] if from_end < -2 else sources[:1], from_end, depth)
            case "Linear" if from_end < -1:
                return self.dim(sources[0], axis, depth)
            case "Gemm" if axis == 0:
                return self.dim(sources[0], node.attributes.get_int("transA", 0), depth)
            case "Split" if axis not in (cut, cut + len(shape)):
                return self.dim(sources[0], axis, depth)
            case "Slice" if len(node.inputs) > 3:
                axes = self.ints(node.inputs[3])
                if axes is not None and not {axis, from_end} & set(axes):
                    return self.dim(sources[0], axis, depth)
        return None

    def _broadcast(self, sources: list[ir.Value], from_end: int, depth: int) -> Number | None:
        return _largest(self.dim(v, from_end, depth) for v in sources if len(v.shape or ()) >= -from_end)

    def _expanded(self, source: ir.Value, target: list[Any] | None, from_end: int, depth: int) -> Number | None:
        if target is None:
            return None
        wanted = target[from_end] if len(target) >= -from_end else 1
        return _largest(
            [wanted, self.dim(source, from_end, depth)] if len(source.shape or ()) >= -from_end else [wanted]
        )

    def _reshaped(self, source: ir.Value, target: Array | None, axis: int, depth: int) -> Number | None:
        """A number of the wanted shape; for a -1, what the others leave."""
        if target is None or axis >= target.size:
            return None
        others = target.reshape(-1).tolist()
        size = others.pop(axis)
        if isinstance(size, Term) or (isinstance(size, int) and size > 0):
            return size
        if size != -1 or 0 in others or -1 in others or source.shape is None:
            return None
        coefficient, powers = _split(multiply(self.size(source, depth), product(others), -1))
        if coefficient != int(coefficient) or any(power < 0 for power in powers.values()):
            return None
        return term(int(coefficient), powers)


def _largest(sizes: Iterable[Number]) -> Number | None:
    """What dimensions broadcast to: the one that is not 1, or None where there are several."""
    large = {size for size in sizes if size != 1}
    return large.pop() if len(large) == 1 else None


def _array(items: list[Any], shape: tuple[int, ...]) -> Array:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out.reshape(shape)


def _as_array(result: Any) -> Array | None:
    """Numpy gives the one element itself where an array of objects without dimensions is meant."""
    return result if result is None or isinstance(result, np.ndarray) else _array([result], ())


def _objects(data: Array) -> Array:
    plain = data.astype(np.float64) if data.dtype.kind == "V" else data
    return _array(plain.reshape(-1).tolist(), data.shape)


def _each(fn: Callable[..., Number], *operands: Array) -> Array:
    if math.prod(np.broadcast_shapes(*(operand.shape for operand in operands))) > LIMIT:
        raise ValueError("too many elements")
    broadcast = np.broadcast_arrays(*operands)
    rows = zip(*(b.reshape(-1).tolist() for b in broadcast), strict=True)
    return _array([fn(*row) for row in rows], broadcast[0].shape)


def _plain(fn: Callable[..., Number]) -> Callable[..., Number]:
    def checked(*numbers: Number) -> Number:
        if any(isinstance(n, Term) for n in numbers):
            raise ValueError("not a term")
        return fn(*numbers)

    return checked


def _quotient(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if isinstance(a, Term | int) and isinstance(b, Term | int) and not _is_real(a) and not _is_real(b):
        raise ValueError("a quotient of integers that rounds")
    return multiply(a, b, -1)


def _is_real(number: Number) -> bool:
    """Whether a term has been turned into a floating-point number by a cast or a root."""
    return isinstance(number, float) or (isinstance(number, Term) and isinstance(number.coefficient, float))


def _to_float(number: Number) -> Number:
    return term(float(number.coefficient), dict(number.powers)) if isinstance(number, Term) else float(number)


def _cast(x: Array, *, to: int, **_: Any) -> Array | None:
    target = ir.DataType(to)
    if target.is_floating_point():
        return _each(_to_float, x)
    if target in (ir.DataType.INT32, ir.DataType.INT64):
        if any(_is_real(n) and (isinstance(n, Term) or not math.isfinite(n)) for n in x.reshape(-1)):
            return None
        return _each(lambda n: n if isinstance(n, Term) else int(n), x)
    return None


def _slice(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    index: list[slice] = [slice(None)] * x.ndim
    for i, (start, end) in enumerate(zip(starts.reshape(-1), ends.reshape(-1), strict=True)):
        axis = i if axes is None else axes[i]
        step = 1 if steps is None else steps[i]
        index[axis] = slice(max(start, -x.shape[axis]) if step < 0 else start, end, step)
    return x[tuple(index)]


def _reshape(x: Array, shape: Array, *, allowzero: int = 0, **_: Any) -> Array:
    return x.reshape([x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(shape)])


def _power(x: Array, exponent: Array, **_: Any) -> Array | None:
    n = exponent.reshape(-1)[0]
    if exponent.size != 1 or n not in (0.5, -0.5, -1.0, 1.0, 2.0):
        return None
    if abs(n) == 0.5:
        return _each(lambda a: multiply(1.0, root(_to_float(a)), 1 if n > 0 else -1), x)
    return _each(lambda a: multiply(1.0, a, int(n)), x) if all(map(_is_real, x.reshape(-1))) else None


def _equal(a: Number, b: Number) -> bool:
    """A product of dimensions equals itself and no negative number."""
    if a == b or not (isinstance(a, Term) or isinstance(b, Term)):
        return a == b
    for number, other in ((a, b), (b, a)):
        if isinstance(number, Term) and number.coefficient > 0 and not isinstance(other, Term) and other < 0:
            return False
    raise ValueError("not known")


def _constant_of_shape(shape: Array, value: ir.TensorProtocol | None = None) -> Array | None:
    sizes = shape.tolist()
    if value is None or not all(isinstance(n, int) for n in sizes) or math.prod(sizes) > LIMIT:
        return None
    return np.full(sizes, value.numpy().reshape(-1)[0].item(), dtype=object)


def _all_multiplied(
    x: Array, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array | None:
    if x.ndim != 1 or noop_with_empty_axes or (axes is not None and axes.size != 1):
        return None
    return _array([product(x.tolist())], (1,) if keepdims else ())


def _expand(x: Array, shape: Array, **_: Any) -> Array:
    wanted = np.broadcast_shapes(x.shape, tuple(shape.tolist()))
    if math.prod(wanted) > LIMIT:
        raise ValueError("too large")
    return np.broadcast_to(x, wanted)


EVALUATE: dict[str, Callable[..., Array | None]] = {
    "Identity": lambda x: x,
    "Cast": _cast,
    "CastLike": _cast,
    "Mul": lambda a, b: _each(multiply, a, b),
    "Div": lambda a, b: _each(_quotient, a, b),
    "Add": lambda a, b: _each(_plain(lambda x, y: x + y), a, b),
    "Sub": lambda a, b: _each(_plain(lambda x, y: x - y), a, b),
    "Neg": lambda x: _each(lambda n: multiply(-1, n), x),
    "Sqrt": lambda x: _each(lambda n: root(_to_float(n)), x),
    "Reciprocal": lambda x: _each(lambda n: multiply(1.0, n, -1), x),
    "Pow": _power,
    "Slice": _slice,
    "Gather": lambda x, indices, axis=0: np.take(x, indices.astype(np.int64), axis=axis),
    "Concat": lambda *parts, axis: np.concatenate(parts, axis=axis),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes.reshape(-1).tolist())),
    "Squeeze": lambda x, axes=None: np.squeeze(x, None if axes is None else tuple(axes.reshape(-1).tolist())),
    "Reshape": _reshape,
    "Expand": _expand,
    "ReduceProd": _all_multiplied,
    "Equal": lambda a, b: _each(_equal, a, b),
    "Where": lambda test, a, b: _each(lambda t, x, y: x if t else y, test, a, b),
    "ConstantOfShape": _constant_of_shape,
}
