"""What code does, whatever it does it to: equal for code that could be the same lines of a class."""

from __future__ import annotations

from collections.abc import Callable

from onward.backends.emit.expr import Binary, Call, Expr, Literal, Ref, Unary, Weight, children, render
from onward.backends.emit.settings import Setting, whole


def outline(expr: Expr, weight: Callable[[Weight], str], variable: Callable[[Ref], str]) -> str:
    """An expression as text: settings are all the same, weights and variables are what the caller says."""
    expr = whole(expr)
    match expr:
        case Setting():
            return f"setting {expr._role}"
        case Weight():
            return weight(expr)
        case Ref():
            return variable(expr)
        case Literal():
            return repr(expr._value)
    extra = expr._op if isinstance(expr, Binary | Unary) else ""
    name = getattr(expr, "_name", getattr(expr, "_text", ""))
    keys = list(expr._kwargs) if isinstance(expr, Call) else ""
    parts = ",".join(outline(child, weight, variable) for child in children(expr))
    return f"{type(expr).__name__}{extra}{name}{keys}({parts})"


def class_of(constructor: Expr) -> str:
    """`nn.Conv2d(3, kernel_size)` for a constructor: its class and the names of its arguments, not their values."""
    if not isinstance(constructor, Call):
        return "module"
    name = render(constructor._fn, lambda leaf: (getattr(leaf, "_name", "?"), 14))
    return f"{name}{len(constructor._args)}{sorted(constructor._kwargs)}"
