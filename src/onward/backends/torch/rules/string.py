"""Text: strings are numpy object arrays."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.string import RULES, pattern_of, string_concat
from onward.backends.torch.target import TARGET, ops, rule
from onward.spec.string import RegexFullMatch, TfIdfVectorizer

TARGET.rules.take(RULES)
rule("StringConcat")(string_concat)


@rule("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, p: RegexFullMatch) -> Expr:
    return ops.full_match(x, pattern_of(p), device=e.device)


@rule("TfIdfVectorizer")
def tf_idf_vectorizer(e: Emitter, x: Expr, p: TfIdfVectorizer) -> Expr:
    pool, columns = e.constant(p.pool, "pool"), e.constant(p.columns, "ngram_indexes")
    found = ops.count_ngrams(x, pool, list(p.counts), columns, p.lengths, p.max_skip_count, device=e.device)
    found = found.clamp(max=1) if p.once else found
    return found if p.weights is None else found * e.constant(p.weights, "weights")
