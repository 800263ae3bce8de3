"""Branches and loops that run as Python's own where what decides them is known, and else as `lax` compiles them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onward.backends.jax.runtime.host import known

LONGEST_UNROLLED = 8


def is_traced(*parts: Any) -> bool:
    """Whether any part is unknown until a compiled function runs."""
    return any(isinstance(part, jax.core.Tracer) for part in jax.tree.leaves(parts))


def branch(test: Any, yes: Callable[[], Any], no: Callable[[], Any], node: str) -> Any:
    """`yes()` or `no()`, which have to give the same shapes and types where `jax.jit` does not know which."""
    if not is_traced(test):
        return yes() if known(test, node).item() else no()
    try:
        return lax.cond(test.reshape(()), yes, no)
    except TypeError as error:
        raise TypeError(
            f"{node} has branches that give different shapes or types, or that need numbers, and jax.jit does not know "
            f"which is taken: make what decides it a static argument, or call the function without jit. {error}"
        ) from error


def loop(
    body: Callable[..., tuple[Any, ...]],
    state: Sequence[Any],
    node: str,
    *,
    count: Any = None,
    running: Any = True,
    stops: bool = False,
    rows: Sequence[tuple[tuple[int, ...], Any]] = (),
    unrolled: bool = False,
) -> Sequence[Any]:
    """Calls `*state, *row = body(i, *state)` for i from 0 to at most `count`, while `running`.

    A body that `stops` gives before all else whether the loop goes on. Returns the last state, and all that each
    element of the row was, stacked; `rows` has the shape of nothing and the type of each. A loop that is `unrolled` has
    to know i.
    """
    if not is_traced(count, running):
        found = loop_now(body, list(state), node, count, running, stops, rows, unrolled)
        if found is not None:
            return found
    if not stops and not is_traced(count, running) and count is not None:
        return loop_scanned(body, list(state), int(count))
    if rows or any(part is None or isinstance(part, list) for part in state):
        raise TypeError(
            f"{node} runs as often as data decides, and collects what it finds: jax.jit needs to know how often. "
            "Make what decides it a static argument, or call the function without jit"
        )
    return loop_later(body, list(state), count, running, stops)


def loop_now(
    body: Callable[..., tuple[Any, ...]],
    state: list[Any],
    node: str,
    count: Any,
    running: Any,
    stops: bool,
    rows: Sequence[tuple[tuple[int, ...], Any]],
    unrolled: bool,
) -> Sequence[Any] | None:
    """`loop` as a loop of Python; None where a condition is not known, or where it would be a long program."""
    trips: list[Sequence[Any]] = []
    limit = None if count is None else known(count, node).item()
    while (limit is None or len(trips) < limit) and known(running, node).item():
        found = list(body(np.asarray(len(trips)), *state))
        if stops:
            running = found.pop(0)
            if is_traced(running) and (limit is None or len(trips) + 1 < limit):
                return None
        before, state = state, found[: len(state)]
        trips.append(found[len(state) :])
        is_long = limit is not None and limit > LONGEST_UNROLLED and not unrolled
        if is_long and is_traced(found) and list(map(kind, before)) == list(map(kind, state)):
            return None
    if not trips:
        return [*state, *((np if of is object else jnp).zeros(shape, of) for shape, of in rows)]
    columns = zip(rows, zip(*trips, strict=True), strict=True)
    return [*state, *((np if of is object else jnp).stack(column) for (_, of), column in columns)]


def kind(part: Any) -> Any:
    """What has to stay as it is from trip to trip."""
    return (part.shape, part.dtype) if isinstance(part, jax.Array) else object()


def loop_scanned(body: Callable[..., tuple[Any, ...]], state: list[Any], count: int) -> Sequence[Any]:
    """`loop` where it is known how often it runs."""

    def step(state: list[Any], i: jax.Array) -> tuple[list[Any], list[Any]]:
        found = list(body(i, *state))
        return found[: len(state)], found[len(state) :]

    last, rows = lax.scan(step, state, jnp.arange(count))
    return [*last, *rows]


def loop_later(
    body: Callable[..., tuple[Any, ...]], state: list[Any], count: Any, running: Any, stops: bool
) -> Sequence[Any]:
    """`loop` where data decide how often it runs."""

    def goes_on(carried: tuple[Any, Any, list[Any]]) -> Any:
        i, running, _ = carried
        return running if count is None else running & (i < count)

    def step(carried: tuple[Any, Any, list[Any]]) -> tuple[Any, Any, list[Any]]:
        i, _, state = carried
        found = list(body(i, *state))
        return i + 1, jnp.asarray(found.pop(0)).reshape(()) if stops else True, found

    count = None if count is None else jnp.asarray(count).reshape(())
    last = lax.while_loop(goes_on, step, (jnp.array(0), jnp.asarray(running).reshape(()), state))
    return list(last[2])


def map_sequences(
    body: Callable[..., tuple[Any, ...]], sequences: Sequence[list[Any]], results: int
) -> list[list[Any]]:
    """What a function gives for the elements of sequences: a list for each of its results."""
    found = [body(*items) for items in zip(*sequences, strict=True)]
    return [[row[i] for row in found] for i in range(results)]
