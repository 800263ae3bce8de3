"""Loops of TensorFlow Lite, which has no lists of tensors: rows are written into a tensor of their final size.

Each write copies that tensor, so rows gather in blocks first, and whole blocks are written into what holds all rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops.gen_xla_ops import xla_dynamic_update_slice

from onward.backends.tensorflow.runtime.control_flow import invariant, step_of
from onward.backends.tensorflow.runtime.host import is_number
from onward.backends.tensorflow.runtime.sequence_open import OptionalOf, opened

BLOCK = 32
MOST_ROWS = 1 << 16
"""There is room for so many before it is known whether a loop ends early."""


def row_reader(x: tf.Tensor) -> Callable[[Any], tf.Tensor]:
    """A function that gives `x[i]`."""
    return lambda i: tf.gather(x, i)


def loop_later(
    body: Callable[..., Sequence[Any]],
    state: list[Any],
    count: Any,
    running: Any,
    rows: Sequence[Any],
    shapes: Sequence[Any],
) -> list[Any]:
    """`loop` as a part of the graph."""
    invariants = [invariant(part, shape) for part, shape in zip(state, shapes, strict=True)]
    state = [fitted(part, shape) for part, shape in zip(state, invariants, strict=True)]
    loop = Trips(body, count, invariants, rows)
    loop.tests.append(running)
    start, running = tf.constant(0), tf.reshape(tf.convert_to_tensor(running), [])
    loop.sizes = loop.row_sizes(state)
    room = room_for(count)

    def block(i: tf.Tensor, running: tf.Tensor, state: list[Any], wholes: list[tf.Tensor]) -> tuple[Any, ...]:
        end, running, state, held = loop.trips(i, running, state, loop.blanks(BLOCK))
        pairs = zip(wholes, held, strict=True)
        if room is not None:
            return end, running, state, [put(whole, part, i) for whole, part in pairs]
        return end, running, state, [tf.concat([whole, flat(part[: end - i])], 0) for whole, part in pairs]

    if not rows or (is_number(room) and room is not None and room <= BLOCK):
        end, _, state, wholes = loop.trips(start, running, state, loop.blanks(room))
    else:
        wholes = loop.blanks(room) if room is not None else [tf.zeros([0], row.dtype) for row in rows]
        shapes = [tf.TensorShape([None]) if room is None else whole.shape for whole in wholes]
        given = tf.TensorShape([]), tf.TensorShape([]), invariants, shapes
        end, _, state, wholes = tf.while_loop(loop.goes_on, block, (start, running, state, wholes), given)
    if room is None:
        wholes = loop.shaped(end, wholes)
    end = count if is_number(count) and all(test is True for test in loop.tests) else end
    return [*state, *(whole[:end] for whole in wholes)]


class Trips:
    """What happens in the trips of a loop."""

    def __init__(
        self, body: Callable[..., Sequence[Any]], count: Any, invariants: Sequence[Any], rows: Sequence[Any]
    ) -> None:
        self.body, self.count, self.invariants, self.rows = body, count, invariants, rows
        self.sizes: Sequence[tf.Tensor] = ()
        """The shape of each row."""
        self.tests: list[Any] = []
        """What says whether the loop goes on, wherever that was traced."""

    def goes_on(self, i: tf.Tensor, running: tf.Tensor, *_: Any) -> tf.Tensor:
        return running if self.count is None else tf.logical_and(running, i < tf.cast(self.count, tf.int32))

    def trip(self, i: tf.Tensor, state: Sequence[Any]) -> tuple[tf.Tensor, list[Any], list[tf.Tensor]]:
        """Whether the loop goes on, the state, and the row."""
        running, *found = step_of(self.body, tf.cast(i, tf.int64), state)
        self.tests.append(running)
        following = [fitted(part, shape) for part, shape in zip(found, self.invariants, strict=False)]
        return tf.reshape(running, []), following, found[len(state) :]

    def trips(self, first: tf.Tensor, running: tf.Tensor, state: list[Any], held: list[tf.Tensor]) -> Any:
        """All that are left, from the first one on, or as many as there is room for their rows."""

        def test(i: tf.Tensor, running: tf.Tensor, *_: Any) -> tf.Tensor:
            going = self.goes_on(i, running)
            return tf.logical_and(going, i - first < held[0].shape[0]) if held else going

        def step(i: tf.Tensor, _: tf.Tensor, state: list[Any], held: list[tf.Tensor]) -> tuple[Any, ...]:
            running, state, row = self.trip(i, state)
            pairs = zip(held, self.shaped(1, row), strict=True)
            return i + 1, running, state, [put(part, one, i - first) for part, one in pairs]

        given = tf.TensorShape([]), tf.TensorShape([]), self.invariants, [part.shape for part in held]
        return tf.while_loop(test, step, (first, running, state, held), shape_invariants=given)

    def row_sizes(self, state: list[Any]) -> Sequence[tf.Tensor]:
        """The shape of each row, for which the first trip is made twice where nothing else tells it.

        Not within a branch for loops without trips: a shape that leaves a branch may be that of an earlier call.
        """
        rows = self.rows
        if all(row.shape.is_fully_defined() or tf.is_tensor(row) for row in rows):
            return [tf.shape(row) if tf.is_tensor(row) else tf.constant(row.shape.as_list(), tf.int32) for row in rows]
        return [tf.shape(row) for row in self.trip(tf.constant(0), state)[2]]

    def blanks(self, room: Any) -> list[tf.Tensor]:
        """Room for so many rows."""
        zeros = [
            tf.zeros(tf.concat([[room], size], 0), row.dtype) for row, size in zip(self.rows, self.sizes, strict=True)
        ]
        return self.shaped(room, zeros)

    def shaped(self, count: Any, contents: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """So many rows that have this content.

        Their shape is said by numbers that are computed, so that the runtime does not compare shapes before it runs.
        """
        wholes = []
        for content, row, size in zip(contents, self.rows, self.sizes, strict=True):
            wholes.append(tf.reshape(content, tf.concat([[count], size], 0)))
            wholes[-1].set_shape([count if is_number(count) else None, *row.shape])
        return wholes


def room_for(count: Any) -> Any:
    """For how many rows there is to be room, where there are at most `count`: blocks; None where that is not known."""
    if count is None or (is_number(count) and count > MOST_ROWS):
        return None
    if is_number(count) and count <= BLOCK:
        return count
    most = count if is_number(count) else tf.maximum(tf.cast(count, tf.int32), 0)
    return (most + BLOCK - 1) // BLOCK * BLOCK


def fitted(part: Any, shape: Any) -> Any:
    """A part of the state with what is known of it, which TensorFlow Lite cannot check."""
    if isinstance(shape, OptionalOf | tf.TypeSpec):
        return opened(part, shape)
    part = tf.identity(part)
    part.set_shape(shape)
    return part


def put(whole: tf.Tensor, part: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    """A tensor, of which rows from `place` on are others."""
    return xla_dynamic_update_slice(whole, part, tf.stack([place, *[0] * (whole.shape.rank - 1)]))


def flat(x: tf.Tensor) -> tf.Tensor:
    return tf.reshape(x, [-1])
