"""Sequences, which are Python lists, and optionals, which are None or their element."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter, Hosted
from onward.backends.emit.expr import Expr, Name
from onward.backends.jax.numbers import is_string, scalar
from onward.backends.jax.target import TARGET, jnp, np_, ops, rule
from onward.backends.shared import sequence as shared
from onward.backends.shared.shape import axis_of, identity
from onward.spec.sequence import ConcatFromSequence, SplitToSequence

TARGET.rules.take(shared.RULES)


@rule("SequenceInsert")
def sequence_insert(e: Emitter, sequence: Expr, item: Expr, position: Expr | None = None) -> Expr:
    return shared.inserted(sequence, item, None if position is None else scalar(e, position))


@rule("SequenceErase")
def sequence_erase(e: Emitter, sequence: Expr, position: Expr | None = None) -> Expr:
    return shared.erased(sequence, -1 if position is None else scalar(e, position))


@rule("SequenceAt")
def sequence_at(e: Emitter, sequence: Expr, position: Expr) -> Expr:
    return sequence[scalar(e, position)]


@rule("SequenceLength")
def sequence_length(e: Emitter, sequence: Expr) -> Hosted:
    return shared.length(e, Name("len")(sequence))


@rule("ConcatFromSequence")
def concat_from_sequence(e: Emitter, sequence: Expr, p: ConcatFromSequence) -> Expr:
    library = np_ if is_string(e, sequence) else jnp
    return (library.stack if p.new_axis else library.concatenate)(sequence, axis=p.axis)


@rule("SplitToSequence")
def split_to_sequence(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: SplitToSequence) -> Expr:
    axis = axis_of(e, x, p.axis)
    if sizes is None and not p.keepdims:
        return ops.unbind_strings(x, axis) if is_string(e, x) else Name("list")(jnp.moveaxis(x, axis, 0))
    lengths: Any = 1
    if sizes is not None:
        lengths = scalar(e, sizes) if e.rank(sizes) == 0 else e.numbers(sizes)
    return (ops.split_strings_by if is_string(e, x) else ops.split_by)(x, lengths, axis)


rule("OptionalHasElement")(shared.has_element)
rule("OptionalGetElement")(identity)
