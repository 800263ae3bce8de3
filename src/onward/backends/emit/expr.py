"""Python source as a tree: what a rule returns, built by writing ordinary Python on symbols.

`F.relu(x + 1)` on the symbols `F` and `x` builds the tree of that very expression. Variables stay references until the
whole function body is known, so that names and inlining are decided once, by the printer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_BINARY = {
    "or": 1,
    "and": 2,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "is": 4,
    "is not": 4,
    "in": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "@": 10,
    "/": 10,
    "//": 10,
    "%": 10,
    "**": 12,
}
_OPPOSITE = {"is": "is not", "is not": "is", "==": "!=", "!=": "=="}
_CONDITIONAL, _NOT, _UNARY, ATOM = 0, 3, 11, 14


class Expr:
    """A node of the tree. Attribute access, calls, indexing and operators build larger trees."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("_"):
            raise AttributeError(name)
        return Attr(self, name)

    def _children(self) -> tuple[Expr, ...]:
        """Its direct parts."""
        return ()

    def __call__(self, *args: Any, **kwargs: Any) -> Expr:
        return Call(self, tuple(map(lift, args)), {k: lift(v) for k, v in kwargs.items()})

    def __getitem__(self, item: Any) -> Expr:
        return Index(self, tuple(map(lift, item)) if isinstance(item, tuple) else (lift(item),))

    def __iter__(self) -> Iterator[Expr]:
        raise TypeError("an expression is not iterable; use expr.unpack or Star")

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value while code is generated; use e.const or e.host")

    def __add__(self, other: Any) -> Expr:
        return Binary("+", self, lift(other))

    def __radd__(self, other: Any) -> Expr:
        return Binary("+", lift(other), self)

    def __sub__(self, other: Any) -> Expr:
        return Binary("-", self, lift(other))

    def __rsub__(self, other: Any) -> Expr:
        return Binary("-", lift(other), self)

    def __mul__(self, other: Any) -> Expr:
        return Binary("*", self, lift(other))

    def __rmul__(self, other: Any) -> Expr:
        return Binary("*", lift(other), self)

    def __truediv__(self, other: Any) -> Expr:
        return Binary("/", self, lift(other))

    def __rtruediv__(self, other: Any) -> Expr:
        return Binary("/", lift(other), self)

    def __floordiv__(self, other: Any) -> Expr:
        return Binary("//", self, lift(other))

    def __rfloordiv__(self, other: Any) -> Expr:
        return Binary("//", lift(other), self)

    def __mod__(self, other: Any) -> Expr:
        return Binary("%", self, lift(other))

    def __matmul__(self, other: Any) -> Expr:
        return Binary("@", self, lift(other))

    def __pow__(self, other: Any) -> Expr:
        return Binary("**", self, lift(other))

    def __and__(self, other: Any) -> Expr:
        return Binary("&", self, lift(other))

    def __or__(self, other: Any) -> Expr:
        return Binary("|", self, lift(other))

    def __xor__(self, other: Any) -> Expr:
        return Binary("^", self, lift(other))

    def __lshift__(self, other: Any) -> Expr:
        return Binary("<<", self, lift(other))

    def __rshift__(self, other: Any) -> Expr:
        return Binary(">>", self, lift(other))

    def __lt__(self, other: Any) -> Expr:
        return Binary("<", self, lift(other))

    def __le__(self, other: Any) -> Expr:
        return Binary("<=", self, lift(other))

    def __gt__(self, other: Any) -> Expr:
        return Binary(">", self, lift(other))

    def __ge__(self, other: Any) -> Expr:
        return Binary(">=", self, lift(other))

    def __neg__(self) -> Expr:
        return Unary("-", self)

    def __invert__(self) -> Expr:
        return Unary("~", self)


class Var:
    """Something that will have a name in the generated code: a tensor, a number, a list, a loop variable."""

    __slots__ = ("fixed", "hint", "kind", "role")

    def __init__(self, hint: str, kind: str = "tensor", *, fixed: bool = False) -> None:
        self.hint = hint
        """A wish for the name; "" where the printer may take any."""
        self.kind = kind
        """'tensor' or 'host'; only tensors share the short names x, y, z."""
        self.fixed = fixed
        """Assigned more than once or by a compound statement: never inlined, never renamed over."""
        self.role = ""
        """What it is called inside modules, whatever the file calls it: `past_key`."""

    def __repr__(self) -> str:
        return f"Var({self.hint!r})"


class Ref(Expr):
    """The value of a variable."""

    __slots__ = ("_var",)

    def __init__(self, var: Var) -> None:
        self._var = var


class Lazy(Expr):
    """An expression that is decided only when it turns out to be used."""

    __slots__ = ()

    def _force(self) -> Expr:
        raise NotImplementedError

    def _children(self) -> tuple[Expr, ...]:
        return (self._force(),)


class Name(Expr):
    """A global symbol such as `torch` or `F`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text


class Helper(Expr):
    """A runtime helper: a function that is copied into the generated package."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name


class Helpers:
    """`ops.resize_taps` is the helper of that name."""

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return Helper(name)


ops = Helpers()


class Device(Expr):
    """The device on which the enclosing function computes."""

    __slots__ = ()


class Weight(Expr):
    """A parameter, a buffer or a sub-module, by its dotted path from the root module."""

    __slots__ = ("_path",)

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path


class Literal(Expr):
    """A number, string, bool or None."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value


class Attr(Expr):
    __slots__ = ("_name", "_obj")

    def __init__(self, obj: Expr, name: str) -> None:
        self._obj = obj
        self._name = name

    def _children(self) -> tuple[Expr, ...]:
        return (self._obj,)


class Call(Expr):
    __slots__ = ("_args", "_fn", "_kwargs")

    def __init__(self, fn: Expr, args: tuple[Expr, ...], kwargs: dict[str, Expr]) -> None:
        self._fn = fn
        self._args = args
        self._kwargs = kwargs

    def _children(self) -> tuple[Expr, ...]:
        return (self._fn, *self._args, *self._kwargs.values())


class Index(Expr):
    __slots__ = ("_items", "_obj")

    def __init__(self, obj: Expr, items: tuple[Expr, ...]) -> None:
        self._obj = obj
        self._items = items

    def _children(self) -> tuple[Expr, ...]:
        return (self._obj, *self._items)


class SliceExpr(Expr):
    """`a:b:c` inside an index."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[Expr | None, Expr | None, Expr | None]) -> None:
        self._parts = parts

    def _children(self) -> tuple[Expr, ...]:
        return tuple(part for part in self._parts if part is not None)


class Binary(Expr):
    __slots__ = ("_left", "_op", "_right")

    def __init__(self, op: str, left: Any, right: Any) -> None:
        self._op = op
        self._left = lift(left)
        self._right = lift(right)

    def _children(self) -> tuple[Expr, ...]:
        return (self._left, self._right)


class Unary(Expr):
    __slots__ = ("_op", "_operand")

    def __init__(self, op: str, operand: Any) -> None:
        self._op = op
        self._operand = lift(operand)

    def _children(self) -> tuple[Expr, ...]:
        return (self._operand,)


class Conditional(Expr):
    """`a if test else b`."""

    __slots__ = ("_no", "_test", "_yes")

    def __init__(self, test: Any, yes: Any, no: Any) -> None:
        self._test = lift(test)
        self._yes = lift(yes)
        self._no = lift(no)

    def _children(self) -> tuple[Expr, ...]:
        return (self._test, self._yes, self._no)


class Sequence(Expr):
    """A tuple or a list display."""

    __slots__ = ("_brackets", "_items")

    def __init__(self, items: tuple[Expr, ...], brackets: str = "()") -> None:
        self._items = items
        self._brackets = brackets

    def _children(self) -> tuple[Expr, ...]:
        return self._items


class Star(Expr):
    """`*items` in a call or display."""

    __slots__ = ("_operand",)

    def __init__(self, operand: Any) -> None:
        self._operand = lift(operand)

    def _children(self) -> tuple[Expr, ...]:
        return (self._operand,)


def forced(expr: Expr) -> Expr:
    """The expression that a lazy one stands for."""
    while isinstance(expr, Lazy):
        expr = expr._force()
    return expr


def lift(value: Any) -> Expr:
    """A Python value as a literal expression; expressions pass through."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, slice):
        return SliceExpr(tuple(None if p is None else lift(p) for p in (value.start, value.stop, value.step)))  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return Sequence(tuple(map(lift, value)))
    if isinstance(value, list):
        return Sequence(tuple(map(lift, value)), "[]")
    if isinstance(value, np.ndarray):
        return lift(value.tolist())
    if isinstance(value, np.generic):
        return Literal(value.item())
    if value is None or value is Ellipsis or isinstance(value, bool | int | float | str):
        return Literal(value)
    if isinstance(value, Var):
        return Ref(value)
    raise TypeError(f"cannot print a {type(value).__name__} as source code")


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression."""
    return expr._children()


def walk(expr: Expr) -> Iterator[Expr]:
    stack = [expr]
    while stack:
        e = stack.pop()
        yield e
        stack += e._children()[::-1]


def variables(expr: Expr) -> Iterator[Var]:
    """Every reference to a variable, once per mention, left to right."""
    return (e._var for e in walk(expr) if isinstance(e, Ref))


Resolve = Callable[[Expr], tuple[str, int] | Expr]
"""How a leaf (`Ref`, `Weight`, `Helper`) prints: its text and precedence, or an expression to print in its place."""


def literal_text(value: Any) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return 'float("nan")'
        if math.isinf(value):
            return 'float("inf")' if value > 0 else '-float("inf")'
        return repr(value)
    if value is Ellipsis:
        return "..."
    if isinstance(value, str):
        return string_literal(value)
    return repr(value)


def string_literal(text: str) -> str:
    """A double-quoted, pure-ASCII literal: a name from an untrusted file can't end it early or hide in it."""
    out = []
    for ch in text:
        if ch in '\\"':
            out.append("\\" + ch)
        elif " " <= ch <= "~":
            out.append(ch)
        else:
            code = ord(ch)
            out.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(out) + '"'


def _negated(expr: Expr, resolve: Resolve) -> Expr | None:
    """`a is not b` for `a is b`; None where no operator says the opposite."""
    found: Any = expr
    while isinstance(found, Lazy | Ref):
        found = found._force() if isinstance(found, Lazy) else resolve(found)
    if isinstance(found, Binary) and found._op in _OPPOSITE:
        return Binary(_OPPOSITE[found._op], found._left, found._right)
    return None


def render(expr: Expr, resolve: Resolve) -> str:
    return _render(expr, resolve)[0]


def _paren(expr: Expr, resolve: Resolve, least: int) -> str:
    text, prec = _render(expr, resolve)
    return text if prec >= least else f"({text})"


def _render(expr: Expr, resolve: Resolve) -> tuple[str, int]:
    match expr:
        case Literal():
            text = literal_text(expr._value)
            return text, _UNARY if text.startswith("-") else ATOM
        case Name():
            return expr._text, ATOM
        case Attr():
            base = _paren(expr._obj, resolve, ATOM)
            if isinstance(expr._obj, Literal):
                base = f"({base})"
            return f"{base}.{expr._name}", ATOM
        case Call():
            args = [_paren(a, resolve, 0) for a in expr._args]
            args += [f"{k}={_paren(v, resolve, 0)}" for k, v in expr._kwargs.items()]
            return f"{_paren(expr._fn, resolve, ATOM)}({', '.join(args)})", ATOM
        case Index():
            items = ", ".join(_paren(i, resolve, 0) for i in expr._items)
            if len(expr._items) == 1 and isinstance(expr._items[0], Star):
                items += ","
            return f"{_paren(expr._obj, resolve, ATOM)}[{items or '()'}]", ATOM
        case SliceExpr():
            start, stop, step = ("" if p is None else _paren(p, resolve, 1) for p in expr._parts)
            return f"{start}:{stop}" + (f":{step}" if step else ""), ATOM
        case Binary():
            prec = _BINARY[expr._op]
            left = _paren(expr._left, resolve, prec + (prec in (4, 12)))
            right = _paren(expr._right, resolve, prec + (prec != 12))
            return f"{left} {expr._op} {right}", prec
        case Unary():
            if expr._op == "not" and (opposite := _negated(expr._operand, resolve)) is not None:
                return _render(opposite, resolve)
            prec = _NOT if expr._op == "not" else _UNARY
            space = " " if expr._op == "not" else ""
            return f"{expr._op}{space}{_paren(expr._operand, resolve, prec)}", prec
        case Conditional():
            parts = [_paren(p, resolve, 1) for p in (expr._yes, expr._test)]
            return f"{parts[0]} if {parts[1]} else {_paren(expr._no, resolve, 0)}", _CONDITIONAL
        case Sequence():
            items = ", ".join(_paren(i, resolve, 0) for i in expr._items)
            if expr._brackets == "()" and len(expr._items) == 1:
                items += ","
            return f"{expr._brackets[0]}{items}{expr._brackets[1]}", ATOM
        case Lazy():
            return _render(expr._force(), resolve)
        case Star():
            return f"*{_paren(expr._operand, resolve, 5)}", ATOM
        case _:
            found = resolve(expr)
            return _render(found, resolve) if isinstance(found, Expr) else found
