"""Modules of Flax's linen, called so that tracing takes a part of the time.

For each parameter Flax traces the function that would make it, only to see that the shape is the same. Here those of
JAX, which make what they are asked for, are believed, and others are traced together when the module has been called,
and equal ones once. Equal layers are traced once, see `layers.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import flax.linen
import jax
import numpy as np
from flax.core import Scope, meta
from flax.errors import ScopeParamShapeError

from onward.frontends.jax.layers import Layers

DEPTH = 5
"""How far functions inside functions are compared."""
INITIALIZERS = ("jax.nn.initializers", "jax._src.nn.initializers")
"""Functions of JAX that make an array of the shape which they are given first."""


class Parameter(NamedTuple):
    """One that a module has read, and what would make it."""

    name: str
    scope: str
    value: Any
    make: Callable[[Any], Any]
    shape: tuple[int, ...] | None
    """What it makes, where that is known."""


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
        shape = tuple(args[0]) if args and getattr(init_fn, "__module__", "") in INITIALIZERS else None
        self.read.append(Parameter(name, self.path_text, value, lambda key: init_fn(key, *args, **options), shape))
        return value


def lenient(scope: Scope, read: list[Parameter]) -> Scope:
    """The scope, which is one of the call alone, made lenient."""
    scope.__class__ = Lenient
    scope.read = read
    return scope


def called(module: flax.linen.Module, variables: Any, inputs: Sequence[Any]) -> Any:
    """What `module.apply` gives, or its error."""
    layers = Layers(variables, _called)
    with flax.linen.intercept_methods(layers.intercept):
        return _called(module, variables, inputs, {}, lambda bound, *inputs: bound(*inputs))


def _called(
    module: flax.linen.Module,
    variables: Any,
    inputs: Sequence[Any],
    options: Mapping[str, Any],
    enter: Callable[..., Any],
) -> Any:
    """A module with variables of its own, by `enter`."""
    read: list[Parameter] = []

    def call(bound: Any) -> Any:
        lenient(bound.scope, read)
        try:
            return enter(bound, *inputs, **options)
        finally:
            check(read)

    return flax.linen.apply(call, module)(variables)


def check(read: Sequence[Parameter]) -> None:
    """Raise Flax's error for the first parameter whose shape is not that which the module would give it."""
    keys = [_key(parameter) for parameter in read]
    makers = {key: one.make for key, one in zip(keys, read, strict=True) if one.shape is None}

    def made() -> list[Any]:
        key = jax.random.key(0)
        return [make(key) for make in makers.values()]

    shapes = dict(zip(makers, jax.eval_shape(made), strict=True)) if makers else {}
    for key, parameter in zip(keys, read, strict=True):
        wanted = jax.tree.map(np.shape, jax.tree.leaves(shapes[key])) if parameter.shape is None else [parameter.shape]
        for found, shape in zip(map(np.shape, jax.tree.leaves(parameter.value)), wanted, strict=False):
            if found != shape:
                raise ScopeParamShapeError(parameter.name, parameter.scope, found, shape)


def _key(parameter: Parameter) -> Any:
    """The same for parameters that are made alike, as in equal layers."""
    if parameter.shape is not None:
        return parameter.shape
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
        own = [field.name for field in dataclasses.fields(found) if field.name not in ("parent", "name")]
        return type(found), *(_alike(getattr(found, name), depth - 1) for name in own)
    return found
