"""Encoders of classical models: tables from keys to values, and one-hot.

The helpers that they call are named alike in every backend.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.errors import UnsupportedError
from onward.graph.origin import origin
from onward.hub.types import ForeignType
from onward.spec.ml_encode import OneHotEncoder, Table, ZipMap, either, is_text


def look_up(e: Emitter, x: Expr, p: Table) -> Expr:
    if is_text(p.keys):
        first = list({key: i for i, key in reversed(list(enumerate(p.keys)))}.values())
        keys, values = e.constant(p.keys[first], "keys"), e.constant(p.values[first], "values")
        return ops.look_up_strings(x, keys, values, p.default)
    ordered, places = np.unique(p.keys, return_index=True)
    known, found = e.constant(ordered, "keys"), p.values[places]
    if not is_text(p.values):
        return ops.look_up(x, known, e.constant(found, "values"), p.default)
    index = ops.look_up(x, known, e.constant(np.arange(len(ordered)), "values"), len(ordered))
    return e.target.pick_strings(e.constant(np.array([*found, p.default], object), "names"), index, e.node)


def one_hot_encoder(e: Emitter, x: Expr, p: OneHotEncoder) -> Expr:
    """Of equal categories the last one counts."""
    categories = either(p.cats_int64s, p.cats_strings)
    last = {category: i for i, category in enumerate(categories.tolist())}
    keep = np.isin(np.arange(len(categories)), list(last.values()))
    options = {} if p.zeros else {"strict": True}
    return ops.one_hot_of(x, e.constant(categories, "categories"), e.constant(keep, "keep"), **options)


def zip_map(e: Emitter, x: Expr, p: ZipMap) -> Expr:
    return ops.zip_map(x, e.constant(either(p.classlabels_int64s, p.classlabels_strings), "labels"))


def element_of_map(e: Emitter, x: Expr) -> ir.DataType:
    """The type of the values of a map."""
    found = e.type(x)
    if not isinstance(found, ForeignType) or not found.proto.HasField("map_type"):
        raise UnsupportedError(f"{origin(e.node)}: the type of its input is not known to be a map")
    return ir.DataType(found.proto.map_type.value_type.tensor_type.elem_type)


RULES: dict[str, Rule] = {
    "ai.onnx.ml::LabelEncoder": look_up,
    "ai.onnx.ml::CategoryMapper": look_up,
    "ai.onnx.ml::OneHotEncoder": one_hot_encoder,
    "ai.onnx.ml::ZipMap": zip_map,
}
