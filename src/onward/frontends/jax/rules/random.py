"""Random numbers of keys, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.jax.dimensions import Dim, is_known
from onward.frontends.jax.registry import rule
from onward.frontends.jax.values import Keys, Value
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import random
from onward.frontends.lax.sizes import Size
from onward.graph.build import Tensor


def _sizes(op: Writer, shape: Sequence[Dim]) -> list[Size]:
    return [int(dim) if is_known(dim) else op.size(dim) for dim in shape]


def _check() -> None:
    import jax

    if not jax.config.jax_threefry_partitionable:
        raise UnsupportedError("random numbers are converted with jax_threefry_partitionable=True only")


def _named(impl: Any) -> None:
    name = str(getattr(impl, "name", impl))
    if name not in ("threefry2x32", "fry"):
        raise UnsupportedError(f"random numbers of {name} keys are not supported: use threefry2x32 keys")


@rule("threefry2x32")
def threefry2x32(op: Writer, k1: Tensor, k2: Tensor, x1: Tensor, x2: Tensor) -> Sequence[Tensor]:
    return list(random.threefry(op, (k1, k2), (x1, x2)))


@rule("random_seed", whole=True)
def random_seed(op: Writer, seeds: Tensor, *, impl: Any) -> Keys:
    _named(impl)
    return Keys(*random.seeded(op, seeds))


@rule("random_wrap", whole=True)
def random_wrap(op: Writer, words: Tensor, *, impl: Any) -> Keys:
    _named(impl)
    return Keys(*(op.Gather(words, op.index(i), axis=-1) for i in (0, 1)))


@rule("random_unwrap", whole=True)
def random_unwrap(op: Writer, keys: Keys) -> Tensor:
    return op.Concat(*(op.unsqueeze(word, [op.rank(word, "keys")]) for word in (keys.first, keys.second)), axis=-1)


@rule("random_bits", whole=True)
def random_bits(op: Writer, keys: Keys, *, bit_width: int, shape: Sequence[Dim]) -> Tensor:
    _check()
    return random.bits(op, (keys.first, keys.second), _sizes(op, shape), bit_width)


@rule("random_split", whole=True)
def random_split(op: Writer, keys: Keys, *, shape: Sequence[Dim]) -> Keys:
    _check()
    return Keys(*random.drawn(op, (keys.first, keys.second), _sizes(op, shape)))


@rule("random_fold_in", whole=True)
def random_fold_in(op: Writer, keys: Keys, data: Tensor) -> Keys:
    return Keys(*random.folded_in(op, (keys.first, keys.second), data))


@rule("random_clone", whole=True)
def random_clone(op: Writer, keys: Keys) -> Keys:
    return keys


@rule("random_gamma", whole=True)
def random_gamma(op: Writer, keys: Value, a: Tensor, *, log_space: bool) -> Sequence[Value]:
    """As JAX itself computes it where it has no kernel."""
    import jax
    from jax._src.random.core import _gamma_impl

    given = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in op.ins]
    closed = jax.make_jaxpr(lambda key, a: _gamma_impl(key, a, log_space=log_space, use_vmap=True))(*given)
    return op.translator.run(closed, [keys, a])
