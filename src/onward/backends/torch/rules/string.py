"""Text: strings are numpy object arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, lift
from onward.backends.torch.target import ops, rule
from onward.errors import UnsupportedError
from onward.spec.string import column_weights, python_pattern


@rule("StringConcat")
def string_concat(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a + b if (e.rank(a) or 0) + (e.rank(b) or 0) > 0 else ops.join_strings(a, b)


@rule("StringSplit")
def string_split(e: Emitter, x: Expr, *, delimiter: str | None = None, maxsplit: int | None = None) -> Unpack:
    options = {} if maxsplit is None else {"limit": maxsplit}
    return Unpack(ops.split_text(x, delimiter or None, **options, device=e.device))


@rule("StringNormalizer")
def string_normalizer(
    e: Emitter,
    x: Expr,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: Sequence[str] = (),
) -> Expr:
    case = {"LOWER": "lower", "UPPER": "upper"}.get(case_change_action)
    words = sorted({w if is_case_sensitive else w.lower() for w in stopwords})
    return ops.normalize_text(x, case, lift(list(words)), bool(is_case_sensitive))


@rule("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, *, pattern: str) -> Expr:
    try:
        translated = python_pattern(pattern)
    except (re.error, ValueError) as error:
        raise UnsupportedError(f"the pattern {pattern!r} cannot be expressed in Python: {error}") from error
    return ops.full_match(x, translated, device=e.device)


@rule("TfIdfVectorizer")
def tf_idf_vectorizer(
    e: Emitter,
    x: Expr,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> Expr:
    pool = np.array(pool_strings, dtype=object) if pool_strings else np.array(pool_int64s, dtype=np.int64)
    lengths = min_gram_length, max_gram_length
    counts = ops.count_ngrams(
        x,
        e.constant(pool, "pool"),
        list(ngram_counts),
        e.constant(np.array(ngram_indexes, dtype=np.int64), "ngram_indexes"),
        lengths,
        max_skip_count,
        device=e.device,
    )
    if mode == "IDF":
        counts = counts.clamp(max=1)
    if mode == "TF" or not weights:
        return counts
    return counts * e.constant(column_weights(ngram_indexes, weights), "weights")
