"""Missing values: filled in, and marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.tables import is_missing as no_value
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.table import Data
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def is_missing(op: Writer, model: Any, x: Tensor) -> Tensor:
    """Where a value is what the model takes for missing."""
    wanted = model.missing_values
    if x.dtype == ir.DataType.STRING:
        return op.Equal(x, op.strings(np.asarray(op.gap if no_value(wanted) else wanted, object)))
    return op.isnan(x) if no_value(wanted) else op.Equal(x, float(wanted))


def with_indicator(op: Writer, model: Any, filled: Tensor, x: Tensor) -> Tensor:
    """With marks for what was missing beside it, where these are asked for."""
    if not model.add_indicator:
        return filled
    marks = op.take(is_missing(op, model, x), model.indicator_.features_)
    return op.hstack([filled, marks.cast(op.real)])


@rule("SimpleImputer", as_given=True)
def simple(op: Writer, model: Any, x: Data) -> Outputs:
    given = op.plain(x)
    statistics = np.asarray(model.statistics_)
    if given.dtype == ir.DataType.STRING:
        if model.add_indicator:
            raise UnsupportedError("SimpleImputer: strings beside marks of missing values are not supported")
        replacement = op.strings(statistics.astype(object)[np.newaxis])
        return {"transform": op.Where(is_missing(op, model, given), replacement, given)}
    numbers = op.number(given)
    values = np.asarray([np.nan if no_value(item) else float(item) for item in statistics], np.float64)
    kept = np.arange(len(values)) if model.keep_empty_features else np.flatnonzero(~np.isnan(values))
    chosen = op.take(numbers, kept)
    filled = op.Where(is_missing(op, model, chosen), op.reals(values[kept]), chosen)
    return {"transform": with_indicator(op, model, filled, numbers)}


@rule("MissingIndicator", as_given=True)
def indicator(op: Writer, model: Any, x: Data) -> Outputs:
    return {"transform": op.take(is_missing(op, model, op.plain(x)), model.features_)}
