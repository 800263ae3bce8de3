"""Numbers by which equal blocks may differ: the scale and zero point of a quantizer, a factor.

A rule writes such a number as a `Setting`. It is printed as the number that it is, unless blocks of one class differ by
it: then `onward.backends.emit.modules.settings` makes it a tensor that each of them has.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.expr import Binary, Call, Expr, Lazy, Literal, Weight, lift


class Setting(Lazy):
    """A number, with what it is called and of which type it is where it is a tensor."""

    __slots__ = ("_dtype", "_place", "_role", "_value")

    def __init__(self, value: float, role: str, dtype: ir.DataType) -> None:
        self._value = value
        self._role = role
        self._dtype = dtype
        self._place: Weight | None = None
        """The tensor that holds it, once there is one."""

    def _force(self) -> Expr:
        return Literal(self._value) if self._place is None else self._place

    @property
    def _is_nothing(self) -> bool:
        """Whether it is a zero that need not be written."""
        return self._place is None and self._value == 0


class Elided(Lazy):
    """A sum, a difference, or a call with keywords, of which settings that are zero go without saying."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Expr) -> None:
        self._whole = whole

    def _force(self) -> Expr:
        match self._whole:
            case Binary(_left=left, _right=Setting(_is_nothing=True)):
                return left
            case Call(_fn=function, _args=arguments, _kwargs=keywords):
                kept = {k: v for k, v in keywords.items() if not (isinstance(v, Setting) and v._is_nothing)}
                return Call(function, arguments, kept)
        return self._whole

    def _children(self) -> tuple[Expr, ...]:
        return (self._whole,)


class Step(Lazy):
    """A function of one value and settings, which is a module with these where blocks differ by them.

    `fake_quantize(x, 0.1, 3)` is `self.quantize(x)` then.
    """

    __slots__ = ("_constructor", "_function", "_hint", "_place", "_rest", "_settings", "_x")

    def __init__(
        self, function: Expr, constructor: Expr, hint: str, x: Expr, settings: dict[str, Setting], rest: dict[str, Expr]
    ) -> None:
        self._function = function
        self._constructor = constructor
        self._hint = hint
        self._x = x
        self._settings = settings
        self._rest = rest
        self._place: Weight | None = None

    def _force(self) -> Expr:
        if self._place is not None:
            return Call(self._place, (self._x,), {})
        return Call(self._function, (self._x, *self._settings.values()), self._rest)


def whole(expr: Expr) -> Expr:
    """The expression that a lazy one stands for, with every setting left as one."""
    while isinstance(expr, Lazy) and not isinstance(expr, Setting):
        expr = expr._whole if isinstance(expr, Elided) else expr._force()
    return expr


def plus(x: Expr, number: Expr | float | None) -> Expr:
    """`x + number`; None is nothing."""
    return x if number is None else Elided(Binary("+", x, lift(number)))


def minus(x: Expr, number: Expr | float | None) -> Expr:
    return x if number is None else Elided(Binary("-", x, lift(number)))
