"""Encoders and maps: tables from keys to values, one-hot, maps to tensors and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared import ml_encode as encoders
from onward.backends.tensorflow.target import dtype, ops, rule, tf

Array = np.ndarray[Any, Any]


@rule("ai.onnx.ml::LabelEncoder")
def label_encoder(e: Emitter, x: Expr, **given: Any) -> Expr:
    return encoders.label_encoder(e, x, tf.gather, **given)


@rule("ai.onnx.ml::CategoryMapper")
def category_mapper(e: Emitter, x: Expr, **given: Any) -> Expr:
    return encoders.category_mapper(e, x, tf.gather, **given)


@rule("ai.onnx.ml::OneHotEncoder")
def one_hot_encoder(e: Emitter, x: Expr, **given: Any) -> Expr:
    return encoders.one_hot_encoder(e, x, **given)


@rule("ai.onnx.ml::DictVectorizer")
def dict_vectorizer(
    e: Emitter, x: Expr, *, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> Expr:
    words: Array = np.array(int64_vocabulary) if int64_vocabulary else np.array(list(string_vocabulary), object)
    kind = encoders.element_of_map(e, x)
    vocabulary = e.constant(words, "vocabulary")
    return ops.vectorize_map(x, vocabulary, dtype(kind))


@rule("ai.onnx.ml::CastMap")
def cast_map(e: Emitter, x: Expr, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Expr:
    size = {} if map_form == "DENSE" else {"size": max_map}
    kinds = {"TO_STRING": ir.DataType.STRING, "TO_FLOAT": ir.DataType.FLOAT}
    return ops.cast_map(x, dtype(kinds.get(cast_to, ir.DataType.INT64)), **size)


@rule("ai.onnx.ml::ZipMap")
def zip_map(
    e: Emitter, x: Expr, *, classlabels_int64s: Sequence[int] = (), classlabels_strings: Sequence[str] = ()
) -> Expr:
    strings = np.array(list(classlabels_strings), object)
    return ops.zip_map(x, e.constant(strings if len(strings) else np.array(classlabels_int64s, np.int64), "labels"))
