"""Text ops whose helpers are named alike in every backend."""

from __future__ import annotations

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.spec.string import StringNormalizer, StringSplit


def string_split(e: Emitter, x: Expr, p: StringSplit) -> Unpack:
    return Unpack(ops.split_text(x, p.delimiter or None, **given(limit=p.maxsplit), **e.target.placed()))


def string_normalizer(e: Emitter, x: Expr, p: StringNormalizer) -> Expr:
    case = {"LOWER": "lower", "UPPER": "upper"}.get(p.case_change_action)
    words = sorted({w if p.is_case_sensitive else w.lower() for w in p.stopwords})
    return ops.normalize_text(x, case, words, bool(p.is_case_sensitive))


RULES: dict[str, Rule] = {"StringSplit": string_split, "StringNormalizer": string_normalizer}
