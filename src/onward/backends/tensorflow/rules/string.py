"""Text: strings are `tf.string` tensors."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.string import RULES
from onward.backends.tensorflow.target import TARGET, ops, rule, tf
from onward.spec.string import RegexFullMatch, TfIdfVectorizer

TARGET.rules.take(RULES)


@rule("StringConcat")
def string_concat(e: Emitter, a: Expr, b: Expr) -> Expr:
    return a + b


@rule("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, p: RegexFullMatch) -> Expr:
    return tf.strings.regex_full_match(x, p.pattern)


@rule("TfIdfVectorizer")
def tf_idf_vectorizer(e: Emitter, x: Expr, p: TfIdfVectorizer) -> Expr:
    pool, columns = e.constant(p.pool, "pool"), e.constant(p.columns, "ngram_indexes")
    counts, width = [*p.counts, len(p.pool)], int(p.columns.max()) + 1
    found = ops.count_ngrams(x, pool, counts, columns, width, p.lengths, p.max_skip_count)
    found = tf.minimum(found, 1.0) if p.once else found
    return found if p.weights is None else found * e.constant(p.weights, "weights")
