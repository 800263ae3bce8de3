"""Text: strings are numpy object arrays."""

from __future__ import annotations

import re

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.string import RULES
from onward.backends.torch.target import TARGET, ops, rule
from onward.errors import UnsupportedError
from onward.spec.string import RegexFullMatch, TfIdfVectorizer, python_pattern

TARGET.rules.take(RULES)


@rule("StringConcat")
def string_concat(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a + b if (e.rank(a) or 0) + (e.rank(b) or 0) > 0 else ops.join_strings(a, b)


@rule("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, p: RegexFullMatch) -> Expr:
    try:
        translated = python_pattern(p.pattern)
    except (re.error, ValueError) as error:
        raise UnsupportedError(f"the pattern {p.pattern!r} cannot be expressed in Python: {error}") from error
    return ops.full_match(x, translated, device=e.device)


@rule("TfIdfVectorizer")
def tf_idf_vectorizer(e: Emitter, x: Expr, p: TfIdfVectorizer) -> Expr:
    pool, columns = e.constant(p.pool, "pool"), e.constant(p.columns, "ngram_indexes")
    found = ops.count_ngrams(x, pool, list(p.counts), columns, p.lengths, p.max_skip_count, device=e.device)
    found = found.clamp(max=1) if p.once else found
    return found if p.weights is None else found * e.constant(p.weights, "weights")
