"""Categories and labels as numbers, and missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.tables import is_missing
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.table import Data
from onward.frontends.sklearn.writer import ML, Writer
from onward.graph.build import Tensor

Array = npt.NDArray[Any]


def codes(op: Writer, column: Tensor, categories: Any) -> Tensor:
    """Which of the categories each item is, or how many there are if it is none: int64, in the shape of the items."""
    known = list(categories)
    if column.dtype == ir.DataType.STRING:
        keys = [op.gap if is_missing(item) else item for item in known]
        if not all(isinstance(key, str) for key in keys):
            raise UnsupportedError(f"{op.scope.rstrip('/')}: strings are given, but the categories are numbers")
        if len(set(keys)) < len(keys):
            raise UnsupportedError(f"{op.scope.rstrip('/')}: missing and empty strings are two categories")
        numbers = ir.AttrInt64s("values_int64s", list(range(len(keys))))
        options = {"keys_strings": ir.AttrStrings("keys_strings", keys), "values_int64s": numbers}
        return op.many("LabelEncoder", 1, column, domain=ML, default_int64=len(keys), **options)[0]
    if any(isinstance(item, str) for item in known):
        raise UnsupportedError(f"{op.scope.rstrip('/')}: numbers are given, but the categories are strings")
    numbers_of = np.asarray([np.nan if is_missing(item) else float(item) for item in known], np.float64)
    item = op.Unsqueeze(op.number(column), op.ints([-1]))
    same = op.Equal(item, op.reals(numbers_of))
    if np.isnan(numbers_of).any():
        same = op.Or(same, op.And(op.isnan(item), op.constant(np.isnan(numbers_of))))
    last = op.filled(op.number(column), 0.5)
    marks = op.Concat(same.cast(op.real), op.Unsqueeze(last, op.ints([-1])), axis=-1)
    return op.ArgMax(marks, axis=-1, keepdims=0)


def looked_up(op: Writer, column: Tensor, categories: Any, rows: Array, unknown: Array) -> Tensor:
    """The row of each item's category, or the one for what is not known: (batch, width)."""
    table = np.concatenate([np.asarray(rows, np.float64), np.asarray(unknown, np.float64)[np.newaxis]])
    return op.Gather(op.reals(table), codes(op, op.flat(column), categories), axis=0)


@rule("OneHotEncoder", as_given=True)
def one_hot(op: Writer, model: Any, x: Data) -> Outputs:
    parts = []
    for i, (column, categories) in enumerate(zip(op.columns(x), model.categories_, strict=True)):
        groups, unknown = _groups(model, i)
        width = int(groups.max()) + 1 if len(groups) else 0
        rows = np.eye(width)[groups]
        other = np.zeros(width) if unknown is None else np.eye(width)[unknown]
        dropped = None if model._drop_idx_after_grouping is None else model._drop_idx_after_grouping[i]
        kept = [k for k in range(width) if k != dropped]
        parts.append(looked_up(op, column, categories, rows[:, kept], other[kept]))
    return {"transform": op.hstack(parts)}


def _groups(model: Any, i: int) -> tuple[Array, int | None]:
    """The group that each category of a column belongs to, and that of unknown ones, if they have one."""
    count = len(model.categories_[i])
    mapping = model._default_to_infrequent_mappings[i] if model._infrequent_enabled else None
    if mapping is None:
        return np.arange(count), None
    mapping = np.asarray(mapping)
    joins = model.handle_unknown in ("infrequent_if_exist", "warn")
    return mapping, int(mapping[model._infrequent_indices[i][0]]) if joins else None


@rule("OrdinalEncoder", as_given=True)
def ordinal(op: Writer, model: Any, x: Data) -> Outputs:
    parts = []
    for i, (column, categories) in enumerate(zip(op.columns(x), model.categories_, strict=True)):
        values = _groups(model, i)[0].astype(np.float64)
        if i in model._missing_indices:
            values[model._missing_indices[i]] = model.encoded_missing_value
        unknown = model.unknown_value if model.handle_unknown == "use_encoded_value" else 0.0
        parts.append(looked_up(op, column, categories, values[:, np.newaxis], np.asarray([unknown])))
    return {"transform": op.hstack(parts)}


@rule("TargetEncoder", as_given=True)
def by_target(op: Writer, model: Any, x: Data) -> Outputs:
    several = len(model.classes_) if model.target_type_ == "multiclass" else 1
    means = np.atleast_1d(np.asarray(model.target_mean_, np.float64))
    parts = []
    for i, (column, categories) in enumerate(zip(op.columns(x), model.categories_, strict=True)):
        rows = np.stack(model.encodings_[i * several : (i + 1) * several], axis=1)
        parts.append(looked_up(op, column, categories, rows, means))
    return {"transform": op.hstack(parts)}


@rule("LabelEncoder", as_given=True)
def label_encoder(op: Writer, model: Any, x: Data) -> Outputs:
    return {"transform": codes(op, _vector(op, x), model.classes_)}


@rule("LabelBinarizer", as_given=True)
def label_binarizer(op: Writer, model: Any, x: Data) -> Outputs:
    if model.y_type_.startswith("multilabel"):
        raise UnsupportedError("LabelBinarizer of several labels at once has no rule")
    found = op.column(codes(op, _vector(op, x), model.classes_))
    count = len(model.classes_)
    wanted = [1] if count == 2 else list(range(count))
    on, off = op.index(int(model.pos_label)), op.index(int(model.neg_label))
    return {"transform": op.Where(op.Equal(found, op.ints(wanted)), on, off)}


def _vector(op: Writer, x: Data) -> Tensor:
    return op.flat(op.columns(x)[0]) if not isinstance(x, Tensor) or x.rank == 2 else x
