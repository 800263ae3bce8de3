"""Sequences, which are Python lists, and optionals, which are None or their element."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter, Hosted
from onward.backends.emit.expr import Expr, Name
from onward.backends.shared import sequence as shared
from onward.backends.shared.shape import axis_of
from onward.backends.torch.rules.shape import integer, is_string
from onward.backends.torch.target import TARGET, np_, ops, rule, torch
from onward.spec.sequence import ConcatFromSequence, SplitToSequence

TARGET.rules.take(shared.RULES)


@rule("SequenceInsert")
def sequence_insert(e: Emitter, sequence: Expr, item: Expr, position: Expr | None = None) -> Expr:
    return shared.inserted(sequence, item, None if position is None else integer(e, position))


@rule("SequenceErase")
def sequence_erase(e: Emitter, sequence: Expr, position: Expr | None = None) -> Expr:
    return shared.erased(sequence, -1 if position is None else integer(e, position))


@rule("SequenceAt")
def sequence_at(e: Emitter, sequence: Expr, position: Expr) -> Expr:
    return sequence[integer(e, position)]


@rule("SequenceLength")
def sequence_length(e: Emitter, sequence: Expr) -> Hosted:
    return shared.length(e, Name("len")(sequence))


@rule("ConcatFromSequence")
def concat_from_sequence(e: Emitter, sequence: Expr, p: ConcatFromSequence) -> Expr:
    if is_string(e, sequence):
        return (np_.stack if p.new_axis else np_.concatenate)(sequence, axis=p.axis)
    return (torch.stack if p.new_axis else torch.cat)(sequence, **({"dim": p.axis} if p.axis else {}))


@rule("SplitToSequence")
def split_to_sequence(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: SplitToSequence) -> Expr:
    axis = axis_of(e, x, p.axis)
    if sizes is None and not p.keepdims:
        return Name("list")(x.unbind(axis)) if not is_string(e, x) else ops.unbind_strings(x, axis)
    lengths: Any = 1
    if sizes is not None:
        lengths = (
            e.numbers(sizes) if e.rank(sizes) == 1 else integer(e, sizes) if e.rank(sizes) == 0 else sizes.tolist()
        )
    if is_string(e, x):
        return ops.split_strings_by(x, lengths, axis)
    return Name("list")(x.split(lengths, **({"dim": axis} if axis else {})))


rule("OptionalHasElement")(shared.has_element)


@rule("OptionalGetElement")
def optional_get_element(e: Emitter, x: Expr) -> Expr:
    return x
