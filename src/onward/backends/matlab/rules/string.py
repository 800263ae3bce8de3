"""Text: strings are cell arrays of texts."""

from __future__ import annotations

from functools import cache

import numpy as np

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.matlab.patterns import matlab_pattern
from onward.backends.matlab.target import moves, ops
from onward.backends.shared.string import pattern_of
from onward.graph.origin import origin
from onward.spec.string import RegexFullMatch, StringNormalizer, StringSplit, TfIdfVectorizer

LETTERS = {"UPPER": str.upper, "LOWER": str.lower}


@cache
def letters(case: str) -> dict[int, int]:
    """The other case of each letter that has one, as codes of UTF-16: one letter for one, as ONNX Runtime has it."""
    pairs = ((code, LETTERS[case](chr(code))) for code in range(0x10000) if not 0xD800 <= code <= 0xDFFF)
    alone = {code: ord(other[0]) for code, other in pairs if len(other) == 1 or case == "LOWER"}
    return {code: other for code, other in alone.items() if code != other < 0x10000}


@moves("StringConcat")
def string_concat(e: Emitter, a: Expr, b: Expr) -> Expr:
    return ops.join_texts(a, b)


@moves("StringSplit")
def string_split(e: Emitter, x: Expr, p: StringSplit) -> Unpack:
    limit = -1 if p.maxsplit is None else p.maxsplit
    return Unpack(ops.split_text(x, p.delimiter or "", *([] if limit < 0 else [limit])))


@moves("StringNormalizer")
def string_normalizer(e: Emitter, x: Expr, p: StringNormalizer) -> Expr:
    """Without stop words, in another case; one empty text is left where nothing else is."""
    if p.stopwords:
        lower = letters("LOWER")
        words = p.stopwords if p.is_case_sensitive else [word.translate(lower) for word in p.stopwords]
        known = e.constant(np.array(sorted(set(words)), object), "stop_words")
        compared = x if p.is_case_sensitive else _changed(e, x, "LOWER")
        x = ops.drop_words(x, compared, known)
    changed = _changed(e, x, p.case_change_action) if p.case_change_action in LETTERS else x
    return changed if p.stopwords else ops.some_text(changed)


def _changed(e: Emitter, x: Expr, case: str) -> Expr:
    """Texts in upper or lower case."""
    known = letters(case)
    given, other = (np.array(codes, np.uint16) for codes in (list(known), list(known.values())))
    return ops.change_letters(x, e.constant(given, "letters"), e.constant(other, case.lower()))


@moves("RegexFullMatch")
def regex_full_match(e: Emitter, x: Expr, p: RegexFullMatch) -> Expr:
    found = matlab_pattern(pattern_of(p), str(origin(e.node)))
    return ~Name("cellfun")("isempty", Name("regexp")(x, found, "once", "emptymatch"))


@moves("TfIdfVectorizer")
def tf_idf_vectorizer(e: Emitter, x: Expr, p: TfIdfVectorizer) -> Expr:
    words, places = np.unique(p.pool, return_inverse=True)
    found = ops.count_ngrams(
        x,
        e.constant(words, "words"),
        e.constant(places.reshape(-1).astype(np.int32) + 1, "ngrams"),
        list(p.counts),
        e.constant(p.columns.astype(np.int32) + 1, "columns"),
        p.lengths,
        p.max_skip_count,
    )
    found = Name("min")(found, 1) if p.once else found
    return found if p.weights is None else found * e.constant(p.weights, "weights")
