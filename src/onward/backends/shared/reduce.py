"""Reductions, as far as every backend says them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.target import Rule
from onward.spec.reduce import Reduce

A = TypeVar("A")


def reductions(
    axes_of: Callable[[Emitter, Expr, Expr | None, Reduce], A], named: Mapping[str, Callable[[Emitter, Expr, A], Expr]]
) -> dict[str, Rule]:
    """Rules of ops, each as what it does with the tensor and what `axes_of` says that it is reduced over."""

    def rule(reduce: Callable[[Emitter, Expr, A], Expr]) -> Rule:
        return lambda e, x, axes=None, *, p: reduce(e, x, axes_of(e, x, axes, p))

    return {op: rule(reduce) for op, reduce in named.items()}


def known_axes(e: Emitter, axes: Expr | None) -> list[int] | None:
    """The axes, [] for all of them (or none), or None where they are computed when the model runs."""
    return [] if axes is None or e.shape(axes) == (0,) else e.static_ints(axes)
