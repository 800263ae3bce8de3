"""What a model of the battery is: a module of a library with its weights, as a person gives it to a converter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_cases import Case, Function, theme_of

MODELS: list[Network] = []


@dataclass(frozen=True)
class Given:
    """What is given to `from_jax`, with keywords of its own, and the function of the inputs that it stands for."""

    target: Any
    call: Function
    keywords: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Network(Case):
    """A case whose function builds the model; it is built once, when it is asked for."""

    def given(self) -> Given:
        return build(self.function)

    def target(self) -> tuple[Any, dict[str, Any]]:
        found = self.given()
        return found.target, found.keywords

    def original(self) -> Function:
        return self.given().call


@cache
def build(builder: Callable[[], Given]) -> Given:
    return builder()


def drawn(tree: Any) -> Any:
    """Arrays for a tree of shapes, without the library's own functions, which would take seconds to compile."""
    generator = np.random.default_rng(0)

    def array(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.key(0)
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.zeros(leaf.shape, leaf.dtype)
        name = jax.tree_util.keystr(path).lower()
        if "var" in name or "scale" in name:
            made = generator.uniform(0.5, 1.5, leaf.shape)
        else:
            made = generator.standard_normal(leaf.shape) / max(1, leaf.size / max(leaf.shape, default=1)) ** 0.5
        return jnp.asarray(made.astype(leaf.dtype))

    return jax.tree_util.tree_map_with_path(array, tree)


def model(*specs: Any) -> Callable[[Callable[[], Given]], Callable[[], Given]]:
    """Register a function that builds a model."""

    def register(builder: Callable[[], Given]) -> Callable[[], Given]:
        theme = theme_of(builder.__module__).removesuffix(" models")
        MODELS.append(Network(theme, builder.__name__, builder, specs))
        return builder

    return register
