"""Encoders and maps: tables from keys to values, one-hot, maps to tensors and back."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Literal
from onward.backends.jax.target import TARGET, dtype, ops, rule
from onward.backends.shared.ml_encode import RULES, element_of_map
from onward.spec.ml_encode import CastMap, DictVectorizer, ZipMap, either

TARGET.rules.take({name: found for name, found in RULES.items() if name != "ai.onnx.ml::ZipMap"})


@rule("ai.onnx.ml::ZipMap")
def zip_map(e: Emitter, x: Expr, p: ZipMap) -> Expr:
    return ops.zip_map(x, either(p.classlabels_int64s, p.classlabels_strings).tolist())


@rule("ai.onnx.ml::DictVectorizer")
def dict_vectorizer(e: Emitter, x: Expr, p: DictVectorizer) -> Expr:
    vocabulary = either(p.int64_vocabulary, p.string_vocabulary).tolist()
    return ops.vectorize_map(x, vocabulary, _dtype(element_of_map(e, x)))


@rule("ai.onnx.ml::CastMap")
def cast_map(e: Emitter, x: Expr, p: CastMap) -> Expr:
    return ops.cast_map(x, _dtype(p.to), **given(size=p.size))


def _dtype(of: ir.DataType | int) -> Expr:
    """None for text."""
    return Literal(None) if of == ir.DataType.STRING else dtype(of)
