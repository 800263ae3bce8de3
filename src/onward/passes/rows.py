"""Weights that exporters cut into rows and put together again, followed back to where the rows come from.

PyTorch's exporter writes an LSTM's weight as slices of the original one, concatenated in ONNX's order of gates.
Read in PyTorch's order, the pieces turn out to be the original weight, under its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.replace import constant, made_by
from onward.graph.trained import inherit, role

DEPTH = 12
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of a constant, or of the matrix with index `part` within it."""

    source: ir.Value
    start: int
    stop: int
    part: int | None = None

    @property
    def is_whole(self) -> bool:
        tensor = constant(self.source)
        return tensor is not None and self.part is None and self.start == 0 and self.stop == tensor.shape.numpy()[0]

    @property
    def is_untrained(self) -> bool:
        """Whether it lies in the half of a bias that is zeros."""
        tensor, found = constant(self.source), role(self.source)
        is_half = tensor is not None and found is not None and found.by_half
        return is_half and tensor is not None and 2 * self.start >= tensor.shape.numpy()[-1]

    def read(self) -> Array:
        tensor = constant(self.source)
        assert tensor is not None
        data = tensor.numpy()
        return (data if self.part is None else data[self.part])[self.start : self.stop]


Rows = list[Piece]


def stacked_rows(value: ir.Value | None, facts: Facts, depth: int = 0) -> list[Rows] | None:
    """A constant-made value of shape (directions, rows, …), direction by direction."""
    tensor = constant(value)
    if value is None or depth > DEPTH:
        return None
    if tensor is not None:
        if len(tensor.shape) < 2:
            return None
        count, size = tensor.shape.numpy()[:2]
        return [[Piece(value, 0, size, part)] for part in range(count)]
    node = made_by(value, "Unsqueeze", "Concat", "Identity")
    if node is None:
        return None
    if node.op_type == "Identity":
        return stacked_rows(node.inputs[0], facts, depth + 1)
    if node.op_type == "Unsqueeze":
        rows = _rows(node.inputs[0], facts) if facts.ints(node.inputs[1]) == [0] else None
        return None if rows is None else [rows]
    if node.attributes.get_int("axis", 0) != 0:
        return None
    parts = [stacked_rows(v, facts, depth + 1) for v in node.inputs]
    return [rows for part in parts if part is not None for rows in part] if None not in parts else None


def _rows(value: ir.Value | None, facts: Facts, depth: int = 0) -> Rows | None:
    """A constant-made value of shape (rows, …) as pieces of the constants it is made of."""
    if value is None or depth > DEPTH:
        return None
    tensor = constant(value)
    if tensor is not None:
        return [Piece(value, 0, tensor.shape.numpy()[0])] if len(tensor.shape) else None
    node = made_by(value, "Slice", "Concat", "Identity")
    if node is None:
        return None
    if node.op_type == "Concat" and node.attributes.get_int("axis", 0) == 0:
        parts = [_rows(v, facts, depth + 1) for v in node.inputs]
        return join([p for part in parts if part is not None for p in part]) if None not in parts else None
    if node.op_type == "Concat":
        return None
    source = _rows(node.inputs[0], facts, depth + 1)
    if node.op_type == "Identity" or source is None:
        return source
    starts, ends, axes, steps = (facts.ints(v) for v in (*node.inputs[1:], None, None)[:4])
    if starts is None or ends is None or len(starts) != 1 or axes not in ([0], None) or (steps or [1]) != [1]:
        return None
    size = row_count(source)
    start, stop, _ = slice(starts[0], ends[0]).indices(size)
    return cut(source, start, max(start, stop))


def row_count(rows: Rows) -> int:
    return sum(piece.stop - piece.start for piece in rows)


def cut(rows: Rows, start: int, stop: int) -> Rows:
    """Rows `start` to `stop` of what the pieces make together."""
    found, offset = [], 0
    for piece in rows:
        size = piece.stop - piece.start
        first, last = max(start - offset, 0), min(stop - offset, size)
        if first < last:
            found.append(replace(piece, start=piece.start + first, stop=piece.start + last))
        offset += size
    return found


def join(rows: Rows) -> Rows:
    """The same rows in fewer pieces."""
    found: Rows = []
    for piece in rows:
        last = found[-1] if found else None
        if last is not None and (last.source, last.part, last.stop) == (piece.source, piece.part, piece.start):
            found[-1] = replace(last, stop=piece.stop)
        else:
            found.append(piece)
    return found


def reordered(rows: Rows, order: Sequence[int]) -> Rows:
    """The rows, as many equal blocks as `order` has entries, in that order."""
    size = row_count(rows) // len(order)
    return join([p for block in order for p in cut(rows, block * size, (block + 1) * size)])


def as_value(rows: Rows, graph: ir.Graph, name: str) -> ir.Value:
    """The constant that the pieces are, or a new one."""
    if len(rows) == 1 and rows[0].is_whole:
        return rows[0].source
    return _new_constant([rows], lambda: _read(rows), _shape(rows), graph, name)


def stacked_value(stack: list[Rows], graph: ir.Graph, name: str) -> ir.Value:
    """A new constant of shape (directions, rows, …)."""
    shape = (len(stack), *_shape(stack[0]))
    return _new_constant(stack, lambda: np.stack([_read(rows) for rows in stack]), shape, graph, name)


def _read(rows: Rows) -> Array:
    return np.concatenate([piece.read() for piece in rows])


def _shape(rows: Rows) -> tuple[int, ...]:
    tensor = constant(rows[0].source)
    assert tensor is not None
    rest = tensor.shape.numpy()[1 if rows[0].part is None else 2 :]
    return (row_count(rows), *rest)


def _new_constant(
    stack: list[Rows], read: Callable[[], Array], shape: tuple[int, ...], graph: ir.Graph, name: str
) -> ir.Value:
    """An initializer whose data is put together when it is read, not before."""
    like = constant(stack[0][0].source)
    assert like is not None
    while name in graph.initializers:
        name += "_"
    tensor = ir.LazyTensor(lambda: ir.tensor(read()), like.dtype, ir.Shape(shape), name=name)
    value = ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(like.dtype), const_value=tensor)
    graph.register_initializer(value)
    if not all(piece.is_untrained for rows in stack for piece in rows):
        inherit(value, *(piece.source for rows in stack for piece in rows))
    return value
