"""Layers of Flax's linen that occur several times with other weights are traced once, as functions of their weights.

Only layers of Flax itself are, which look neither at their names nor at where they are in the network, and only where
all that they can depend on is known to be equal. Others are called as they are, and so is what fails: the error is
Flax's, of the layer in its place. The functions are jitted ones, so that JAX decides what it has traced already.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from flax.linen import module as implementation

OFTEN = 3
"""From how many on it takes less time; a function takes some of its own."""
DEPTH = 5
"""How far functions inside functions are compared."""
KINDS = {
    nn.BatchNorm, nn.Conv, nn.Dense, nn.DenseGeneral, nn.Embed, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm,
    nn.MultiHeadAttention, nn.MultiHeadDotProductAttention, nn.SelfAttention,
}  # fmt: skip
"""The layers."""
PLAIN = (type(None), bool, int, str, bytes, np.dtype, type, Enum, BuiltinFunctionType)
"""What is equal when Python says so, among objects of one type."""


class Unknown(Exception):
    """It is not known whether two of these are equal."""


class Layers:
    """Those of one call of a module."""

    def __init__(self, variables: Any, call: Callable[..., Any]) -> None:
        self.call = call
        """Calls a module with variables, inputs, options, and what enters it."""
        self.named = getattr(implementation, "_use_named_call", True)
        self.functions: dict[Any, Callable[..., Any] | None] = {}
        self.counts: Counter[Any] = Counter()
        self._form(variables.get("params", {}) if isinstance(variables, Mapping) else {}, count=True)

    def _form(self, tree: Any, count: bool = False) -> Any:
        """Names and shapes of parameters."""
        if not isinstance(tree, Mapping):
            return tuple(np.shape(leaf) for leaf in jax.tree.leaves(tree))
        form = tuple(sorted((str(name), self._form(inner, count)) for name, inner in tree.items()))
        if count:
            self.counts[form] += 1
        return form

    def intercept(
        self, call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], at: nn.module.InterceptorContext
    ) -> Any:
        """What Flax calls in place of each method of each module."""
        if at.module.scope is not None and at.module.scope.parent is None:
            with nn.override_named_call(self.named):
                return call(*args, **options)
        if at.method_name != "__call__" or type(at.module) not in KINDS or not self._is_pure(at.module):
            return call(*args, **options)
        variables = at.module.variables
        if self.counts[self._form(variables.get("params", {}))] < OFTEN:
            return call(*args, **options)
        leaves, tree = jax.tree.flatten((variables, args, options))
        arrays = {id(leaf): leaf for leaf in leaves if isinstance(leaf, jax.Array | np.ndarray)}
        order = {name: place for place, name in enumerate(arrays)}
        try:
            rest = tuple(order[id(leaf)] if id(leaf) in arrays else (same(leaf),) for leaf in leaves)
            key = tree, rest, same_fields(at.module)
        except Unknown:
            return call(*args, **options)
        if key not in self.functions:
            places = [order.get(id(leaf)) for leaf in leaves]
            self.functions[key] = self._function(at.module, tree, places, leaves)
        function = self.functions[key]
        if function is not None:
            try:
                return function(list(arrays.values()))
            except Exception:
                self.functions[key] = None
        return call(*args, **options)

    def _is_pure(self, module: nn.Module) -> bool:
        """Whether it can only read variables, and nobody else takes calls in."""
        scope, others = module.scope, getattr(implementation, "_global_interceptor_stack", ())
        return len(others) == 1 and scope.mutable is False and not scope.rngs and not scope.flags

    def _function(self, module: nn.Module, tree: Any, places: list[int | None], leaves: list[Any]) -> Any:
        """The module as a function of arrays; those of `leaves` that are none stay."""
        rest = [leaf if place is None else None for leaf, place in zip(leaves, places, strict=True)]

        def layer(arrays: list[Any]) -> Any:
            pairs = zip(rest, places, strict=True)
            filled = [leaf if place is None else arrays[place] for leaf, place in pairs]
            variables, args, options = jax.tree.unflatten(tree, filled)
            return self.call(module, variables, args, options, self.enter)

        return jax.jit(layer)

    def enter(self, module: nn.Module, *args: Any, **options: Any) -> Any:
        """Call a module under no name of its own, as it has one already where the function is called."""
        with nn.override_named_call(False):
            return module(*args, **options)


def same_fields(module: nn.Module) -> tuple[Any, ...]:
    """What a layer was made with."""
    own = [field.name for field in dataclasses.fields(module) if field.name not in ("parent", "name")]
    return type(module), *(same(getattr(module, name)) for name in own)


def same(found: Any, depth: int = DEPTH) -> Any:
    """Equal for what does the same; 0 and 0.0 do not."""
    kind = type(found)
    if isinstance(found, PLAIN):
        return kind, found
    if isinstance(found, float):
        return kind, found.hex()
    if depth and kind is tuple:
        return kind, *(same(one, depth - 1) for one in found)
    if depth and kind is list:
        return kind, *(same(one, depth - 1) for one in found)
    if depth and kind is dict:
        return kind, *((same(key, depth - 1), same(one, depth - 1)) for key, one in found.items())
    if depth and kind is FunctionType:
        if found.__closure__ is None:
            return kind, found
        try:
            cells = tuple(same(cell.cell_contents, depth - 1) for cell in found.__closure__)
        except ValueError as error:  # what is in a cell has no value yet
            raise Unknown from error
        defaults = same(found.__defaults__, depth - 1), same(found.__kwdefaults__, depth - 1)
        return kind, found.__code__, id(found.__globals__), *defaults, *cells
    raise Unknown
