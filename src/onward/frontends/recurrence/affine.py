"""Sums of products with constant matrices, followed through the body of a loop as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.writer import Writer
from onward.graph.build import Tensor
from onward.graph.replace import permutation

Array = npt.NDArray[Any]
MOVING = {"Concat", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
"""Ops that give the numbers of a constant in another place."""


class Unread(Exception):
    """The loop is nothing that this can read."""


def source(value: ir.Value) -> ir.Value:
    """What a value is another name of."""
    made = value.producer()
    while made is not None and made.op_type == "Identity" and made.inputs[0] is not None:
        value = made.inputs[0]
        made = value.producer()
    return value


@dataclass(frozen=True)
class Affine:
    """The sum of each value times its matrix, plus the bias; None is the identity."""

    terms: dict[ir.Value, Array | None]
    bias: Array
    width: int

    def matrix(self, key: ir.Value, rows: int) -> Array:
        """Zeros where there is no such term."""
        if key not in self.terms:
            return np.zeros((rows, self.width), self.bias.dtype)
        known = self.terms[key]
        return np.eye(self.width, dtype=self.bias.dtype) if known is None else known

    def plus(self, other: Affine) -> Affine:
        if self.width != other.width:
            raise Unread
        terms = dict(self.terms)
        for key, matrix in other.terms.items():
            if key in terms:
                terms[key] = self.matrix(key, self.width) + other.matrix(key, self.width)
            else:
                terms[key] = matrix
        return Affine(terms, self.bias + other.bias, self.width)

    def times(self, matrix: Array) -> Affine:
        if matrix.ndim != 2 or matrix.shape[0] != self.width:
            raise Unread
        terms: dict[ir.Value, Array | None] = {
            key: matrix if known is None else known @ matrix for key, known in self.terms.items()
        }
        return Affine(terms, self.bias @ matrix, matrix.shape[1])

    def part(self, start: int, stop: int) -> Affine:
        """Some of the columns."""
        terms: dict[ir.Value, Array | None] = {key: self.matrix(key, self.width)[:, start:stop] for key in self.terms}
        return Affine(terms, self.bias[start:stop], stop - start)

    def negative(self) -> Affine:
        terms: dict[ir.Value, Array | None] = {key: -self.matrix(key, self.width) for key in self.terms}
        return Affine(terms, -self.bias, self.width)


@dataclass
class Reader:
    """Reads values of a loop's body as sums over its states and the step of the series that a round takes.

    Features are along the last axis of a value, or `across`, along the first of two.
    """

    op: Writer
    body: ir.Graph
    step: Callable[[ir.Value], ir.Value | None]
    """The series, time first, of which a value is the step of this round."""
    single: bool = False
    """Whether states are vectors: there is no batch."""
    weights: dict[ir.Value | None, set[ir.Value]] = field(default_factory=dict)
    """The variables that each term's matrices come from; under None those of the biases."""
    known: dict[tuple[ir.Value, bool], Affine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = set(self.body)
        self.steps: dict[ir.Value, None] = {}
        """The series that rounds take a step of, in the sums that were read."""

    def forget(self) -> None:
        self.weights.clear()
        self.known.clear()
        self.steps.clear()

    def series(self) -> ir.Value:
        if len(self.steps) != 1:
            raise Unread
        return next(iter(self.steps))

    def is_series(self, value: ir.Value) -> bool:
        return value in self.steps

    def width(self, value: ir.Value) -> int:
        size = None if value.shape is None else value.shape[-1]
        if not isinstance(size, int):
            raise Unread
        return size

    def affine(self, value: ir.Value, across: bool = False) -> Affine:
        value = source(value)
        if (value, across) not in self.known:
            self.known[value, across] = self._affine(value, across)
        return self.known[value, across]

    def _affine(self, value: ir.Value, across: bool) -> Affine:
        step, made = self.step(value), value.producer()
        if step is not None:
            if step.shape is None or step.shape.rank() != (2 if self.single else 3):
                raise Unread
            self.steps[step] = None
            return self._itself(step, across)
        if made in self.nodes and made is not None:
            inputs = [source(v) for v in made.inputs if v is not None]
            match made.op_type:
                case "Add":
                    return self._sum(inputs[0], inputs[1], across)
                case "MatMul":
                    return self._product(inputs[0], inputs[1], across)
                case "Transpose" if permutation(made) == [1, 0]:
                    return self.affine(inputs[0], not across)
                case "Split" | "Slice":
                    whole = self.affine(inputs[0], across)
                    return whole.part(*self.columns(value, whole.width, across))
                case "Concat" if made.attributes.get_int("axis", 0) in self._axes(across):
                    return self._joined([self.affine(part, across) for part in inputs])
        return self._itself(value, across)

    def _itself(self, value: ir.Value, across: bool) -> Affine:
        if across and not self.single:
            raise Unread
        width = self.width(value)
        return Affine({value: None}, np.zeros(width, self._dtype(value)), width)

    def _dtype(self, value: ir.Value) -> Any:
        if value.dtype is None or value.dtype.numpy().kind != "f":
            raise Unread
        return value.dtype.numpy()

    def _sum(self, a: ir.Value, b: ir.Value, across: bool) -> Affine:
        for one, other in ((a, b), (b, a)):
            array = self.constant(other)
            if array is not None:
                whole = self.affine(one, across)
                sizes = [*[1] * (2 - array.ndim), *array.shape]
                if len(sizes) > 2 or sizes[1 if across and not self.single else 0] != 1:
                    raise Unread
                if array.size not in (1, whole.width):
                    raise Unread
                self._came_from([None], other)
                return Affine(whole.terms, whole.bias + array.reshape(-1), whole.width)
        return self.affine(a, across).plus(self.affine(b, across))

    def _product(self, a: ir.Value, b: ir.Value, across: bool) -> Affine:
        left, right = (self.constant(value) for value in (a, b))
        if right is not None and (self.single or not across):
            of, matrix, weight = self.affine(a, across), right, b
        elif left is not None and (self.single or across):
            of, matrix, weight = self.affine(b, across), left.T, a
        else:
            raise Unread
        self._came_from(of.terms, weight)
        return of.times(matrix)

    def _joined(self, parts: list[Affine]) -> Affine:
        width = sum(part.width for part in parts)
        whole = Affine({}, np.zeros(width, parts[0].bias.dtype), width)
        start = 0
        for part in parts:
            place = np.zeros((part.width, width), whole.bias.dtype)
            place[:, start : start + part.width] = np.eye(part.width)
            whole = whole.plus(part.times(place))
            start += part.width
        return whole

    def _axes(self, across: bool) -> tuple[int, int]:
        """How the axis of features may be called."""
        return (0, -1) if self.single else (0, -2) if across else (1, -1)

    def columns(self, value: ir.Value, width: int, across: bool = False) -> tuple[int, int]:
        """Which features a part of a Split, or a Slice, takes."""
        made = value.producer()
        assert made is not None
        allowed = self._axes(across)
        if made.op_type == "Split":
            sizes = self._numbers(made.inputs[1]) if len(made.inputs) > 1 else None
            sizes = sizes or [width // len(made.outputs)] * len(made.outputs)
            if made.attributes.get_int("axis", 0) not in allowed or sum(sizes) != width:
                raise Unread
            place = list(made.outputs).index(value)
            return sum(sizes[:place]), sum(sizes[: place + 1])
        starts, ends, axes, steps = (self._numbers(v) for v in (*made.inputs[1:], None, None)[:4])
        if starts is None or ends is None or len(axes or ()) != 1 or (steps or [1]) != [1]:
            raise Unread
        if axes is None or axes[0] not in allowed:
            raise Unread
        start, stop, _ = slice(starts[0], ends[0]).indices(width)
        return start, stop

    def _numbers(self, value: ir.Value | None) -> list[int] | None:
        array = None if value is None else self.constant(value)
        return None if array is None else [int(n) for n in array.reshape(-1)]

    def constant(self, value: ir.Value) -> Array | None:
        """The numbers of a constant, of a part of one, or of several joined."""
        value = source(value)
        known = self.op.known(self.op.tensor(value))
        made = value.producer()
        if known is not None or made is None or made.op_type not in MOVING:
            return known
        given = [None if v is None else self.constant(v) for v in made.inputs]
        arrays = [array for array in given if array is not None]
        if len(arrays) < len(given):
            return None
        return _moved(made, arrays, list(made.outputs).index(value))

    def zero(self, value: ir.Value) -> bool:
        """Whether all of a value is zero, in any shape, and stays so."""
        value = source(value)
        known = self.op.known(self.op.tensor(value))
        made = value.producer()
        if known is None and made is not None and made.op_type in ("Expand", "Tile") and made.inputs[0] is not None:
            return self.zero(made.inputs[0])
        return known is not None and not known.any() and value not in self.op.weights

    def _came_from(self, keys: Iterable[ir.Value | None], value: ir.Value) -> None:
        """A term's matrices, or under None the biases, are made of the variables that a constant is made of."""
        value = source(value)
        made = value.producer()
        if value in self.op.weights or made is None:
            for key in keys:
                self.weights.setdefault(key, set()).update({value} & self.op.weights.keys())
            return
        for part in made.inputs:
            if part is not None:
                self._came_from(keys, part)

    def note(self, key: ir.Value, other: ir.Value) -> None:
        """The matrices of one term are those of another."""
        self.weights.setdefault(key, set()).update(self.weights.get(other, ()))

    def stored(self, key: ir.Value | None, array: Array, name: str) -> Tensor:
        """What the matrices of a term became; under the name of a variable where they were one."""
        return self.op.combined(self.weights.get(key, set()), array, name)


def _moved(node: ir.Node, arrays: list[Array], output: int) -> Array | None:
    """What a node that only moves numbers makes of constants."""
    whole, *rest = arrays
    numbers = [[int(n) for n in array.reshape(-1)] for array in rest] if node.op_type != "Concat" else []
    axis = node.attributes.get_int("axis", 0)
    match node.op_type:
        case "Concat":
            return np.concatenate(arrays, axis)
        case "Transpose":
            return whole.transpose(permutation(node) or None)
        case "Gather":
            return np.take(whole, rest[0], axis=axis)
    if not numbers:
        return None
    match node.op_type:
        case "Split":
            parts: list[Array] = np.split(whole, np.cumsum(numbers[0])[:-1], axis=axis)
            return parts[output]
        case "Squeeze":
            return whole.squeeze(tuple(numbers[0]))
        case "Unsqueeze":
            return np.expand_dims(whole, tuple(numbers[0]))
        case "Reshape":
            return None if 0 in numbers[0] else whole.reshape(numbers[0])
    starts, ends, *more = numbers
    axes, steps = (more + [[*range(len(starts))], [1] * len(starts)][len(more) :])[:2]
    places = [slice(None)] * whole.ndim
    for start, end, along, step in zip(starts, ends, axes, steps, strict=True):
        places[along] = slice(start, end, step)
    return whole[tuple(places)]
