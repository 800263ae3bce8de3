"""Is something in a text, and of what is a text made: answered by one RegexFullMatch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.pattern_sets import (
    Dialect,
    Ranges,
    all_characters,
    all_codes,
    of_mask,
    written,
)
from onward.frontends.dataframe.tensors.text.patterns import Pattern, literal, parse, re2, search
from onward.frontends.dataframe.tensors.text.text import full_match
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


def is_class(x: Tensor, kind: Class, dialect: Dialect = "python") -> Tensor:
    """Whether each has characters, and only of a kind, as `str.isalpha` and the like say. One node.

    "arrow" asks PyArrow what belongs to a kind, as pandas does; it is not quite what Python says.
    """
    return full_match(x, f"{written(_members(kind, dialect, ''))}{'*' if kind == 'ascii' else '+'}")


def is_upper(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """`str.isupper`: some letter has a case, and none the other one. One node."""
    return full_match(x, _one_case("upper", dialect, "A"))


def is_lower(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """`str.islower`, likewise. One node."""
    return full_match(x, _one_case("lower", dialect, "a"))


@cache
def _arrow_characters() -> Any:
    import pyarrow

    codes = all_codes()
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    buffers = [pyarrow.py_buffer(data) for data in (ends.tobytes(), all_characters().encode())]
    return pyarrow.StringArray.from_buffers(len(codes), *buffers)


@cache
def _members(kind: str, dialect: Dialect, before: str) -> Ranges:
    """The characters of a kind, with a text before them."""
    if dialect != "arrow":
        texts: Iterable[str] = (before + c for c in all_characters()) if before else all_characters()
        return of_mask(np.fromiter(map(getattr(str, f"is{kind}"), texts), bool, len(all_characters())))
    import pyarrow.compute

    letters = _arrow_characters()
    if before:
        letters = pyarrow.compute.binary_join_element_wise(before, letters, "")
    name = "string_is_ascii" if kind == "ascii" else f"utf8_is_{kind}"
    return of_mask(getattr(pyarrow.compute, name)(letters).to_numpy(zero_copy_only=False))


@cache
def _one_case(kind: str, dialect: Dialect, letter: str) -> str:
    harmless = written(_members(kind, dialect, letter))
    return f"{harmless}*{written(_members(kind, dialect, ''))}{harmless}*"


def is_title(x: Tensor) -> Tensor:
    raise UnsupportedError("str.istitle cannot be said in ONNX: compare with a pattern instead, with str.match")
