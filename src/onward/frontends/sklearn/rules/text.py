"""Words of texts, counted.

Texts are cut by ONNX Runtime's own Tokenizer, as no op of ONNX cuts by a pattern.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.scale import normalized
from onward.frontends.sklearn.table import Data
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor

LETTER = r"[\p{L}\p{N}_]"
PATTERNS = {r"(?u)\b\w\w+\b": f"{LETTER}{{2,}}", r"(?u)\b\w+\b": f"{LETTER}+", r"\S+": r"[^\s]+"}
"""Patterns of scikit-learn, as the Tokenizer takes them: its letters are those of English unless it is told."""
PAD = "\x00"
"""Fills up short texts; no word holds it."""
WORD = "word"
"""What stands in the row that is added."""
LOCALE = "C.UTF-8"
"""By which letters are made small: of any language, and there on every Linux."""


@rule("CountVectorizer", as_given=True)
def counts(op: Writer, model: Any, x: Data) -> Outputs:
    return {"transform": _counted(op, model, _texts(op, x))}


@rule("TfidfVectorizer", as_given=True)
def weighted_counts(op: Writer, model: Any, x: Data) -> Outputs:
    return op.outputs(model._tfidf, _counted(op, model, _texts(op, x)))


def _texts(op: Writer, x: Data) -> Tensor:
    text = op.plain(x)
    if text.dtype != ir.DataType.STRING:
        raise UnsupportedError(f"{op.scope.rstrip('/')} is given numbers, where it takes texts")
    return op.flat(text)


def _counted(op: Writer, model: Any, text: Tensor) -> Tensor:
    """How often each term of the vocabulary is in each text."""
    _check(model)
    # Neither op below takes no rows, or rows without any word: one more row is added, and left out again.
    text = op.Concat(text, op.strings(np.asarray([WORD], object)), axis=0)
    if model.lowercase:
        text = op.StringNormalizer(text, case_change_action="LOWER", is_case_sensitive=1, locale=LOCALE)
    pattern = "." if model.analyzer == "char" else PATTERNS[model.token_pattern]
    op.model.opset_imports["com.microsoft"] = 1
    words = op.many(
        *("Tokenizer", 1, text), domain="com.microsoft", mark=0, mincharnum=1, pad_value=PAD, tokenexp=pattern
    )[0]
    terms = [(_split(model, term), int(index)) for term, index in model.vocabulary_.items()]
    low, high = model.ngram_range
    pool: list[str] = []
    starts, indices = [], []
    for size in range(1, high + 1):
        starts.append(len(pool))
        for parts, index in terms:
            if len(parts) == size:
                pool += parts
                indices.append(index)
    found = op.TfIdfVectorizer(
        words,
        mode="TF",
        min_gram_length=low,
        max_gram_length=high,
        max_skip_count=0,
        ngram_counts=starts,
        ngram_indexes=indices,
        pool_strings=pool,
    )
    found = op.Slice(found, op.ints([0]), op.ints([-1]), op.ints([0]))
    found.value.shape = ir.Shape([None, len(terms)])
    number = found.cast(op.real)
    return op.Min(number, op.reals(1.0)) if model.binary else number


def _split(model: Any, term: str) -> list[str]:
    return list(term) if model.analyzer == "char" else term.split(" ")


def _check(model: Any) -> None:
    name = type(model).__name__
    for option in ("preprocessor", "tokenizer", "strip_accents"):
        if getattr(model, option) is not None:
            raise UnsupportedError(f"{name}: its {option} has no rule")
    if model.analyzer not in ("word", "char"):
        raise UnsupportedError(f"{name}: the analyzer {model.analyzer!r} has no rule; 'word' and 'char' have")
    if model.analyzer == "word" and model.token_pattern not in PATTERNS:
        raise UnsupportedError(f"{name}: the token_pattern {model.token_pattern!r} has no rule; {list(PATTERNS)} have")
    if model.analyzer == "word" and model.stop_words is not None and model.ngram_range[1] > 1:
        raise UnsupportedError(f"{name}: several words together, around those that are left out, have no rule")


@rule("TfidfTransformer")
def weights(op: Writer, model: Any, x: Tensor) -> Outputs:
    if model.sublinear_tf:
        some = x > 0
        x = op.where(some, op.Log(op.where(some, x, 1.0)) + 1.0, 0.0)
    if model.use_idf:
        x = x * op.reals(np.asarray(model.idf_))
    return {"transform": x if model.norm is None else normalized(op, x, model.norm)}
