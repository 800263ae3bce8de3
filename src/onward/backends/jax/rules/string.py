"""Text: strings are numpy object arrays, which `jax.jit` does not take."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.numbers import is_string
from onward.backends.jax.target import TARGET, jnp, ops, rule
from onward.backends.shared.string import RULES, pattern_of, string_concat
from onward.spec.string import RegexFullMatch, TfIdfVectorizer

TARGET.rules.take(RULES)
rule("StringConcat")(string_concat)


@rule("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, p: RegexFullMatch) -> Expr:
    return jnp.asarray(ops.matches(x, pattern_of(p)))


@rule("TfIdfVectorizer")
def tf_idf_vectorizer(e: Emitter, x: Expr, p: TfIdfVectorizer) -> Expr:
    pool, columns = e.constant(p.pool, "pool"), e.constant(p.columns, "ngram_indexes")
    if is_string(e, x):
        counts = ops.ngram_counts(x, pool, list(p.counts), columns, p.lengths, p.max_skip_count)
        found = jnp.asarray(counts)
    else:
        starts, width = [*p.counts, len(p.pool)], int(p.columns.max()) + 1
        found = ops.count_ngrams(x, pool, starts, columns, width, p.lengths, p.max_skip_count)
    found = jnp.minimum(found, 1) if p.once else found
    return found if p.weights is None else found * e.constant(p.weights, "weights")
