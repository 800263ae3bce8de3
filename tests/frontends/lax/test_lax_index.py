"""Gathering and slicing, in and out of bounds, against JAX."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from written import run, same

from onward.frontends.lax import index
from onward.frontends.lax.index import Windows

X = np.arange(2 * 5 * 4 * 3, dtype=np.float32).reshape(2, 5, 4, 3)
MODES = {"clip": "clip", "fill": "fill", "promise": "promise_in_bounds"}

GATHERS = {
    # name: shape of indices, offset_dims, collapsed, start_index_map, batch of x, batch of indices, sizes of windows
    "rows": ((6, 1), (0, 2, 3), (1,), (1,), (), (), (2, 1, 4, 3)),
    "rows of several axes": ((2, 3, 1), (2, 3, 4), (0,), (0,), (), (), (1, 5, 4, 3)),
    "a row": ((1,), (0, 1, 2), (1,), (1,), (), (), (2, 1, 4, 3)),
    "not collapsed": ((3, 1), (0, 1, 2, 3), (), (1,), (), (), (2, 1, 4, 3)),
    "points": ((7, 4), (), (0, 1, 2, 3), (0, 1, 2, 3), (), (), (1, 1, 1, 1)),
    "points out of order": ((7, 2), (0, 2), (1, 2), (2, 1), (), (), (2, 1, 1, 3)),
    "windows": ((6, 2), (1, 2, 3, 4), (), (1, 2), (), (), (2, 2, 3, 3)),
    "windows in another order": ((2, 3, 2), (0, 2), (0, 3), (2, 1), (), (), (1, 2, 2, 1)),
    "one window": ((2,), (0, 1, 2, 3), (), (1, 2), (), (), (2, 3, 2, 3)),
    "one window less": ((2,), (0, 1), (0, 3), (1, 2), (), (), (1, 3, 2, 1)),
    "part of an axis": ((6, 1), (1, 2), (1, 0), (1,), (), (), (1, 1, 2, 3)),
    "batch": ((2, 6, 1), (2, 3), (1,), (1,), (0,), (0,), (1, 1, 4, 3)),
    "batch along": ((2, 6, 4, 3, 1), (), (1,), (1,), (0, 2, 3), (0, 2, 3), (1, 1, 1, 1)),
    "batch elsewhere": ((6, 4, 2, 2), (1,), (1,), (1, 3), (0, 2), (2, 1), (1, 1, 1, 2)),
    "batch of windows": ((2, 6, 1), (2, 3, 4), (), (1,), (0,), (0,), (1, 2, 4, 3)),
}  # fmt: skip


def indices_for(shape, named, window, seed=0, out=True):
    """Of every kind: inside, at the ends, and out of bounds unless not wanted."""
    rng = np.random.default_rng(seed)
    limits = [X.shape[d] - window[d] for d in named]
    columns = [rng.integers(-3 if out else 0, limit + (4 if out else 1), shape[:-1]) for limit in limits]
    return np.stack(columns, -1).astype(np.int32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GATHERS)
def test_gather(name, mode):
    shape, offset, collapsed, named, batch, index_batch, window = GATHERS[name]
    numbers = lax.GatherDimensionNumbers(offset, tuple(sorted(collapsed)), named, batch, index_batch)
    windows = Windows(offset, collapsed, named, batch, index_batch)
    for seed in range(2):
        at = indices_for(shape, named, window, seed)
        wanted = lax.gather(X, at, numbers, window, mode=MODES[mode])
        same(run(lambda op, x, i: index.gather(op, x, i, windows, window, mode), X, at)[0], wanted)
    found = run(lambda op, x: index.gather(op, x, op.constant(at), windows, window, mode), X)[0]
    same(found, wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "float16", "bool"])
def test_gather_of_other_dtypes_with_other_indices(dtype):
    x = X.astype(dtype)
    for at in (np.array([[3], [200], [0]], np.uint8), np.array([[3], [-1], [9]], np.int8)):
        numbers = lax.GatherDimensionNumbers((1, 2, 3), (1,), (1,))
        wanted = lax.gather(x, at, numbers, (2, 1, 4, 3), mode="fill")
        windows = Windows((1, 2, 3), (1,), (1,))
        same(run(lambda op, x, i, w=windows: index.gather(op, x, i, w, (2, 1, 4, 3), "fill"), x, at)[0], wanted)
    at = np.array([[2**32 - 1], [2**31], [1]], np.uint32)
    wanted = lax.gather(x, at, numbers, (2, 1, 4, 3), mode="clip")
    same(run(lambda op, x, i: index.gather(op, x, i, windows, (2, 1, 4, 3), "clip"), x, at)[0], wanted)


def test_gather_of_open_sizes():
    at = np.array([[3], [7], [-2]], np.int32)
    numbers = lax.GatherDimensionNumbers((0, 2, 3), (1,), (1,))
    windows = Windows((0, 2, 3), (1,), (1,))
    wanted = lax.gather(X, at, numbers, (2, 1, 4, 3), mode="fill")
    lengths = (None, 1, None, 3)
    found = run(lambda op, x, i: index.gather(op, x, i, windows, lengths, "fill"), X, at, open_axes=(0, 1, 2))
    same(found[0], wanted)


@partial(jax.jit, static_argnums=2)
def sliced(x, starts, window):
    return lax.dynamic_slice(x, starts, window, allow_negative_indices=False)


@jax.jit
def updated(x, update, starts):
    return lax.dynamic_update_slice(x, update, starts, allow_negative_indices=False)


@pytest.mark.parametrize("start", [(0, 0, 0, 0), (1, 3, 2, 1), (5, 4, 4, 4), (-1, -2, -3, 0), (0, 2, 1, 0)])
@pytest.mark.parametrize("window", [(1, 2, 2, 3), (2, 5, 4, 3), (2, 5, 1, 3), (1, 1, 1, 1), (2, 3, 4, 3)])
def test_dynamic_slices(start, window):
    starts = [np.int32(n) for n in start]
    wanted = sliced(X, starts, window)
    same(run(lambda op, x, *s: index.dynamic_slice(op, x, s, window), X, *starts)[0], wanted)
    same(run(lambda op, x: index.dynamic_slice(op, x, [op.constant(s) for s in starts], window), X)[0], wanted)
    update = -np.arange(np.prod(window), dtype=np.float32).reshape(window)
    wanted = updated(X, update, starts)
    same(run(lambda op, x, u, *s: index.dynamic_update_slice(op, x, u, s), X, update, *starts)[0], wanted)
    found = run(lambda op, x, u, *s: index.dynamic_update_slice(op, x, u, s), X, update, *starts, open_axes=(0, 2))[0]
    same(found, wanted)
    found = run(lambda op, x, *s: index.dynamic_slice(op, x, s, window), X, *starts, open_axes=(0, 1))[0]
    same(found, sliced(X, starts, window))


def test_starts_of_unsigned_numbers():
    x = jnp.arange(10)
    start = np.uint32(2**32 - 1)
    wanted = lax.dynamic_slice(x, [start], (3,))
    same(run(lambda op, x, s: index.dynamic_slice(op, x, [s], (3,)), x, start)[0], wanted)
