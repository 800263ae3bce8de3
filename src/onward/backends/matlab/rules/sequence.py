"""Sequences, which are rows of cells, and optionals, which are [] or their element."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Hosted
from onward.backends.emit.expr import Expr, Literal, Name
from onward.backends.emit.expr import Sequence as Display
from onward.backends.matlab.render import Item
from onward.backends.matlab.rules.shape import listed
from onward.backends.matlab.target import ALL, END, axis_dim, moves, ops, rank_of, row
from onward.backends.shared import sequence as shared
from onward.backends.shared.shape import identity
from onward.errors import UnsupportedError
from onward.graph.origin import origin
from onward.spec.sequence import ConcatFromSequence, SplitToSequence


def cells(*items: Expr) -> Expr:
    """A row of cells."""
    return Display(items, "{}")


@moves("SequenceEmpty")
def sequence_empty(e: Emitter, p: Any) -> Expr:
    return cells()


@moves("SequenceConstruct")
def sequence_construct(e: Emitter, *items: Expr) -> Expr:
    return cells(*items)


@moves("SequenceInsert")
def sequence_insert(e: Emitter, sequence: Expr, item: Expr, position: Expr | None = None) -> Expr:
    if position is None:
        return Display((sequence, cells(item)), "[]")
    place = e.scalar(position)
    if isinstance(place, int) and place == 0:
        return Display((cells(item), sequence), "[]")
    return ops.sequence_insert(sequence, item, position if place is None else place)


@moves("SequenceErase")
def sequence_erase(e: Emitter, sequence: Expr, position: Expr | None = None) -> Expr:
    place = -1 if position is None else e.scalar(position)
    if isinstance(place, int) and place in (0, -1):
        return sequence[2:END] if place == 0 else sequence[1 : END - 1]
    return ops.sequence_erase(sequence, position if place is None else place)


@moves("SequenceAt")
def sequence_at(e: Emitter, sequence: Expr, position: Expr) -> Expr:
    place = e.scalar(position)
    if isinstance(place, int):
        at = Literal(place + 1) if place >= 0 else END if place == -1 else END - (-1 - place)
        return Item(sequence, (at,))
    return ops.sequence_at(sequence, position if place is None else place)


@moves("SequenceLength")
def sequence_length(e: Emitter, sequence: Expr) -> Hosted:
    return shared.length(e, Name("numel")(sequence))


@moves("ConcatFromSequence")
def concat_from_sequence(e: Emitter, sequence: Expr, p: ConcatFromSequence) -> Expr:
    output = e.node.outputs[0]
    rank, dim, items = rank_of(e, output), axis_dim(e, output, p.axis), Item(sequence, (ALL,))
    if not p.new_axis or dim == rank:
        return Name("cat")(dim, items)
    order = row([*range(1, dim), rank, *range(dim, rank)])
    return Name("permute")(Name("cat")(rank, items), order)


@moves("SplitToSequence")
def split_to_sequence(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: SplitToSequence) -> Expr:
    dim, rank = axis_dim(e, x, p.axis), rank_of(e, x)
    if sizes is None:
        return ops.split_each(x, dim) if p.keepdims else ops.unstack(x, dim, rank)
    number = e.scalar(sizes)
    lengths = (number if number is not None else sizes) if e.rank(sizes) == 0 else listed(e.numbers(sizes))
    return ops.split_to_sequence(x, lengths, dim)


@moves("Optional")
def optional(e: Emitter, x: Expr | None = None, *, p: Any) -> Expr:
    return Literal(None) if x is None else x


@moves("OptionalHasElement")
def optional_has_element(e: Emitter, x: Expr | None = None) -> Hosted:
    if x is not None and isinstance(e.type(x), ir.OptionalType) and e.dtype(x) == ir.DataType.DOUBLE:
        _check_told_apart(e, x)
    return shared.has_element(e, x, None if x is None else ops.is_given(x))


def _check_told_apart(e: Emitter, x: Expr) -> None:
    """Refuse what could be a matrix of doubles without rows and columns, which is nothing in MATLAB as well."""
    found = e.type(x)
    shape = e.shape(x)
    is_tensor = isinstance(found, ir.OptionalType) and isinstance(found.elem_type, ir.TensorType)
    if is_tensor and (shape is None or (len(shape) == 2 and all(n in (None, 0) for n in shape))):
        raise UnsupportedError(f"{origin(e.node)}: MATLAB does not tell an empty matrix of doubles from nothing")


moves("OptionalGetElement")(identity)
