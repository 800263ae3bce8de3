"""Branches and loops that run now where what decides them is known now, and else as part of the graph."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import is_number
from onward.backends.tensorflow.runtime.sequence_open import OptionalOf, TensorSequence, opened

LONGEST_UNROLLED = 8


def branch(test: Any, yes: Callable[[], Any], no: Callable[[], Any], kinds: Any = None) -> Any:
    """`yes()` or `no()`; `kinds` has the types of sequences and optionals among their results, or their only one."""
    if is_number(test):
        return yes() if test else no()
    if kinds is not None and not tf.executing_eagerly():
        yes, no = (lambda give=give: opened_all(give(), kinds) for give in (yes, no))
    return tf.cond(tf.reshape(test, []), yes, no)


def opened_all(found: Any, kinds: Any) -> Any:
    if not isinstance(kinds, list):
        return opened(found, kinds)
    return tuple(part if kind is None else opened(part, kind) for part, kind in zip(found, kinds, strict=True))


def loop(
    body: Callable[..., Sequence[Any]],
    state: Sequence[Any],
    *,
    count: Any = None,
    running: Any = True,
    rows: Sequence[tf.TensorSpec | tf.Tensor] = (),
    shapes: Sequence[Any] | None = None,
) -> list[Any]:
    """Calls `running, *state, *row = body(i, *state)` while `running`, with i from 0 to at most `count`.

    Returns the last state, and all that each element of the row was, stacked; `rows` has the type of each, or a tensor
    of that type and size. `shapes` is what the shapes of a state have in common in all trips, or None where they stay
    as they begin; the type of a sequence or an optional.
    """
    state = [tf.nest.map_structure(tf.convert_to_tensor, p) if is_plain(p) else p for p in state]
    has_lists = any(part is None or isinstance(part, list) for part in state)
    is_short = count is not None and is_number(count, running) and (has_lists or count <= LONGEST_UNROLLED)
    if tf.executing_eagerly() or is_short:
        found = loop_now(body, state, count, running, rows)
        if found is not None:
            return found
    return loop_later(body, state, count, running, rows, shapes or [None] * len(state))


def row_reader(x: tf.Tensor) -> Callable[[Any], tf.Tensor]:
    """A function that gives `x[i]`."""
    array = tf.TensorArray(x.dtype, tf.shape(x)[0], clear_after_read=False).unstack(x)
    return lambda i: array.read(tf.cast(i, tf.int32))


def is_plain(part: Any) -> bool:
    """Whether a part of a state is a tensor, or a list of them."""
    return part is not None and not isinstance(part, TensorSequence | tf.experimental.Optional)


def loop_now(
    body: Callable[..., Sequence[Any]],
    state: list[Any],
    count: Any,
    running: Any,
    rows: Sequence[tf.TensorSpec | tf.Tensor],
) -> list[Any] | None:
    """`loop` as a loop of Python; None where a condition is not known now."""
    trips: list[Sequence[Any]] = []
    while (count is None or len(trips) < count) and is_true(running):
        running, *found = step_of(body, len(trips), state)
        state = found[: len(state)]
        trips.append(found[len(state) :])
        if not tf.executing_eagerly() and not is_number(running) and len(trips) < count:
            return None
    if not trips:
        return [*state, *(tf.zeros([0, *(d or 0 for d in row.shape or ())], row.dtype) for row in rows)]
    return [*state, *(tf.stack(column) for column in zip(*trips, strict=True))]


def is_true(test: Any) -> bool:
    return bool(test if is_number(test) else tf.reshape(test, []))


def step_of(body: Callable[..., Any], i: Any, state: Sequence[Any]) -> Sequence[Any]:
    """What a body returns, which is the condition alone where there is nothing else."""
    found = body(i, *state)
    return found if isinstance(found, tuple) else (found,)


def loop_later(
    body: Callable[..., Sequence[Any]],
    state: list[Any],
    count: Any,
    running: Any,
    rows: Sequence[tf.TensorSpec | tf.Tensor],
    shapes: Sequence[Any],
) -> list[Any]:
    """`loop` as a part of the graph."""
    arrays = [tf.TensorArray(row.dtype, 0, dynamic_size=True, element_shape=row.shape) for row in rows]
    invariants = [invariant(part, shape) for part, shape in zip(state, shapes, strict=True)]
    state = [fitted(part, shape) for part, shape in zip(state, invariants, strict=True)]

    def test(i: tf.Tensor, running: tf.Tensor, *_: Any) -> tf.Tensor:
        return running if count is None else tf.logical_and(running, i < tf.cast(count, tf.int64))

    def step(i: tf.Tensor, _: tf.Tensor, state: list[Any], arrays: list[tf.TensorArray]) -> tuple[Any, ...]:
        running, *found = step_of(body, i, state)
        following = [fitted(part, shape) for part, shape in zip(found, invariants, strict=False)]
        place = tf.cast(i, tf.int32)
        arrays = [a.write(place, row) for a, row in zip(arrays, found[len(state) :], strict=True)]
        return i + 1, tf.reshape(running, []), following, arrays

    start = tf.zeros([], tf.int64), tf.reshape(tf.convert_to_tensor(running), []), state, arrays
    kept = [tf.OptionalSpec(kind.element) if isinstance(kind, OptionalOf) else kind for kind in invariants]
    given = tf.TensorShape([]), tf.TensorShape([]), kept, [None] * len(arrays)
    trips, _, state, arrays = tf.while_loop(test, step, start, shape_invariants=given)
    return [*state, *(collected(array, row, trips) for array, row in zip(arrays, rows, strict=True))]


def invariant(part: Any, shape: Any) -> Any:
    """What is known of a part of the state in all trips."""
    if isinstance(shape, OptionalOf | tf.TypeSpec):
        return shape
    return part.shape if shape is None else tf.TensorShape(shape)


def fitted(part: Any, shape: Any) -> Any:
    """A part of the state with what is known of it."""
    if isinstance(shape, OptionalOf | tf.TypeSpec):
        return opened(part, shape)
    return part if shape.rank is None else tf.ensure_shape(part, shape)


def collected(array: tf.TensorArray, row: tf.TensorSpec | tf.Tensor, trips: tf.Tensor) -> tf.Tensor:
    """All that was written to an array, of the shape that is known where that is nothing."""
    if row.shape.is_fully_defined():
        return array.stack()
    empty = [0, *(d or 0 for d in row.shape)] if row.shape.rank is not None else [0]
    return tf.cond(trips > 0, array.stack, lambda: tf.zeros(empty, row.dtype))


def axis_moved(x: tf.Tensor, axis: int) -> tf.Tensor:
    """With the first axis at another place."""
    order = list(range(1, x.shape.rank))
    order.insert(axis + x.shape.rank if axis < 0 else axis, 0)
    return tf.transpose(x, order)


def map_sequences(body: Callable[..., Sequence[Any]], sequences: Sequence[list[Any]], results: int) -> list[list[Any]]:
    """What a function gives for the elements of sequences: a list for each of its results."""
    found = [body(*items) for items in zip(*sequences, strict=True)]
    return [[row[i] for row in found] for i in range(results)]
