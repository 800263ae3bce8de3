"""Is something in a text, and of what is a text made: answered by one RegexFullMatch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.pattern_sets import (
    Dialect,
    all_characters,
    complement,
    of_characters,
    written,
)
from onward.frontends.dataframe.tensors.patterns import Pattern, literal, parse, re2, search
from onward.frontends.dataframe.tensors.text import full_match
from onward.graph.build import Tensor

Class = Literal["alpha", "alnum", "decimal", "digit", "numeric", "space", "ascii"]


def quoted(value: str) -> str:
    """A text as a pattern of RE2."""
    return re2(literal(value), Pattern(value, literal(value), 0, {}, "python", False))


def contains_text(x: Tensor, value: str) -> Tensor:
    """Whether a text is part of each. One node."""
    return full_match(x, f"(?s:.*){quoted(value)}(?s:.*)")


def starts_with(x: Tensor, *values: str) -> Tensor:
    """Whether each begins with one of the texts. One node."""
    return full_match(x, f"(?:{'|'.join(map(quoted, values))})(?s:.*)")


def ends_with(x: Tensor, *values: str) -> Tensor:
    """Whether each ends with one of the texts. One node."""
    return full_match(x, f"(?s:.*)(?:{'|'.join(map(quoted, values))})")


def contains(x: Tensor, pattern: str, flags: int = 0, dialect: Dialect = "python") -> Tensor:
    """Whether a regular expression is found in each (`re.search`). One node."""
    return full_match(x, search(parse(pattern, flags, dialect), "contains"))


def matches(x: Tensor, pattern: str, flags: int = 0, dialect: Dialect = "python") -> Tensor:
    """Whether a regular expression is found at the start of each (`re.match`). One node."""
    return full_match(x, search(parse(pattern, flags, dialect), "match"))


def matches_all(x: Tensor, pattern: str, flags: int = 0, dialect: Dialect = "python") -> Tensor:
    """Whether a regular expression matches all of each (`re.fullmatch`). One node."""
    return full_match(x, search(parse(pattern, flags, dialect), "fullmatch"))


@cache
def _written(is_member: Callable[[str], bool]) -> str:
    return written(of_characters("".join(filter(is_member, all_characters()))))


def is_class(x: Tensor, kind: Class, is_member: Callable[[str], bool] | None = None) -> Tensor:
    """Whether each has characters, and only of a kind, as `str.isalpha` and the like say. One node.

    `is_member` says what of single characters, if it is not Python that is asked.
    """
    return full_match(x, f"{_written(is_member or getattr(str, f'is{kind}'))}{'*' if kind == 'ascii' else '+'}")


def is_upper(x: Tensor) -> Tensor:
    """`str.isupper`: some letter has a case, and none the other one. One node."""
    return full_match(x, _one_case(str.isupper, "A"))


def is_lower(x: Tensor) -> Tensor:
    """`str.islower`, likewise. One node."""
    return full_match(x, _one_case(str.islower, "a"))


@cache
def _one_case(test: Callable[[str], bool], letter: str) -> str:
    harmless = of_characters("".join(c for c in all_characters() if test(letter + c)))
    cased = of_characters("".join(filter(test, all_characters())))
    assert complement(harmless)
    return f"{written(harmless)}*{written(cased)}{written(harmless)}*"


def is_title(x: Tensor) -> Tensor:
    raise UnsupportedError("str.istitle cannot be said in ONNX: compare with a pattern instead, with str.match")
