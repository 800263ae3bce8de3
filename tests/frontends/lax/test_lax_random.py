"""Random numbers of a key, bit for bit those of JAX."""

import jax
import numpy as np
import pytest
from written import run, same

from onward.frontends.lax import random

KEY = jax.random.PRNGKey(7)


def words(op, key):
    return op.Gather(key, op.index(0), axis=-1), op.Gather(key, op.index(1), axis=-1)


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("shape", [(), (5, 3), (5000,)])
def test_bits(shape, width):
    wanted = jax.random.bits(KEY, shape, f"uint{width}")
    same(run(lambda op, key: random.bits(op, words(op, key), shape, width), KEY)[0], wanted)


def test_keys():
    def joined(op, pair):
        return op.Concat(*(op.unsqueeze(word, [op.rank(word, "words")]) for word in pair), axis=-1)

    same(run(lambda op, key: joined(op, random.drawn(op, words(op, key), (3,))), KEY)[0], jax.random.split(KEY, 3))
    for seed in (np.int32(-5), np.int32(0), np.uint32(2**32 - 1)):
        same(run(lambda op, seed: joined(op, random.seeded(op, seed)), seed)[0], jax.random.PRNGKey(seed))
        found = run(lambda op, key, data: joined(op, random.folded_in(op, words(op, key), data)), KEY, seed)
        same(found[0], jax.random.fold_in(KEY, seed))


def test_many_keys():
    keys = jax.random.split(KEY, 4)
    wanted = jax.vmap(lambda key: jax.random.bits(key, (3,)))(keys)
    same(run(lambda op, keys: random.bits(op, words(op, keys), (3,), 32), keys)[0], wanted)
