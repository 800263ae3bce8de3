"""The operators of Python on columns, single numbers and frames that are followed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from onward.frontends.dataframe.pandas.dispatch import unwrapped
from onward.frontends.dataframe.pandas.proxies import Frame, Index, Scalar, Series, asked, wrapped

_BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "matmul",
]
_UNARY = ["neg", "pos", "abs", "invert"]


def _operators() -> None:
    """Give columns, numbers and frames the operators of Python."""

    def binary(name: str, function: Callable[[Any, Any], Any], is_swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            full = f"{_kind(self, other)}.__{name}__"
            a, b = (other, self) if is_swapped else (self, other)
            call, result = asked(self.trace, full, lambda: function(unwrapped(a), unwrapped(b)), a, b)
            return wrapped(call, result)

        return method

    def unary(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def method(self: Any) -> Any:
            return self._ask(f"{_kind(self)}.__{name}__", lambda: function(self.real))

        return method

    for kind in (Series, Scalar, Frame, Index):
        for name in _BINARY:
            function = getattr(operator, f"__{name}__")
            setattr(kind, f"__{name}__", binary(name, function, False))
            if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
                setattr(kind, f"__r{name}__", binary(name, function, True))
        for name in _UNARY:
            setattr(kind, f"__{name}__", unary(name, getattr(operator, f"__{name}__")))


def _kind(*values: Any) -> str:
    """Whose operator it is: of a frame if one takes part, else of a column. Single numbers are as columns."""
    return "DataFrame" if any(isinstance(value, Frame) for value in values) else "Series"


_operators()
