"""Sequences that are Python lists, and optionals that are None or their element."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Hosted
from onward.backends.emit.expr import Binary, Expr, Literal, Star, lift, ops
from onward.backends.emit.target import Rule
from onward.graph.values import array


def _list(*items: Any) -> Expr:
    return lift(list(items))


def inserted(sequence: Expr, item: Expr, place: Any) -> Expr:
    """A list with an item more, at the end where `place` is None."""
    if place is None:
        return _list(Star(sequence), item)
    if not isinstance(place, Expr) and place == 0:
        return _list(item, Star(sequence))
    return ops.sequence_insert(sequence, item, place)


def erased(sequence: Expr, place: Any) -> Expr:
    if not isinstance(place, Expr) and place in (0, -1):
        return sequence[1:] if place == 0 else sequence[:-1]
    return ops.sequence_erase(sequence, place)


def length(e: Emitter, count: Expr) -> Hosted:
    return Hosted(array([e.let_host(count, "n", nonnegative=True)], ()))


def has_element(e: Emitter, x: Expr | None = None, found: Expr | None = None) -> Hosted:
    """`found` tells it of an optional, unless that is None for nothing."""
    if x is None or not isinstance(e.type(x), ir.OptionalType):
        return Hosted(array([x is not None], ()))
    return Hosted(array([e.let_host(Binary("is not", x, None) if found is None else found, "flag")], ()))


RULES: dict[str, Rule] = {
    "SequenceEmpty": lambda e, p: _list(),
    "SequenceConstruct": lambda e, *items: _list(*items),
    "Optional": lambda e, x=None, *, p: Literal(None) if x is None else x,
}
