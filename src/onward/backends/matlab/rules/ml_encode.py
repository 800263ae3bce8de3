"""Encoders and maps: tables from keys to values, one-hot, maps to tensors and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name, lift
from onward.backends.emit.expr import Sequence as Display
from onward.backends.matlab.target import moves, ops
from onward.spec.ml_encode import OneHotEncoder, Table, either, is_text


@moves("ai.onnx.ml::LabelEncoder", "ai.onnx.ml::CategoryMapper")
def look_up(e: Emitter, x: Expr, p: Table) -> Expr:
    first = list({_same(key): i for i, key in reversed(list(enumerate(p.keys.tolist())))}.values())
    keys, values = e.constant(p.keys[first], "keys"), e.constant(p.values[first], "values")
    default: Any = Display((lift(str(p.default)),), "{}") if is_text(p.values) else lift(p.default)
    return ops.look_up(x, keys, values, default)


def _same(key: Any) -> Any:
    """What equal keys have in common: NaN is one key."""
    return "NaN" if key != key else key


@moves("ai.onnx.ml::OneHotEncoder")
def one_hot_encoder(e: Emitter, x: Expr, p: OneHotEncoder) -> Expr:
    """Of equal categories the last one counts."""
    categories = either(p.cats_int64s, p.cats_strings)
    last = {category: i for i, category in enumerate(categories.tolist())}
    known = e.constant(categories[list(last.values())], "categories")
    places = e.constant(np.array(list(last.values()), np.int32) + 1, "places")
    wanted = x if is_text(categories) or e.dtype(x) == ir.DataType.INT64 else ops.to_integer(x, "int64")
    index = ops.look_up(wanted, known, places, 0)
    if not p.zeros:
        index = ops.all_known(index)
    return Name("single")(ops.indicator(index, len(categories)))
