"""Prints expressions as MATLAB writes them.

What rules write in Python's operators is elementwise: `a * b` is `a .* b`, `a ** b` is `a .^ b`, `a @ b` is MATLAB's
own `a * b`, and `x.T` is `x.'`. An index counts from 1, and both ends of a slice belong to it: rules say so.
"""

from __future__ import annotations

import math
from typing import Any

from onward.backends.emit.expr import (
    Attr,
    Binary,
    Call,
    Conditional,
    Expr,
    Helper,
    Index,
    Lazy,
    Literal,
    Name,
    Ref,
    Resolve,
    Sequence,
    SliceExpr,
    Unary,
)
from onward.errors import UnsupportedError

ATOM, POWER, UNARY, TIMES, PLUS, COLON = 14, 10, 9, 8, 7, 6
BINARY = {
    "or": ("||", 1),
    "and": ("&&", 2),
    "|": ("|", 3),
    "&": ("&", 4),
    "==": ("==", 5),
    "!=": ("~=", 5),
    "<": ("<", 5),
    "<=": ("<=", 5),
    ">": (">", 5),
    ">=": (">=", 5),
    "+": ("+", PLUS),
    "-": ("-", PLUS),
    "*": (".*", TIMES),
    "/": ("./", TIMES),
    "@": ("*", TIMES),
    "**": (".^", POWER),
}
"""MATLAB's operators, and how tightly they bind."""
FUNCTIONS = {"math.floor": "floor", "math.ceil": "ceil", "math.sqrt": "sqrt", "int": "fix", "float": "double"}
"""What MATLAB calls functions of Python that host numbers are computed by."""


class Item(Index):
    """`x{1}`: what lies in a cell array."""

    __slots__ = ()


def literal_text(value: Any) -> str:
    """A number, truth value or text; nothing of a file can end it early, or hide in it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return integer_text(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return ("Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(value)
    if isinstance(value, str):
        return string_text(value)
    if value is None:
        return "[]"
    raise TypeError(f"MATLAB has no literal for {value!r}")


def integer_text(value: int) -> str:
    """A whole number; one that a double does not hold is put together from its bits."""
    if abs(value) <= 2**53:
        return str(value)
    kind = "int64" if value < 2**63 else "uint64"
    low, high = value & 0xFFFFFFFF, (value >> 32) & 0xFFFFFFFF
    return f"typecast(uint32([{low}, {high}]), '{kind}')"


def string_text(text: str) -> str:
    """A text in single quotes; where it has more than plain characters, by their bytes."""
    if all(" " <= ch <= "~" for ch in text):
        return "'" + text.replace("'", "''") + "'"
    check_text(text)
    return f"native2unicode(uint8([{', '.join(map(str, text.encode()))}]), 'UTF-8')"


def check_text(text: str) -> None:
    """Refuse what is no Unicode: MATLAB's texts are nothing else."""
    if any("\ud800" <= ch <= "\udfff" for ch in text):
        raise UnsupportedError(f"the text {text!r} is not valid UTF-8, which texts of MATLAB have to be")


def render(expr: Expr, resolve: Resolve) -> str:
    return _render(expr, resolve)[0]


def _paren(expr: Expr, resolve: Resolve, least: int) -> str:
    text, prec = _render(expr, resolve)
    return text if prec >= least else f"({text})"


def _is_number(expr: Expr) -> bool:
    """Whether it is certainly a single number, not a tensor."""
    while isinstance(expr, Lazy):
        expr = expr._force()
    match expr:
        case Literal():
            return isinstance(expr._value, bool | int | float)
        case Ref():
            return expr._var.kind == "host"
        case Binary():
            return _is_number(expr._left) and _is_number(expr._right)
        case Unary():
            return _is_number(expr._operand)
        case Call(_fn=Name(_text="size" | "numel")):
            return True
    return False


def _render(expr: Expr, resolve: Resolve) -> tuple[str, int]:
    match expr:
        case Literal():
            text = literal_text(expr._value)
            return text, UNARY if text.startswith("-") else ATOM
        case Name():
            return FUNCTIONS.get(expr._text, expr._text), ATOM
        case Attr(_name="T"):
            return f"{_paren(expr._obj, resolve, ATOM)}.'", ATOM
        case Attr():
            return f"{_paren(expr._obj, resolve, ATOM)}.{expr._name}", ATOM
        case Call():
            return _call(expr, resolve), ATOM
        case Index():
            open_, close = "{}" if isinstance(expr, Item) else "()"
            items = ", ".join(_paren(i, resolve, 0) for i in expr._items)
            return f"{_paren(expr._obj, resolve, ATOM)}{open_}{items}{close}", ATOM
        case SliceExpr():
            start, stop, step = ("" if p is None else _paren(p, resolve, PLUS) for p in expr._parts)
            return f"{start}:{step}:{stop}" if step else f"{start}:{stop}", COLON
        case Binary():
            return _binary(expr, resolve)
        case Unary():
            symbol = "~" if expr._op == "not" else expr._op
            operand = _paren(expr._operand, resolve, UNARY)
            if operand.startswith("-"):  # Octave takes -- for one less
                operand = f"({operand})"
            return f"{symbol}{operand}", UNARY
        case Conditional():
            return _render(Helper("choose")(expr._test, expr._yes, expr._no), resolve)
        case Sequence():
            items = ", ".join(_paren(i, resolve, 0) for i in expr._items)
            is_text = any(isinstance(i, Literal) and isinstance(i._value, str) for i in expr._items)
            is_cell = is_text or expr._brackets == "{}"
            return (f"{{{items}}}" if is_cell else f"[{items}]"), ATOM
        case Lazy():
            return _render(expr._force(), resolve)
        case _:
            found = resolve(expr)
            return _render(found, resolve) if isinstance(found, Expr) else found


def _call(expr: Call, resolve: Resolve) -> str:
    """A call; what has a name is given as a pair of that and its value."""
    args = [_paren(a, resolve, 0) for a in expr._args]
    for name, value in expr._kwargs.items():
        args += [f"'{name}'", _paren(value, resolve, 0)]
    function = _paren(expr._fn, resolve, ATOM)
    return f"{function}({', '.join(args)})"


def _binary(expr: Binary, resolve: Resolve) -> tuple[str, int]:
    left, right = expr._left, expr._right
    if expr._op == "//":
        return f"floor({_paren(left, resolve, TIMES)} / {_paren(right, resolve, UNARY)})", ATOM
    if expr._op == "%":
        return f"mod({_paren(left, resolve, 0)}, {_paren(right, resolve, 0)})", ATOM
    if expr._op == "in":
        return f"isfield({_paren(right, resolve, 0)}, {_paren(left, resolve, 0)})", ATOM
    symbol, prec = BINARY[expr._op]
    if expr._op == "*" and (_is_number(left) or _is_number(right)):
        symbol = "*"
    if expr._op == "/" and _is_number(right):
        symbol = "/"
    return f"{_paren(left, resolve, prec)} {symbol} {_paren(right, resolve, prec + 1)}", prec
