"""Sequences, which are Python lists, and optionals, which are None or their element; unless only a run knows them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter, Hosted
from onward.backends.emit.expr import Binary, Expr, Literal, Name, Star, lift
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.target import ops, rule, tf
from onward.backends.tensorflow.traced_values import is_open
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
        return ops.sequence_append(sequence, item) if is_open(sequence) else _list(Star(sequence), item)
    place = scalar(e, position)
    if not is_open(sequence) and not isinstance(place, Expr) and place == 0:
        return _list(item, Star(sequence))
    return ops.sequence_insert(sequence, item, place)


@rule("SequenceErase")
def sequence_erase(e: Emitter, sequence: Expr, position: Expr | None = None) -> Expr:
    place = -1 if position is None else scalar(e, position)
    if not is_open(sequence) and not isinstance(place, Expr) and place in (0, -1):
        return sequence[1:] if place == 0 else sequence[:-1]
    return ops.sequence_erase(sequence, place)


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
        return Hosted(array([e.let_host(ops.part_count(*split), "n", nonnegative=True)], ()))
    if is_open(sequence):
        return Hosted(array([e.let_host(ops.sequence_length(sequence), "n", nonnegative=True)], ()))
    return Hosted(array([e.let_host(Name("len")(sequence), "n", nonnegative=True)], ()))


@rule("ConcatFromSequence")
def concat_from_sequence(e: Emitter, sequence: Expr, *, axis: int, new_axis: int = 0) -> Expr:
    if is_open(sequence):
        return ops.sequence_concat(sequence, axis, **({"new_axis": True} if new_axis else {}))
    return (tf.stack if new_axis else tf.concat)(sequence, axis)


@rule("SplitToSequence")
def split_to_sequence(e: Emitter, x: Expr, sizes: Expr | None = None, *, axis: int = 0, keepdims: int = 1) -> Expr:
    shape = e.shape(x)
    if sizes is None and keepdims:
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


@rule("Optional")
def optional(e: Emitter, x: Expr | None = None, *, type: Any = None) -> Expr:
    return Literal(None) if x is None else x


@rule("OptionalHasElement")
def optional_has_element(e: Emitter, x: Expr | None = None) -> Hosted:
    if x is None:
        return Hosted(array([False], ()))
    if not isinstance(e.type(x), ir.OptionalType):
        return Hosted(array([True], ()))
    found = ops.has_element(x) if is_open(x) else Binary("is not", x, None)
    return Hosted(array([e.let_host(found, "flag")], ()))


@rule("OptionalGetElement")
def optional_get_element(e: Emitter, x: Expr) -> Expr:
    return ops.element(x) if is_open(x) else x
