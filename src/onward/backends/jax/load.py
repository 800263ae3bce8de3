"""Runs generated source in memory: what `to_jax` returns is what `convert` writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from onward.backends.emit.execute import execute
from onward.backends.emit.safetensors import carried
from onward.backends.jax.values import in_64_bits

if TYPE_CHECKING:
    from onward.backends.emit.package import Source


STATIC = (jax.Array | float | tuple[Any, ...], np.ndarray | str | tuple[Any, ...])
"""How generated code annotates arguments whose numbers, or strings, `jax.jit` has to know."""


@dataclass
class Net:
    """A generated function and what it is called with beside the inputs."""

    apply: Callable[..., Any]
    params: Any
    constants: Any
    warn: Callable[[], None] = lambda: None
    """Says so where JAX would cut numbers that the model needs."""

    static: tuple[str, ...] = ()
    """The arguments whose numbers or strings `jax.jit` has to know, where it is run by that."""

    counts: tuple[str, ...] = ()
    """What it gives after the outputs of the model, by name: see `bounds`."""

    def __call__(self, *inputs: Any) -> Any:
        if self.static:
            names = list(inspect.signature(self.apply).parameters)[1:]
            pairs = zip(names, inputs, strict=False)
            inputs = tuple(_hashable(np.asarray(x).tolist()) if name in self.static else x for name, x in pairs)
        return self.bound(self.params, *inputs)

    @property
    def bound(self) -> Callable[..., Any]:
        """The function of parameters and inputs alone."""
        return partial(self.apply, constants=self.constants) if self.constants else self.apply

    def jitted(self) -> Net:
        asked = [name for name, kind in inspect.get_annotations(self.apply).items() if kind in STATIC]
        return replace(self, apply=jax.jit(self.apply, static_argnames=asked), static=tuple(asked))

    def jitted_or_not(self) -> Net:
        """Jitted where that is possible; what depends on data is found out only when it is called."""
        jitted, plain = jax.jit(self.apply), self.apply

        def apply(*arguments: Any, **constants: Any) -> Any:
            nonlocal jitted
            try:
                return jitted(*arguments, **constants)
            except Exception:  # whatever JAX, or the code of the model, says to values that are not known yet
                jitted = plain
                return plain(*arguments, **constants)

        return replace(self, apply=apply)

    def as_configured(self) -> Net:
        """With arrays as JAX makes them now, of 32 bits unless it is told otherwise."""
        self.warn()
        if jax.config.jax_enable_x64:
            return self
        params, constants = jax.tree.map(_as_configured, (self.params, self.constants))
        return replace(self, params=params, constants=constants)


def _hashable(numbers: Any) -> Any:
    return tuple(map(_hashable, numbers)) if isinstance(numbers, list) else numbers


def _as_configured(x: jax.Array) -> jax.Array:
    return x if x.dtype.itemsize < 8 and x.dtype != jnp.complex128 else jnp.asarray(np.asarray(x))


def run(source: Source) -> Net:
    """Execute the generated modules and fill in the weights."""
    package = execute(source)
    with in_64_bits():
        tensors = {path: jnp.asarray(carried(tensor, source.dtypes)) for path, tensor in source.tensors.items()}
    fixed, nested = source.constants, package.ops.nested
    params = nested({path: tensor for path, tensor in tensors.items() if path not in fixed})
    constants = nested({path: tensor for path, tensor in tensors.items() if path in fixed})
    warn = getattr(package.ops, "warn_of_32_bits", Net.warn)
    return Net(package.model.apply, params, constants, warn, counts=source.counts)


def opened(module: ModuleType, folder: Path) -> Net:
    """The model of a package that was written."""
    with in_64_bits():
        constants = module.load_constants(folder) if hasattr(module, "load_constants") else {}
        return Net(module.apply, module.load(folder), constants)
