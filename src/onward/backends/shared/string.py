"""Text ops whose helpers are named alike in every backend."""

from __future__ import annotations

import re

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.errors import UnsupportedError
from onward.spec.string import RegexFullMatch, StringNormalizer, StringSplit, python_pattern


def string_split(e: Emitter, x: Expr, p: StringSplit) -> Unpack:
    return Unpack(ops.split_text(x, p.delimiter or None, **given(limit=p.maxsplit), **e.target.placed()))


def string_normalizer(e: Emitter, x: Expr, p: StringNormalizer) -> Expr:
    case = {"LOWER": "lower", "UPPER": "upper"}.get(p.case_change_action)
    words = sorted({w if p.is_case_sensitive else w.lower() for w in p.stopwords})
    return ops.normalize_text(x, case, words, bool(p.is_case_sensitive))


def string_concat(e: Emitter, a: Expr, b: Expr) -> Expr:
    """Of numpy's object arrays, whose sum is no array where both are single strings."""
    return a + b if (e.rank(a) or 0) + (e.rank(b) or 0) > 0 else ops.join_strings(a, b)


def pattern_of(p: RegexFullMatch) -> str:
    """The pattern in Python's syntax."""
    try:
        return python_pattern(p.pattern)
    except (re.error, ValueError) as error:
        raise UnsupportedError(f"the pattern {p.pattern!r} cannot be expressed in Python: {error}") from error


RULES: dict[str, Rule] = {"StringSplit": string_split, "StringNormalizer": string_normalizer}
