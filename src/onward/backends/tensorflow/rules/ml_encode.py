"""Encoders and maps: tables from keys to values, one-hot, maps to tensors and back."""

from __future__ import annotations

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.ml_encode import RULES, element_of_map
from onward.backends.tensorflow.target import TARGET, dtype, ops, rule
from onward.spec.ml_encode import CastMap, DictVectorizer, either

TARGET.rules.take(RULES)


@rule("ai.onnx.ml::DictVectorizer")
def dict_vectorizer(e: Emitter, x: Expr, p: DictVectorizer) -> Expr:
    vocabulary = e.constant(either(p.int64_vocabulary, p.string_vocabulary), "vocabulary")
    return ops.vectorize_map(x, vocabulary, dtype(element_of_map(e, x)))


@rule("ai.onnx.ml::CastMap")
def cast_map(e: Emitter, x: Expr, p: CastMap) -> Expr:
    return ops.cast_map(x, dtype(p.to), **given(size=p.size))
