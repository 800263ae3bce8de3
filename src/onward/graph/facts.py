"""What passes can prove about small values: numbers computed from constants and from the dimensions of tensors.

A number is an int or float, or a `Term` such as 0.5 · dim(q, 3)^-0.5 where it depends on dimensions that are
known only at run time. Products, quotients, powers and roots of terms are terms; a sum with one is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onward.graph.trained import is_trained
from onward.graph.values import LIMIT, Algebra, Items, constant_items, evaluate

_ELEMENTWISE = {
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Where", "Neg", "Abs", "Sqrt", "Exp", "Log", "Erf", "Tanh"),
    *("Sigmoid", "Relu", "Gelu", "Clip", "Not", "And", "Or", "Equal"),
}
"""Ops whose result is as large as the largest of their inputs."""
_FOLLOWED = {
    *("Shape", "Identity", "Cast", "Add", "Sub", "Mul", "Div", "Neg", "Sqrt", "Reciprocal", "Pow", "ReduceProd"),
    *(
        "Equal",
        "Max",
        "Min",
        "Where",
        "Gather",
        "Slice",
        "Concat",
        "Unsqueeze",
        "Squeeze",
        "Reshape",
        "Expand",
        "ConstantOfShape",
    ),
}
"""Ops that turn no small error into a large one: floats are not rounded to their precision here."""
DEPTH = 40
"""The longest chain of nodes that is followed."""


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


class Facts(Algebra):
    """Answers about the values of one model; valid until the graph changes where it looked."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Items | None] = {}
        self._dims: dict[tuple[ir.Value, int], Number] = {}
        self._named: dict[str, Dim] = {}
        self._depth = 0

    def numbers(self, value: ir.Value | None) -> list[Any] | None:
        """The elements of a small value, in order, or None where one of them is not known."""
        found = self.of(value)
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

    def of(self, value: ir.Value | None) -> Items | None:
        """The elements of a small value, all of which are numbers and terms."""
        if value is None or self._depth > DEPTH:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self._find(value)
            self._depth -= 1
        return self._known[value]

    def _find(self, value: ir.Value) -> Items | None:
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is not None and is_trained(value):
            return None  # what it holds now is not what it will
        if tensor is not None:
            plain = tensor.size <= LIMIT and tensor.dtype not in (ir.DataType.STRING, ir.DataType.UNDEFINED)
            return constant_items(tensor.numpy()) if plain else None
        node, index = value.producer(), value.index()
        if node is None or index is None or node.op_type not in _FOLLOWED:
            return None
        found = evaluate(node, self)
        return None if found is None or any(n is None for n in found[index].flat) else found[index]

    def symbolic(self, op: str, *row: Any) -> Number | None:
        a, b = (*row, None)[:2]
        match op:
            case "Mul":
                return multiply(a, b)
            case "Div" if _is_real(a) or _is_real(b):  # a quotient of integers rounds
                return multiply(a, b, -1)
            case "Neg":
                return multiply(-1, a)
            case "Reciprocal":
                return multiply(1.0, a, -1)
            case "Sqrt":
                return root(_to_float(a))
            case "Pow" if b in (0.5, -0.5):
                return multiply(1.0, root(_to_float(a)), 1 if b > 0 else -1)
            case "Pow" if b in (-1.0, 1.0, 2.0) and _is_real(a):
                return multiply(1.0, a, int(b))
            case "Equal":
                return _equal(a, b)
            case "Max" | "Min" if all(number == a for number in row):
                return a  # type: ignore[no-any-return]
            case "float":
                return _to_float(a)
            case "int" if not _is_real(a):
                return a  # type: ignore[no-any-return]
        return None

    def dim(self, value: ir.Value, axis: int) -> Number:
        """Dimension `axis` of a value of known rank: a number, or the dimension that it is equal to."""
        assert value.shape is not None
        axis %= len(value.shape)
        known = value.shape[axis]
        if isinstance(known, int):
            return known
        if (value, axis) not in self._dims:
            self._depth += 1
            found = self._dim(value, axis) if self._depth <= DEPTH else None
            self._depth -= 1
            if found is None:
                here = Dim(value, axis)
                found = term(1, {here if known.value is None else self._named.setdefault(known.value, here): 1})
            self._dims[value, axis] = found
        return self._dims[value, axis]

    def size(self, value: ir.Value) -> Number:
        """How many elements a value of known rank has."""
        return product([self.dim(value, axis) for axis in range(len(value.shape or ()))])

    def _dim(self, value: ir.Value, axis: int) -> Number | None:
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
                return self.dim(sources[0], axis)
            case "Transpose" if perm:
                return self.dim(sources[0], perm[axis])
            case "Reshape":
                return self._reshaped(sources[0], self.of(sources[1]), axis)
        if shape[axis].value is not None:  # type: ignore[union-attr]
            return None
        from_end, cut = axis - len(shape), node.attributes.get_int("axis", 0)
        match node.op_type:
            case op if op in _ELEMENTWISE:
                return self._broadcast(sources, from_end)
            case "Expand":
                return self._expanded(sources[0], self.numbers(sources[1]), from_end)
            case "Softmax" | "LayerNormalization" | "RMSNormalization":
                return self.dim(sources[0], axis)
            case "MatMul" | "MatMulInteger" if all(len(v.shape or ()) > 1 for v in sources[:2]):
                return self._broadcast(sources[:2] if from_end < -2 else [sources[from_end + 2]], from_end)
            case "SDPA" if from_end < -1:
                return self._broadcast(sources[:3] if from_end < -2 else sources[:1], from_end)
            case "Linear" if from_end < -1:
                return self.dim(sources[0], axis)
            case "Gemm" if axis == 0:
                return self.dim(sources[0], node.attributes.get_int("transA", 0))
            case "Split" if axis not in (cut, cut + len(shape)):
                return self.dim(sources[0], axis)
            case "Slice" if len(node.inputs) > 3:
                axes = self.ints(node.inputs[3])
                if axes is not None and not {axis, from_end} & set(axes):
                    return self.dim(sources[0], axis)
        return None

    def _broadcast(self, sources: list[ir.Value], from_end: int) -> Number | None:
        return _largest(self.dim(v, from_end) for v in sources if len(v.shape or ()) >= -from_end)

    def _expanded(self, source: ir.Value, target: list[Any] | None, from_end: int) -> Number | None:
        if target is None:
            return None
        wanted = target[from_end] if len(target) >= -from_end else 1
        return _largest([wanted, self.dim(source, from_end)] if len(source.shape or ()) >= -from_end else [wanted])

    def _reshaped(self, source: ir.Value, target: Items | None, axis: int) -> Number | None:
        """A number of the wanted shape; for a -1, what the others leave."""
        if target is None or axis >= target.size:
            return None
        others = target.reshape(-1).tolist()
        size = others.pop(axis)
        if isinstance(size, Term) or (isinstance(size, int) and size > 0):
            return size
        if size != -1 or 0 in others or -1 in others or source.shape is None:
            return None
        coefficient, powers = _split(multiply(self.size(source), product(others), -1))
        if coefficient != int(coefficient) or any(power < 0 for power in powers.values()):
            return None
        return term(int(coefficient), powers)


def _largest(sizes: Iterable[Number]) -> Number | None:
    """What dimensions broadcast to: the one that is not 1, or None where there are several."""
    large = {size for size in sizes if size != 1}
    return large.pop() if len(large) == 1 else None


def _is_real(number: Number) -> bool:
    """Whether a term has been turned into a floating-point number by a cast or a root."""
    return isinstance(number, float) or (isinstance(number, Term) and isinstance(number.coefficient, float))


def _to_float(number: Number) -> Number:
    return term(float(number.coefficient), dict(number.powers)) if isinstance(number, Term) else float(number)


def _equal(a: Number, b: Number) -> bool | None:
    """A product of dimensions equals itself and no negative number."""
    if a == b:
        return True
    for number, other in ((a, b), (b, a)):
        if isinstance(number, Term) and number.coefficient > 0 and not isinstance(other, Term) and other < 0:
            return False
    return None
