"""Sums of products with constant matrices, followed through the body of a loop as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

Array = npt.NDArray[Any]


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
        terms: dict[ir.Value, Array | None] = {
            key: matrix if known is None else known @ matrix for key, known in self.terms.items()
        }
        return Affine(terms, self.bias @ matrix, matrix.shape[1])

    def part(self, start: int, stop: int) -> Affine:
        """Some of the columns."""
        terms: dict[ir.Value, Array | None] = {key: self.matrix(key, self.width)[:, start:stop] for key in self.terms}
        return Affine(terms, self.bias[start:stop], stop - start)


@dataclass
class Reader:
    """Reads values of a loop's body as sums over its states and the step of the series that a round takes."""

    op: Writer
    body: ir.Graph
    counters: set[ir.Value]
    weights: dict[ir.Value | None, set[ir.Value]] = field(default_factory=dict)
    """The variables that each term's matrices come from; under None those of the biases."""
    known: dict[ir.Value, Affine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = set(self.body)
        self.steps: dict[ir.Value, None] = {}
        """The series that rounds take a step of, in the sums that were read."""

    def forget(self) -> None:
        self.weights.clear()
        self.known.clear()
        self.steps.clear()

    def step(self, value: ir.Value) -> ir.Value | None:
        """The series, time first, of which a value is the step of this round."""
        made = value.producer()
        if made not in self.nodes or made is None or made.op_type != "Gather":
            return None
        data, index = made.inputs
        if data is None or index is None or made.attributes.get_int("axis", 0) != 0:
            return None
        outside = data.producer() not in self.nodes and data not in self.body.inputs
        return data if outside and source(index) in self.counters else None

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

    def affine(self, value: ir.Value) -> Affine:
        value = source(value)
        if value not in self.known:
            self.known[value] = self._affine(value)
        return self.known[value]

    def _affine(self, value: ir.Value) -> Affine:
        step, made = self.step(value), value.producer()
        if step is not None:
            if step.shape is None or step.shape.rank() != 3:
                raise Unread
            self.steps[step] = None
            return self._itself(step)
        if made in self.nodes and made is not None:
            inputs = [source(v) for v in made.inputs if v is not None]
            match made.op_type:
                case "Add":
                    return self._sum(*inputs)
                case "MatMul":
                    left = self.affine(inputs[0])
                    matrix = self.constant(inputs[1])
                    if matrix is None or matrix.ndim != 2 or matrix.shape[0] != left.width:
                        raise Unread
                    for key in left.terms:
                        self._came_from(key, inputs[1])
                    return left.times(matrix)
                case "Split" | "Slice":
                    whole = self.affine(inputs[0])
                    return whole.part(*self.columns(value, whole.width))
                case "Concat" if made.attributes.get_int("axis", 0) in (1, -1):
                    return self._joined([self.affine(part) for part in inputs])
        return self._itself(value)

    def _itself(self, value: ir.Value) -> Affine:
        width = self.width(value)
        return Affine({value: None}, np.zeros(width, self._dtype(value)), width)

    def _dtype(self, value: ir.Value) -> Any:
        if value.dtype is None or value.dtype.numpy().kind != "f":
            raise Unread
        return value.dtype.numpy()

    def _sum(self, a: ir.Value, b: ir.Value) -> Affine:
        for one, other in ((a, b), (b, a)):
            array = self.constant(other)
            if array is not None:
                whole = self.affine(one)
                flat = array.reshape(-1)
                if flat.size not in (1, whole.width) or array.ndim > 2:
                    raise Unread
                self._came_from(None, other)
                return Affine(whole.terms, whole.bias + flat, whole.width)
        return self.affine(a).plus(self.affine(b))

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

    def columns(self, value: ir.Value, width: int) -> tuple[int, int]:
        """Which columns a part of a Split, or a Slice, takes."""
        made = value.producer()
        assert made is not None
        if made.op_type == "Split":
            sizes = self._numbers(made.inputs[1]) if len(made.inputs) > 1 else None
            sizes = sizes or [width // len(made.outputs)] * len(made.outputs)
            if made.attributes.get_int("axis", 0) not in (1, -1) or sum(sizes) != width:
                raise Unread
            place = list(made.outputs).index(value)
            return sum(sizes[:place]), sum(sizes[: place + 1])
        starts, ends, axes, steps = (self._numbers(v) for v in (*made.inputs[1:], None, None)[:4])
        if starts is None or ends is None or axes not in ([1], [-1]) or (steps or [1]) != [1]:
            raise Unread
        start, stop, _ = slice(starts[0], ends[0]).indices(width)
        return start, stop

    def _numbers(self, value: ir.Value | None) -> list[int] | None:
        array = None if value is None else self.constant(value)
        return None if array is None else [int(n) for n in array.reshape(-1)]

    def constant(self, value: ir.Value) -> Array | None:
        """The numbers of a constant, or of a part of one."""
        value = source(value)
        known = self.op.known(self.op.tensor(value))
        made = value.producer()
        if known is not None or made is None or not made.inputs or made.inputs[0] is None:
            return known
        whole = self.constant(made.inputs[0]) if made.op_type in ("Split", "Slice", "Squeeze", "Gather") else None
        rest = [self._numbers(v) for v in made.inputs[1:]]
        if whole is None or not rest or any(numbers is None for numbers in rest):
            return None
        numbers = [n for n in rest if n is not None]
        axis = made.attributes.get_int("axis", 0)
        match made.op_type:
            case "Split":
                parts: list[Array] = np.split(whole, np.cumsum(numbers[0])[:-1], axis=axis)
                return parts[list(made.outputs).index(value)]
            case "Squeeze":
                return whole.squeeze(tuple(numbers[0]))
            case "Gather":
                index = np.reshape(numbers[0], made.inputs[1].shape.numpy())  # type: ignore[union-attr]
                return np.take(whole, index, axis=axis)
        starts, ends, *more = numbers
        axes, steps = (more + [[*range(len(starts))], [1] * len(starts)][len(more) :])[:2]
        places = [slice(None)] * whole.ndim
        for start, end, along, step in zip(starts, ends, axes, steps, strict=True):
            places[along] = slice(start, end, step)
        return whole[tuple(places)]

    def zero(self, value: ir.Value) -> bool:
        """Whether all of a value is zero, in any shape."""
        value = source(value)
        known = self.op.known(self.op.tensor(value))
        made = value.producer()
        if known is None and made is not None and made.op_type in ("Expand", "Tile") and made.inputs[0] is not None:
            return self.zero(made.inputs[0])
        return known is not None and not known.any()

    def _came_from(self, key: ir.Value | None, value: ir.Value) -> None:
        value = source(value)
        made = value.producer()
        while made is not None and made.inputs and made.inputs[0] is not None:
            value = source(made.inputs[0])
            made = value.producer()
        self.weights.setdefault(key, set()).add(value)

    def note(self, key: ir.Value, other: ir.Value) -> None:
        """The matrices of one term are those of another."""
        self.weights.setdefault(key, set()).update(self.weights.get(other, ()))

    def stored(self, key: ir.Value | None, array: Array) -> Tensor:
        """What the matrices of a term became; under the name of a variable where they were one."""
        weights = self.weights.get(key, set())
        if len(weights) == 1:
            return self.op.stored(self.op.tensor(next(iter(weights))), array)
        return self.op.derived(array, weights) if weights else self.op.constant(array)
