"""Picking, placing and counting elements by index. An index below zero counts from the end."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from onward.backends.jax.runtime.host import known


def element_places(indices: Array, axis: int) -> tuple[Array, ...]:
    """The place of each element that `indices` chooses along an axis; along the others it stays where it is."""
    places = list(jnp.indices(indices.shape, sparse=True))
    places[axis] = indices
    return tuple(places)


def coordinates(indices: Array, batch_dims: int = 0) -> tuple[Array, ...]:
    """The last axis as one index for each axis, after those of the first `batch_dims` axes, which belong together."""
    batch = [
        jnp.arange(n).reshape([-1] + [1] * (indices.ndim - 2 - axis))
        for axis, n in enumerate(indices.shape[:batch_dims])
    ]
    return (*batch, *(indices[..., i] for i in range(indices.shape[-1])))


def write_cache(cache: Array, update: Array, start: Array | None, axis: int, circular: bool = False) -> Array:
    """A copy of `cache` with `update` written along `axis`, for each sample of the batch from its own start."""
    axis = axis % cache.ndim
    step = jnp.arange(update.shape[axis])[None]
    step = step if start is None else step + start[:, None]
    step = step % cache.shape[axis] if circular else step
    shape = [1] * cache.ndim
    shape[0], shape[axis] = step.shape
    places = list(jnp.indices(update.shape, sparse=True))
    places[axis] = step.reshape(shape)
    return cache.at[tuple(places)].set(update)


def one_hot(indices: Array, depth: int, axis: int) -> Array:
    """Along a new axis, whether its position is the index; an index out of range is nowhere."""
    axis = axis % (indices.ndim + 1)
    place = jnp.arange(depth).reshape([-1] + [1] * (indices.ndim - axis))
    indices = jnp.expand_dims(indices.astype(int), axis)
    return (indices == place) | (indices == place - depth)


def nonzero(x: Array, node: str) -> Array:
    """The places of what is not zero, a row of indices for each axis."""
    found = known(x, node)
    places = np.nonzero(found) if found.ndim else np.nonzero(found.reshape(1))
    return jnp.asarray(np.stack(places)[: found.ndim])


def unique(x: Array, node: str, axis: int | None = None, ascending: bool = True) -> tuple[Array, Array, Array, Array]:
    """Distinct values (or slices along `axis`), where each came first, which of them each element is, and how many."""
    known(x, node)
    return distinct(x, axis, ascending)


def first_unique(
    x: Array, size: int, axis: int | None = None, ascending: bool = True
) -> tuple[Array, Array, Array, Array, Array]:
    """`unique` under `jax.jit`: the first `size` of them, zeros where there are fewer; and how many there are."""
    whole = max(size, x.size if axis is None else x.shape[axis])
    values, first, inverse, counts = distinct(x, axis, ascending, whole)
    kept = jnp.take(values, jnp.arange(size), axis or 0)
    return kept, first[:size], inverse, counts[:size], jnp.count_nonzero(counts)


def distinct(x: Array, axis: int | None, ascending: bool, size: int | None = None) -> tuple[Array, Array, Array, Array]:
    """What `unique` gives, filled up with zeros to a `size`."""
    values, first, inverse, counts = jnp.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis, size=size, fill_value=0
    )
    inverse = inverse.reshape(-1)
    if ascending:
        return values, first, inverse, counts
    order = jnp.argsort(jnp.where(counts > 0, first, inverse.size))
    rank = jnp.argsort(order)
    return jnp.take(values, order, axis or 0), first[order], rank[inverse], counts[order]


def first_kept(x: Array, condition: Array, size: int, axis: int | None = None) -> tuple[Array, Array]:
    """The first `size` slices along an axis where a condition holds, zeros where there are fewer; and how many."""
    x = x.reshape(-1) if axis is None else x
    (places,) = jnp.nonzero(condition, size=size, fill_value=x.shape[axis or 0])
    kept = jnp.take(x, places, axis or 0, mode="fill", fill_value=0)
    return kept, jnp.count_nonzero(condition)


def top_k(x: Array, k: int, axis: int, largest: bool = True) -> tuple[Array, Array]:
    """The k largest or smallest elements in order, and their indices; of equal elements the first comes first."""
    order = jnp.argsort(x, axis, stable=True, descending=largest)
    chosen = jnp.take(order, jnp.arange(k), axis).astype(int)
    return jnp.take_along_axis(x, chosen, axis), chosen


def reverse_sequence(x: Array, lengths: Array, time_axis: int, batch_axis: int) -> Array:
    """The first lengths[i] steps of sequence i in reverse order, the others as they are."""
    step = jnp.arange(x.shape[time_axis])[:, None]
    index = jnp.where(step < lengths, lengths - 1 - step, step)
    index = index if time_axis < batch_axis else index.T
    places = list(jnp.indices(x.shape, sparse=True))
    places[time_axis] = index.reshape(*index.shape, *[1] * (x.ndim - 2))
    return x[tuple(places)]


def places_of(x: np.ndarray) -> Array:
    """The number of each element of an array, for ops that move strings: `strings_at(x, op(places_of(x)))`."""
    return jnp.arange(x.size).reshape(x.shape)


def unique_strings(x: np.ndarray, node: str, axis: int | None = None, ascending: bool = True) -> tuple[Any, ...]:
    """`unique` for an array of strings."""
    words, codes = np.unique(x, return_inverse=True)
    values, first, inverse, counts = unique(jnp.asarray(codes.reshape(x.shape)), node, axis, ascending)
    return words[np.asarray(values)], first, inverse, counts
