"""How statements are written in Python, and what another language says otherwise."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import ClassVar

from onward.backends.emit.expr import Expr, Resolve, Var, render
from onward.backends.emit.names import identifier

WIDTH = 100
INLINE_WIDTH = 72


class Language:
    """Python; those who derive from it say what differs. Lines inside a block are indented by the printer."""

    reserved: frozenset[str] = frozenset(dir(builtins))
    """Names of the language's own functions, which nothing else may have."""
    unread = "_"
    """What stands for one of several results that nobody reads."""
    unused_item = "_"
    """What a loop calls its item where nobody reads that; '' where it is called as any other."""
    nothing: ClassVar[list[str]] = ["pass"]
    """The body of an empty block."""
    ending: ClassVar[list[str]] = []
    """What ends a compound statement."""

    def render(self, expr: Expr, resolve: Resolve) -> str:
        return render(expr, resolve)

    def name(self, wish: str) -> str:
        """A name that is safe, and resembles one of the file."""
        return identifier(wish)

    def takes(self, consumer: Expr, variable: Var) -> bool:
        """Whether an expression can stand where another one reads a variable."""
        return True

    def assignment(self, left: list[str], text: str, *, rest: bool, is_display: bool) -> list[str]:
        """`a, b = text`; with `rest`, the last name is a list of all that is left."""
        names = ", ".join(left)
        names = names if not rest else ", *".join(names.rsplit(", ", 1))
        bare = is_display and len(left) > 1 and len(names) + len(text) < INLINE_WIDTH
        return [] if names == text else wrap(f"{names} = {text[1:-1] if bare else text}")

    def effect(self, text: str) -> list[str]:
        """An expression for its effect."""
        return wrap(text)

    def keyword(self, word: str) -> list[str]:
        return [word]

    def header(self, word: str, names: list[str], test: str) -> str:
        """What begins a block: `for` with names, or another word."""
        if word == "for":
            return f"for {', '.join(names)} in {test}:"
        return word + (f" {test}" if test else "") + ":"

    def shorter(self, lines: list[str], bodies: list[list[str]]) -> list[str] | None:
        """A compound statement as fewer lines, where it can be said so."""
        return _conditional(lines, bodies)

    def returning(self, results: Sequence[str]) -> list[str]:
        line = f"return {', '.join(results) or 'None'}"
        return wrap(line if len(line) <= WIDTH or len(results) < 2 else f"return ({', '.join(results)})")

    def function(self, name: str, parameters: list[str], body: list[str]) -> list[str]:
        """A function within, with the lines of its body."""
        return [*wrap(f"def {name}({', '.join(parameters)}):"), *("    " + line for line in body)]


PYTHON = Language()


def _conditional(lines: list[str], bodies: list[list[str]]) -> list[str] | None:
    """An `if` whose branches only assign the same variable as one line: `y = a if test else b`."""
    if len(bodies) != 2 or any(len(body) != 1 for body in bodies) or any(" if " in line for line in lines[1:]):
        return None
    (name, equals, yes), (other, _, no) = (body[0].partition(" = ") for body in bodies)
    test = lines[0].removeprefix("if ").removesuffix(":")
    line = f"{name} = {yes} if {test} else {no}"
    return [line] if equals and name == other and " if " not in test and len(line) <= INLINE_WIDTH else None


def wrap(line: str, width: int = WIDTH) -> list[str]:
    """Break a long line after its outermost bracket: all arguments on a line, or each on its own."""
    if len(line) <= width:
        return [line]
    spans = _outermost(line)
    if spans is None:
        return [line]
    start, commas, end = spans
    pieces = [line[a:b].strip() for a, b in itertools.pairwise([start + 1, *(c + 1 for c in commas), end])]
    together = " ".join(pieces).strip()
    if len(together) + 4 <= width:
        return [line[: start + 1], "    " + together, line[end:]]
    inner = [p for piece in pieces if piece for p in ("    " + w for w in wrap(_comma(piece), width - 4))]
    return [line[: start + 1], *inner, line[end:]]


def _comma(piece: str) -> str:
    return piece if piece.endswith(",") or " for " in piece else piece + ","


def _outermost(line: str) -> tuple[int, list[int], int] | None:
    """The longest top-level bracket pair of a line, with the commas directly inside."""
    best: tuple[int, list[int], int] | None = None
    stack: list[tuple[int, list[int]]] = []
    quote, skip = "", False
    for i, ch in enumerate(line):
        if skip:
            skip = False
        elif quote:
            if ch == "\\":
                skip = True
            elif ch == quote:
                quote = ""
        elif ch in "\"'":
            quote = ch
        elif ch in "([{":
            stack.append((i, []))
        elif ch == "," and stack:
            stack[-1][1].append(i)
        elif ch in ")]}" and stack:
            start, commas = stack.pop()
            breakable = _is_call(line, start) if line[start] == "(" else not _is_call(line, start)
            breakable = breakable or (line[start] == "(" and bool(commas))
            longer = i - start > 1 and (best is None or i - start > best[2] - best[0])
            if not stack and breakable and longer:
                best = (start, commas, i)
    return best


def _is_call(line: str, bracket: int) -> bool:
    """Whether a bracket follows a name or another bracket: a call or an index, not a group or a display."""
    return bracket > 0 and (line[bracket - 1].isalnum() or line[bracket - 1] in "_)]")
