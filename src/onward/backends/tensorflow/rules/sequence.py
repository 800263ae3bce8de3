"""Sequences, which are Python lists, and optionals, which are None or their element; unless only a run knows them."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Arg, Emitter, Hosted
from onward.backends.emit.expr import Expr, Name
from onward.backends.shared import sequence as shared
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.target import TARGET, ops, rule, tf
from onward.backends.tensorflow.traced_values import is_open
from onward.spec.sequence import ConcatFromSequence, SplitToSequence

TARGET.rules.take(shared.RULES)


@rule("SequenceInsert")
def sequence_insert(e: Emitter, sequence: Expr, item: Expr, position: Expr | None = None) -> Expr:
    place = None if position is None else scalar(e, position)
    if not is_open(sequence):
        return shared.inserted(sequence, item, place)
    return ops.sequence_append(sequence, item) if place is None else ops.sequence_insert(sequence, item, place)


@rule("SequenceErase")
def sequence_erase(e: Emitter, sequence: Expr, position: Expr | None = None) -> Expr:
    place = -1 if position is None else scalar(e, position)
    return ops.sequence_erase(sequence, place) if is_open(sequence) else shared.erased(sequence, place)


@rule("SequenceAt")
def sequence_at(e: Emitter, sequence: Expr, position: Expr) -> Expr:
    place = scalar(e, position)
    split = _split_of(e, sequence)
    if split is not None:
        return ops.part_at(*split, place, **({} if _keeps_axis(sequence) else {"keepdims": False}))
    return ops.sequence_at(sequence, place) if isinstance(place, Expr) or is_open(sequence) else sequence[place]


@rule("SequenceLength")
def sequence_length(e: Emitter, sequence: Expr) -> Hosted:
    split = _split_of(e, sequence)
    if split is not None:
        return shared.length(e, ops.part_count(*split))
    return shared.length(e, (ops.sequence_length if is_open(sequence) else Name("len"))(sequence))


@rule("ConcatFromSequence")
def concat_from_sequence(e: Emitter, sequence: Expr, p: ConcatFromSequence) -> Expr:
    if is_open(sequence):
        return ops.sequence_concat(sequence, p.axis, **options(new_axis=bool(p.new_axis)))
    return (tf.stack if p.new_axis else tf.concat)(sequence, p.axis)


@rule("SplitToSequence")
def split_to_sequence(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: SplitToSequence) -> Expr:
    shape, axis = e.shape(x), p.axis
    if sizes is None and p.keepdims:
        return ops.split_in_steps(x, 1, axis)
    if sizes is None:
        is_known = shape is not None and shape[axis] is not None
        return tf.unstack(x, axis=axis) if is_known else ops.unstacked(x, axis)
    if e.rank(sizes) == 1 and e.shape(sizes) != (None,):
        return tf.split(x, e.numbers(sizes), axis)
    if e.rank(sizes) == 0:
        return ops.split_in_steps(x, scalar(e, sizes), axis)
    return ops.split_by(x, sizes, axis)


def _split_of(e: Emitter, sequence: Expr) -> list[Any] | None:
    """The tensor, its axis and the size of the parts (a number or a vector) of a sequence that was made by splitting,

    where the number of parts is not known now: one of them can be had without all the others.
    """
    node = sequence._value.producer() if isinstance(sequence, Arg) else None
    if node is None or node.op_type != "SplitToSequence" or node.domain:
        return None
    x, sizes = e.arg(node.inputs[0]), e.arg(node.inputs[1]) if len(node.inputs) > 1 else None
    shape, axis = None if x is None else e.shape(x), node.attributes.get_int("axis", 0)
    if x is None or shape is None:
        return None
    if sizes is not None and e.rank(sizes) == 1:
        known = (e.shape(sizes) or (None,))[0] is not None
        return None if known else [x, axis, sizes]
    step = 1 if sizes is None else scalar(e, sizes) if e.rank(sizes) == 0 else None
    known = shape[axis] is not None and not isinstance(step, Expr)
    return None if step is None or known else [x, axis, step]


def _keeps_axis(sequence: Expr) -> bool:
    node = sequence._value.producer() if isinstance(sequence, Arg) else None
    return node is None or len(node.inputs) > 1 or bool(node.attributes.get_int("keepdims", 1))


@rule("OptionalHasElement")
def optional_has_element(e: Emitter, x: Expr | None = None) -> Hosted:
    return shared.has_element(e, x, ops.has_element(x) if is_open(x) else None)


@rule("OptionalGetElement")
def optional_get_element(e: Emitter, x: Expr) -> Expr:
    return ops.element(x) if is_open(x) else x
