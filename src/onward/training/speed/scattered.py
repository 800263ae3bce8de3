"""Gradients of embeddings, in place: only the rows that a batch reads are cleared and written, not the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Builder
from onward.training.runtime.session import bind_input
from onward.training.step_graphs import NUMBERS, ROWS, give_out

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Scattered:
    """A gradient that is a sum of rows: its output, the input that it starts from, the output of the rows' numbers."""

    output: str
    start: str
    rows: str


def scatter_in_place(model: ir.Model) -> tuple[ir.Model, list[Scattered]]:
    """A copy in which such gradients start from inputs instead of zeros of their own."""
    copy = model.clone()
    graph = copy.graph
    found = []
    for output in list(graph.outputs):
        node = _maker(output)
        indices = None if node is None else _numbers(node)
        if node is None or indices is None:
            continue
        data = node.inputs[0]
        assert data is not None
        names = Scattered(output.name or "", f"{output.name}.start", f"{output.name}.rows")
        start = ir.Value(name=names.start, type=data.type, shape=output.shape)
        graph.inputs.append(start)
        node.replace_input_with(0, start)
        rows = ir.Node("", "Identity", [indices], num_outputs=1)
        rows.outputs[0].name, rows.outputs[0].type, rows.outputs[0].shape = names.rows, indices.type, indices.shape
        graph.append(rows)
        graph.outputs.append(rows.outputs[0])
        found.append(names)
    return copy, found


def sum_of_rows(gradient: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """The rows that a gradient is the sum of, [..., row], and their numbers, [..., 1]; None where it is no such sum."""
    node = _maker(gradient)
    numbers = None if node is None else _numbers(node)
    if node is None or numbers is None:
        return None
    rows = node.inputs[2]
    assert rows is not None
    return None if rows.shape is None or numbers.dtype != ir.DataType.INT64 else (rows, numbers)


def give_rows(model: ir.Model, names: Sequence[str]) -> None:
    """Give out the rows that gradients of parameters are sums of, and their numbers, in place."""
    op = Builder(model)
    outputs = {value.name: value for value in model.graph.outputs}
    for name in names:
        gradient = outputs[f"{name}.grad"]
        parts = _parts(gradient)
        if not parts or gradient.shape is None:
            raise UnsupportedError(
                f"{name!r} is not only looked up row by row, and the optimizer squares or clips each row by itself; "
                "dense_gradients=True adds up first, as PyTorch and JAX do"
            )
        shape = op.ints([-1, *(int(str(size)) for size in list(gradient.shape)[1:])])
        rows = [op.Reshape(op.tensor(rows), shape) for rows, _ in parts]
        numbers = [op.Reshape(op.tensor(numbers), op.ints([-1])) for _, numbers in parts]
        give_out(op, rows[0] if len(rows) == 1 else op.Concat(*rows, axis=0), f"{name}.{ROWS}")
        give_out(op, numbers[0] if len(rows) == 1 else op.Concat(*numbers, axis=0), f"{name}.{NUMBERS}")


def _parts(gradient: ir.Value) -> list[tuple[ir.Value, ir.Value]]:
    """The rows and numbers of a gradient that is such a sum, or a sum of several; none where it is something else."""
    node = _maker(gradient)
    if node is None or node.op_type not in ("Add", "Sum"):
        found = sum_of_rows(gradient)
        return [] if found is None else [found]
    inner = [_parts(value) for value in node.inputs if value is not None]
    return [part for parts in inner for part in parts] if all(inner) else []


def _maker(value: ir.Value) -> ir.Node | None:
    node = value.producer()
    while node is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node


def _numbers(node: ir.Node) -> ir.Value | None:
    """Where rows are added to zeros: the numbers that say where, [rows, 1]; else None."""
    if node.op_type != "ScatterElements" or node.domain or node.attributes.get_int("axis", 0) != 0:
        return None
    data, places = node.inputs[0], node.inputs[1]
    if data is None or places is None or node.attributes.get_string("reduction", "none") != "add":
        return None
    expand = places.producer()
    numbers = None if expand is None or expand.op_type != "Expand" else expand.inputs[0]
    if numbers is None or numbers.shape is None or len(numbers.shape) != 2 or numbers.shape[1] != 1:
        return None
    zeros = data.producer()
    if zeros is None or zeros.op_type != "Expand" or zeros.inputs[0] is None or data.is_graph_output():
        return None
    number = zeros.inputs[0].const_value
    return numbers if number is not None and number.size == 1 and not number.numpy().any() else None


class Rows:
    """Keeps the starts of such gradients zero: before a run, what the run before has written is cleared."""

    def __init__(self, found: Sequence[Scattered], gradients: Mapping[str, Array], binding: Any) -> None:
        """Of `gradients`, by the names of their outputs, all are zero at first. No other outputs are bound later."""
        self._binding = binding
        self._names = [each.rows for each in found]
        self._gradients = [gradients[each.output] for each in found]
        self._written: list[Array] | None = []
        for each, gradient in zip(found, self._gradients, strict=True):
            bind_input(binding, each.start, gradient)

    def clear(self) -> None:
        if self._written is None:
            for gradient in self._gradients:
                gradient[...] = 0
        else:
            for gradient, rows in zip(self._gradients, self._written, strict=False):
                gradient[rows] = 0
        self.forget()
        for name in self._names:
            self._binding.bind_output(name)

    def forget(self) -> None:
        """Any row may be written now."""
        self._written = None

    def remember(self) -> None:
        """What a run has written."""
        if self._gradients:
            values = self._binding.get_outputs()[-len(self._gradients) :]
            self._written = [value.numpy()[..., 0].copy() for value in values]
