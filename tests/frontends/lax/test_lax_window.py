"""Padding, and reductions over windows, against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from written import near, run, same

from onward.frontends.lax import window
from onward.frontends.lax.pad import pad
from onward.frontends.lax.window import Moves

X = np.random.default_rng(0).normal(size=(2, 7, 6, 3)).astype(np.float32)
NONE = ((0, 0),) * 4
MOVES = {
    # name: window, steps, padding, distance of numbers, distance within a window
    "pool": ((1, 3, 2, 1), (1, 2, 2, 1), NONE, (1, 1, 1, 1), (1, 1, 1, 1)),
    "padded": ((1, 3, 2, 1), (1, 2, 1, 1), ((0, 0), (1, 1), (0, 1), (0, 0)), (1, 1, 1, 1), (1, 1, 1, 1)),
    "all axes": ((2, 3, 2, 2), (1, 1, 1, 1), ((1, 0), (2, 1), (0, 1), (0, 1)), (1, 1, 1, 1), (1, 1, 1, 1)),
    "apart": ((1, 3, 2, 1), (1, 1, 1, 1), ((0, 0), (1, 2), (0, 3), (0, 0)), (1, 2, 3, 1), (1, 2, 1, 1)),
    "less than none": ((1, 2, 2, 1), (1, 2, 2, 1), ((0, 0), (-1, 0), (0, -1), (0, 0)), (1, 1, 1, 1), (1, 1, 1, 1)),
    "dilated": ((1, 2, 2, 1), (1, 1, 1, 1), NONE, (1, 1, 1, 1), (1, 3, 2, 1)),
}  # fmt: skip
KINDS = {"add": lax.add, "max": lax.max, "min": lax.min, "mul": lax.mul}


def moves_of(name):
    sizes, steps, padding, base, apart = MOVES[name]
    return Moves(sizes, steps, [a for a, _ in padding], [b for _, b in padding], base, apart)


def reduced(x, start, function, name):
    sizes, steps, padding, base, apart = MOVES[name]
    return lax.reduce_window(x, start, function, sizes, steps, padding, base_dilation=base, window_dilation=apart)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MOVES)
def test_floats(name, kind):
    start = {"add": 0.0, "max": -np.inf, "min": np.inf, "mul": 1.0}[kind]
    wanted = reduced(X, start, KINDS[kind], name)
    near(run(lambda op, x: window.reduce_window(op, x, moves_of(name), kind), X)[0], wanted)
    x = X.copy()
    x[0, 3, 2, 1] = np.nan
    wanted = reduced(x, start, KINDS[kind], name)
    near(run(lambda op, x: window.reduce_window(op, x, moves_of(name), kind), x)[0], wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
@pytest.mark.parametrize("name", ["padded", "apart"])
def test_whole_numbers(name, dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, int(limits.max) + 1, X.shape).astype(dtype)
    for kind, start in (("add", 0), ("max", limits.min), ("min", limits.max)):
        wanted = reduced(x, np.asarray(start, dtype)[()], KINDS[kind], name)
        same(run(lambda op, x, k=kind: window.reduce_window(op, x, moves_of(name), k), x)[0], wanted)


@pytest.mark.parametrize("name", ["pool", "padded", "all axes"])
def test_what_is_chosen(name):
    sizes, steps, padding, _, _ = MOVES[name]

    def pooled(x):
        return lax.reduce_window(x, -np.inf, lax.max, sizes, steps, padding)

    wanted, back = jax.vjp(pooled, jnp.asarray(X))
    source = np.random.default_rng(1).normal(size=wanted.shape).astype(np.float32)
    found = run(lambda op, x, s: window.select_and_scatter(op, x, s, moves_of(name), "max"), X, source)
    near(found[0], back(source)[0])
    _, tangent = jax.jvp(pooled, (X,), (X * 2 + 1,))
    found = run(lambda op, x, t: window.select_and_gather(op, x, t, moves_of(name), "max"), X, X * 2 + 1)
    near(found[0], tangent)


@pytest.mark.parametrize("open_axes", [(0,), (0, 1, 2)])
@pytest.mark.parametrize("name", ["pool", "padded"])
def test_open_sizes(name, open_axes):
    for kind, start in (("add", 0.0), ("max", -np.inf)):
        wanted = reduced(X, start, KINDS[kind], name)
        near(
            run(lambda op, x, k=kind: window.reduce_window(op, x, moves_of(name), k), X, open_axes=open_axes)[0], wanted
        )
    flat = Moves((1, 2), (1, 1), (0, 0), (0, 0), (1, 1), (1, 1))
    wanted = lax.reduce_window(X[0, 0], 0.0, lax.add, (1, 2), (1, 1), "VALID")
    near(run(lambda op, x: window.reduce_window(op, x, flat, "add"), X[0, 0].copy(), open_axes=open_axes)[0], wanted)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "bool"])
@pytest.mark.parametrize(
    "config",
    [
        [(1, 2, 0), (0, 0, 1), (-1, 2, 2), (0, -2, 0)],
        [(-1, -1, 1), (2, 0, 3), (-2, 0, 1), (0, 0, 0)],
        [(0, 0, 0), (-3, -3, 1), (0, 0, 0), (1, 1, 1)],
    ],
)
def test_pad(config, dtype):
    x, filler = (X > 0 if dtype == "bool" else X.astype(dtype)), np.ones((), dtype)
    low, high, between = zip(*config, strict=True)
    wanted = lax.pad(x, filler, config)
    same(run(lambda op, x, f: pad(op, x, f, low, high, between), x, filler)[0], wanted)
    same(run(lambda op, x, f: pad(op, x, f, low, high, between), x, filler, open_axes=(1, 2))[0], wanted)
