"""Writing at places that are computed, in and out of bounds, against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from test_lax_index import MODES, X, indices_for
from written import near, run, same

from onward.frontends.lax.index import Windows
from onward.frontends.lax.scatter import scatter

SCATTERS = {
    # name: shape of indices, update_window_dims, inserted, scatter_dims, batch of x, batch of indices, sizes of windows
    "rows": ((6, 1), (0, 2, 3), (1,), (1,), (), (), (2, 1, 4, 3)),
    "rows of several axes": ((2, 3, 1), (2, 3, 4), (0,), (0,), (), (), (1, 5, 4, 3)),
    "a row": ((1,), (0, 1, 2), (1,), (1,), (), (), (2, 1, 4, 3)),
    "not inserted": ((3, 1), (0, 1, 2, 3), (), (1,), (), (), (2, 1, 4, 3)),
    "points": ((7, 4), (), (0, 1, 2, 3), (0, 1, 2, 3), (), (), (1, 1, 1, 1)),
    "points out of order": ((7, 2), (0, 2), (1, 2), (2, 1), (), (), (2, 1, 1, 3)),
    "windows": ((6, 2), (1, 2, 3, 4), (), (1, 2), (), (), (2, 2, 3, 3)),
    "one window": ((2,), (0, 1, 2, 3), (), (1, 2), (), (), (2, 3, 2, 3)),
    "part of an axis": ((6, 1), (1, 2), (0, 1), (1,), (), (), (1, 1, 2, 3)),
    "batch": ((2, 6, 1), (2, 3), (1,), (1,), (0,), (0,), (1, 1, 4, 3)),
    "batch along": ((2, 6, 4, 3, 1), (), (1,), (1,), (0, 2, 3), (0, 2, 3), (1, 1, 1, 1)),
    "batch elsewhere": ((6, 4, 2, 2), (1,), (1,), (1, 3), (0, 2), (2, 1), (1, 1, 1, 2)),
}  # fmt: skip
KINDS = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def updates_for(shape, inner, gone, batch, window, dtype="float32"):
    kept = [n for d, n in enumerate(window) if d not in gone and d not in batch]
    outer = list(shape[:-1])
    full = [kept[inner.index(i)] if i in inner else outer.pop(0) for i in range(len(shape) - 1 + len(kept))]
    return np.random.default_rng(1).integers(-9, 99, full).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCATTERS)
def test_scatter(name, kind):
    shape, inner, gone, named, batch, index_batch, window = SCATTERS[name]
    numbers = lax.ScatterDimensionNumbers(inner, gone, named, batch, index_batch)
    windows = Windows(inner, gone, named, batch, index_batch)
    updates = updates_for(shape, inner, gone, batch, window)
    for mode in ("clip", "fill"):
        at = indices_for(shape, named, window, seed=3)
        wanted = KINDS[kind](X, at, updates, numbers, mode=MODES[mode])
        same(run(lambda op, x, i, u, m=mode: scatter(op, x, i, u, windows, kind, m), X, at, updates)[0], wanted)
    same(run(lambda op, x, u: scatter(op, x, op.constant(at), u, windows, kind, "fill"), X, updates)[0], wanted)
    at = indices_for(shape, named, window, seed=4, out=False)
    wanted = KINDS[kind](X, at, updates, numbers, mode="promise_in_bounds")
    same(run(lambda op, x, i, u: scatter(op, x, i, u, windows, kind, "promise"), X, at, updates)[0], wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "float16", "bool"])
def test_scatter_of_other_dtypes(dtype):
    x, at = np.arange(6).astype(dtype), np.array([[1], [1], [9], [-1], [4]], np.int32)
    updates = np.array([3, 100, 5, 6, 0]).astype(dtype)
    numbers, windows = lax.ScatterDimensionNumbers((), (0,), (0,)), Windows((), (0,), (0,))
    for kind, wanted in KINDS.items():
        if dtype == "bool" and kind in ("add", "mul"):
            continue
        found = run(lambda op, x, i, u, k=kind: scatter(op, x, i, u, windows, k, "fill"), x, at, updates)[0]
        same(found, wanted(x, at, updates, numbers, mode="fill"))


def test_scatter_by_a_function():
    """A place that is named twice is changed twice."""
    x, at = np.linspace(-1, 1, 6).astype(np.float32), np.array([[1], [1], [9], [4]], np.int32)
    wanted = jnp.asarray(x).at[at[:, 0]].apply(jnp.sin)
    windows = Windows((), (0,), (0,))
    updates = np.zeros(4, np.float32)
    found = run(lambda op, x, i, u: scatter(op, x, i, u, windows, lambda old, new: op.Sin(old), "fill"), x, at, updates)
    near(found[0], wanted)
    few = np.array([[1], [3]])
    found = run(
        lambda op, x, u: scatter(op, x, op.constant(few), u, windows, lambda old, new: op.Sin(old), "fill"),
        x,
        updates[:2],
    )
    near(found[0], jnp.asarray(x).at[np.array([1, 3])].apply(jnp.sin))


def test_scatter_of_open_sizes():
    x, at = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[1], [1], [9]], np.int32)
    updates = np.ones((3, 3), np.float32)
    numbers, windows = lax.ScatterDimensionNumbers((1,), (0,), (0,)), Windows((1,), (0,), (0,))
    for kind, wanted in KINDS.items():
        found = run(
            lambda op, x, i, u, k=kind: scatter(op, x, i, u, windows, k, "fill"), x, at, updates, open_axes=(0, 1)
        )
        same(found[0], jax.jit(wanted, static_argnums=3)(x, at, updates, numbers))
