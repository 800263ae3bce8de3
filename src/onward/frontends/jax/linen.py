"""Modules of Flax's linen, called so that tracing takes half of the time.

For each parameter Flax traces the function that would make it, only to see that the shape is the same. Here they are
traced together when the module has been called, and equal ones once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import flax.linen
import jax
import numpy as np
from flax.core import Scope, meta
from flax.errors import ScopeParamShapeError

DEPTH = 5
"""How far functions inside functions are compared."""


class Parameter(NamedTuple):
    """One that a module has read, and what would make it."""

    name: str
    scope: str
    value: Any
    make: Callable[[Any], Any]


class Lenient(Scope):  # type: ignore[misc]
    """A scope that hands out parameters as they are, and keeps what is to be checked of them."""

    read: list[Parameter]

    def push(self, *args: Any, **options: Any) -> Scope:
        return lenient(super().push(*args, **options), self.read)

    def param(self, name: str, init_fn: Any, *args: Any, unbox: bool = True, **options: Any) -> Any:
        if not self.has_variable("params", name):
            return super().param(name, init_fn, *args, unbox=unbox, **options)
        self.reserve(name, "params")
        value = self.get_variable("params", name)
        if unbox:
            value = meta.unbox(value)
        self.read.append(Parameter(name, self.path_text, value, lambda key: init_fn(key, *args, **options)))
        return value


def lenient(scope: Scope, read: list[Parameter]) -> Scope:
    """The scope, which is one of the call alone, made lenient."""
    scope.__class__ = Lenient
    scope.read = read
    return scope


def called(module: flax.linen.Module, variables: Any, inputs: Sequence[Any]) -> Any:
    """What `module.apply` gives, or its error."""
    read: list[Parameter] = []

    def call(bound: Any, *inputs: Any) -> Any:
        lenient(bound.scope, read)
        try:
            return bound(*inputs)
        finally:
            check(read)

    return flax.linen.apply(call, module)(variables, *inputs)


def check(read: Sequence[Parameter]) -> None:
    """Raise Flax's error for the first parameter whose shape is not that which the module would give it."""
    keys = [_key(parameter) for parameter in read]
    makers = {key: parameter.make for key, parameter in zip(keys, read, strict=True)}

    def made() -> list[Any]:
        key = jax.random.key(0)
        return [make(key) for make in makers.values()]

    shapes = dict(zip(makers, jax.eval_shape(made), strict=True))
    for key, parameter in zip(keys, read, strict=True):
        for found, wanted in zip(jax.tree.leaves(parameter.value), jax.tree.leaves(shapes[key]), strict=False):
            if np.shape(found) != np.shape(wanted):
                raise ScopeParamShapeError(parameter.name, parameter.scope, np.shape(found), np.shape(wanted))


def _key(parameter: Parameter) -> Any:
    """The same for parameters that are made alike, as in equal layers."""
    try:
        key = _alike(parameter.make, DEPTH)
        hash(key)
    except (TypeError, ValueError):  # it closes over arrays or lists, or over what has no value yet
        return id(parameter)
    return key


def _alike(found: Any, depth: int) -> Any:
    """What functions and modules are made of, as far as they make parameters: not where in the network they are."""
    if depth and isinstance(found, tuple):
        return tuple(_alike(one, depth) for one in found)
    if depth and isinstance(found, dict):
        return tuple((name, _alike(one, depth)) for name, one in found.items())
    if depth and isinstance(found, FunctionType) and found.__closure__ is not None:
        cells = [_alike(cell.cell_contents, depth - 1) for cell in found.__closure__]
        return found.__code__, found.__defaults__, *cells
    if depth and isinstance(found, flax.linen.Module):
        own = [field.name for field in dataclasses.fields(found) if field.name != "parent"]
        return type(found), *(_alike(getattr(found, name), depth - 1) for name in own)
    return found
