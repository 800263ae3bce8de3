"""Weights of layers for frameworks without modules: each has a place in the tree, even where no one named it."""

from __future__ import annotations

from collections.abc import Mapping

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_made_up
from onward.backends.emit.scopes import scope_of
from onward.backends.emit.weights import Part, Transform

Arrangement = tuple[Transform, str]
"""How a weight is rearranged, and what that is called, so that two uses of one weight share it."""


def owned(
    e: Emitter, hint: str, arranged: Mapping[str, Arrangement] | None = None, **parts: Expr | None
) -> list[Expr | None]:
    """The inputs of a layer; constants without a name become its parameters, such as `lstm.weight`.

    Those to be `arranged` are written in another arrangement; None for one that is computed when the model runs.
    """
    arranged = arranged or {}
    constants = {a: x._value for a, x in parts.items() if isinstance(x, Arg) and e.const(x) is not None}
    unnamed = {
        attribute: Part(value, *arranged.get(attribute, (None, "")))
        for attribute, value in constants.items()
        if not e.weights.is_named(value)
    }
    found = e.weights.owned(unnamed, scope_of(e.node), hint) if unnamed else {}
    for attribute in arranged.keys() - found.keys():
        if attribute in constants:
            found[attribute] = e.weights.arranged(constants[attribute], *arranged[attribute])
    return [found.get(a, None if a in arranged else x) for a, x in parts.items()]


NEUTRAL = {"weight": 1, "bias": 0}


def affine(e: Emitter, hint: str, **parts: Expr) -> list[Expr | None]:
    """The weight and bias of a layer; those that do nothing and that no one named are no parameters."""
    made_up = all(is_made_up(e, x, NEUTRAL[name]) for name, x in parts.items())
    return list(parts.values()) if made_up else owned(e, hint, None, **parts)
