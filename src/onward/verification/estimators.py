"""Whether the ONNX model of an estimator gives what scikit-learn returns for the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.pandas import feeds as column_feeds
from onward.formats.dataframe.schema import schema_of
from onward.formats.sklearn import in_float32
from onward.formats.tables import feeds, is_frame
from onward.frontends.sklearn.convert import expected_of
from onward.model import Model
from onward.runners.calls import Outputs
from onward.runners.onnxruntime import prepare
from onward.verification.compare import compare, differences, measure


def differing(model: Model, estimator: Any, given: Any, methods: Sequence[str], expected: Outputs) -> list[str]:
    """In what the outputs on some rows differ from what scikit-learn returned for them.

    Where they do, they may still be as near as scikit-learn is to itself on rows that are off by rounding.
    """
    rounded_off = in_float32 if _has_float32(model) else dict[str, Any]
    found, wanted = rounded_off(prepare(model, "")(fed(model, given))), rounded_off(expected)
    if not differences(compare(wanted, found)):
        return []
    noise = measure(wanted, rounded_off(expected_of(estimator, _jittered(given), methods)))
    return differences(compare(wanted, found, noise))


def fed(model: Model, given: Any) -> dict[str, Any]:
    """Rows as the model takes them: by the columns that its metadata name, if it has such."""
    schema = schema_of(model.ir)
    if schema is None:
        return feeds(given)
    taken = {value.name for value in model.ir.graph.inputs}
    return {name: array for name, array in column_feeds(given, schema).items() if name in taken}


EXACT = {"Cast", "Identity", "TfIdfVectorizer"}
"""Ops whose results in float32 are exact: the last counts words."""


def _has_float32(model: Model) -> bool:
    """Whether a part is computed in float32, as by XGBoost: results are no nearer then, whatever dtype they have."""
    nodes = (node for node in model.ir.graph if node.op_type not in EXACT)
    return any(value.dtype == ir.DataType.FLOAT for node in nodes for value in node.outputs)


def _jittered(given: Any) -> Any:
    """The same rows, each number moved to one beside it."""
    if is_frame(given):
        floats = [name for name in given.columns if getattr(given[name].dtype, "kind", "") == "f"]
        return given.assign(**{name: np.nextafter(given[name], np.inf) for name in floats})
    return np.nextafter(given, np.inf, dtype=given.dtype) if given.dtype.kind == "f" else given
