"""Sequences, which are Python lists, and optionals, which are None or their element."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Hosted
from onward.backends.emit.expr import Binary, Expr, Literal, Name, Star, lift
from onward.backends.shared.shape import axis_of
from onward.backends.torch.rules.shape import integer, is_string
from onward.backends.torch.target import np_, ops, rule, torch
from onward.graph.values import array


@rule("SequenceEmpty")
def sequence_empty(e: Emitter, *, dtype: int = 1) -> Any:
    return _list()


def _list(*items: Any) -> Expr:
    return lift(list(items))


@rule("SequenceConstruct")
def sequence_construct(e: Emitter, *items: Expr) -> Expr:
    return _list(*items)


@rule("SequenceInsert")
def sequence_insert(e: Emitter, sequence: Expr, item: Expr, position: Expr | None = None) -> Expr:
    if position is None:
        return _list(Star(sequence), item)
    place = integer(e, position)
    if not isinstance(place, Expr) and place == 0:
        return _list(item, Star(sequence))
    return ops.sequence_insert(sequence, item, place)


@rule("SequenceErase")
def sequence_erase(e: Emitter, sequence: Expr, position: Expr | None = None) -> Expr:
    place = -1 if position is None else integer(e, position)
    if not isinstance(place, Expr) and place in (0, -1):
        return sequence[1:] if place == 0 else sequence[:-1]
    return ops.sequence_erase(sequence, place)


@rule("SequenceAt")
def sequence_at(e: Emitter, sequence: Expr, position: Expr) -> Expr:
    return sequence[integer(e, position)]


@rule("SequenceLength")
def sequence_length(e: Emitter, sequence: Expr) -> Hosted:
    return Hosted(array([e.let_host(Name("len")(sequence), "n", nonnegative=True)], ()))


@rule("ConcatFromSequence")
def concat_from_sequence(e: Emitter, sequence: Expr, *, axis: int, new_axis: int = 0) -> Expr:
    if is_string(e, sequence):
        return (np_.stack if new_axis else np_.concatenate)(sequence, axis=axis)
    return (torch.stack if new_axis else torch.cat)(sequence, **({"dim": axis} if axis else {}))


@rule("SplitToSequence")
def split_to_sequence(e: Emitter, x: Expr, sizes: Expr | None = None, *, axis: int = 0, keepdims: int = 1) -> Expr:
    axis = axis_of(e, x, axis)
    if sizes is None and not keepdims:
        return Name("list")(x.unbind(axis)) if not is_string(e, x) else ops.unbind_strings(x, axis)
    lengths: Any = 1
    if sizes is not None:
        lengths = (
            e.numbers(sizes) if e.rank(sizes) == 1 else integer(e, sizes) if e.rank(sizes) == 0 else sizes.tolist()
        )
    if is_string(e, x):
        return ops.split_strings_by(x, lengths, axis)
    return Name("list")(x.split(lengths, **({"dim": axis} if axis else {})))


@rule("Optional")
def optional(e: Emitter, x: Expr | None = None, *, type: Any = None) -> Expr:
    return Literal(None) if x is None else x


@rule("OptionalHasElement")
def optional_has_element(e: Emitter, x: Expr | None = None) -> Hosted:
    if x is None:
        return Hosted(array([False], ()))
    if not isinstance(e.type(x), ir.OptionalType):
        return Hosted(array([True], ()))
    return Hosted(array([e.let_host(Binary("is not", x, None), "flag")], ()))


@rule("OptionalGetElement")
def optional_get_element(e: Emitter, x: Expr) -> Expr:
    return x
