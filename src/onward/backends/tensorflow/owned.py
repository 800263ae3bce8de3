"""Weights of layers, which are variables even where no one named them in the file."""

from __future__ import annotations

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.names import scope_of


def owned(e: Emitter, hint: str, **parts: Expr | None) -> list[Expr | None]:
    """The inputs of a layer; constants without a name become its parameters, such as `lstm.weight`."""
    unnamed = {
        attribute: x._value
        for attribute, x in parts.items()
        if isinstance(x, Arg) and e.const(x) is not None and not e.weights.is_named(x._value)
    }
    found = e.weights.owned(unnamed, scope_of(e.node), hint) if unnamed else {}
    return [found.get(attribute, x) for attribute, x in parts.items()]
