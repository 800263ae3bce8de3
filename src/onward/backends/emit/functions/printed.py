"""A function whose statements are lines, and the numbers that it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onward.backends.emit.expr import ATOM, Expr, lift, render
from onward.backends.emit.functions.numbers import Number
from onward.backends.emit.modules.tracing import Line, origins_of


@dataclass(frozen=True)
class Keyword:
    """An argument of a function for a number by which its modules differ."""

    name: str
    type: str
    default: Number | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.default is None else f" = {literal(self.default)}")


@dataclass
class Printed:
    """A function whose statements are lines."""

    name: str
    """'' for that of the whole model."""
    about: str
    arguments: list[tuple[str, str]]
    """The name and kind of each."""
    keywords: list[Keyword]
    results: list[Expr]
    lines: list[str]
    alike: dict[str, list[str]]
    """For each origin of a line, those that share it."""

    def traced(self, lines: Iterable[str]) -> list[str]:
        """The lines, which know all that they come from."""
        return [
            Line(line, [o for origin in origins_of(line) for o in self.alike.get(origin, [origin])]) for line in lines
        ]


def type_of(value: Number) -> str:
    if not isinstance(value, tuple):
        return type(value).__name__
    kinds = list(dict.fromkeys(map(type_of, value)))
    return f"tuple[{kinds[0]}, ...]" if len(kinds) == 1 else f"tuple[{', '.join(map(type_of, value))}]"


def literal(value: Number | None) -> str:
    return "" if value is None else render(lift(value), leaf)


def leaf(leaf: Expr) -> tuple[str, int]:
    """Anything but a number is like no other."""
    return f"<{id(leaf)}>", ATOM
