"""Text: strings are `tf.string` tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import ops, rule, tf
from onward.spec.string import column_weights


@rule("StringConcat")
def string_concat(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a + b


@rule("StringSplit")
def string_split(e: Emitter, x: Expr, *, delimiter: str | None = None, maxsplit: int | None = None) -> Unpack:
    options = {} if maxsplit is None else {"limit": maxsplit}
    return Unpack(ops.split_text(x, delimiter or None, **options))


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
    return ops.normalize_text(x, case, list(words), bool(is_case_sensitive))


@rule("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, *, pattern: str) -> Expr:
    return tf.strings.regex_full_match(x, pattern)


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
    counts = ops.count_ngrams(
        x,
        e.constant(pool, "pool"),
        [*ngram_counts, len(pool)],
        e.constant(np.array(ngram_indexes, dtype=np.int64), "ngram_indexes"),
        max(ngram_indexes) + 1,
        (min_gram_length, max_gram_length),
        max_skip_count,
    )
    if mode == "IDF":
        counts = tf.minimum(counts, 1.0)
    if mode == "TF" or not weights:
        return counts
    return counts * e.constant(column_weights(ngram_indexes, weights), "weights")
