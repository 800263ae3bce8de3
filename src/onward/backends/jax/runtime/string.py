"""Text in numpy object arrays, and n-grams of numbers."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from onward.backends.shared.runtime.string import parts_of_text


def split_text(x: np.ndarray, delimiter: str | None, limit: int = -1) -> tuple[np.ndarray, Array]:
    """The parts of each string along a new last axis, and how many there are: see `parts_of_text`."""
    parts, counts = parts_of_text(x, delimiter, limit)
    return parts, jnp.asarray(counts)


def count_ngrams(
    x: Array,
    pool: Array,
    starts: Sequence[int],
    columns: Array,
    width: int,
    lengths: tuple[int, int],
    skips: int,
) -> Array:
    """How often each n-gram of a pool occurs in a row of numbers (or in each of several rows).

    `pool` holds all 1-grams, then all 2-grams and so on, from `starts` on; n-gram number i is counted in `columns[i]`.
    The members of an n-gram follow each other directly or, up to `skips`, each with the same number of others between.
    """
    rows = x if x.ndim > 1 else x[None]
    counts = []
    for n in range(1, len(starts)):
        grams = pool[starts[n - 1] : starts[n]].reshape(-1, n)
        found = jnp.zeros((rows.shape[0], grams.shape[0]), jnp.float32)
        if lengths[0] <= n <= lengths[1]:
            for step in range(1, skips + 2 if n > 1 else 2):
                found = found + occurrences(rows, grams, n, step)
        counts.append(found)
    total = jnp.zeros((rows.shape[0], width), jnp.float32).at[:, columns].add(jnp.concatenate(counts, 1))
    return total if x.ndim > 1 else total[0]


def occurrences(rows: Array, grams: Array, n: int, step: int) -> Array:
    """How often each n-gram occurs in each row, its members `step` apart."""
    places = max(rows.shape[1] - step * (n - 1), 0)
    equal = [rows[:, k * step : k * step + places, None] == grams[:, k] for k in range(n)]
    return jnp.stack(equal).all(0).sum(1, dtype=jnp.float32)
