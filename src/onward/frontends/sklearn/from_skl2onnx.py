"""Estimators that have no rule here: the nodes that skl2onnx writes for them, or converters registered with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.advice.extras import require
from onward.errors import UnsupportedError
from onward.frontends.boosting import lightgbm, xgboost
from onward.frontends.sklearn.registry import Outputs, key_of, rule
from onward.frontends.sklearn.table import Data
from onward.frontends.sklearn.writer import ML, Writer
from onward.graph.build import Tensor
from onward.model import load

BOOSTED = {
    "lightgbm": ("LGBMClassifier", "LGBMRanker", "LGBMRegressor"),
    "xgboost": ("XGBClassifier", "XGBRFClassifier", "XGBRFRegressor", "XGBRanker", "XGBRegressor"),
}


def _boosted(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Boosted trees, which have a frontend of their own."""
    convert = xgboost.converted if key_of(model).startswith("xgboost") else lightgbm.converted

    def graph_of(raw: bool) -> ir.Graph:
        return convert(model, raw, np.float64, op.model.opset_imports[""])[0].ir.graph

    graph = graph_of(raw=False)
    named = zip((value.name for value in graph.outputs), _copied(op, graph, x), strict=True)
    found = {OUTPUTS[name or ""]: tensor for name, tensor in named}
    if hasattr(model, "decision_function"):
        (found["decision_function"],) = _copied(op, graph_of(raw=True), x)
    return found


OUTPUTS = {"label": "predict", "prediction": "predict", "probabilities": "predict_proba"}

for _package, _names in BOOSTED.items():
    rule(*_names, package=_package)(_boosted)

REFUSED = {
    "DictVectorizer": "it takes dictionaries, which are no tensors; OneHotEncoder takes columns",
    "FeatureHasher": "its features are hashes, which ONNX has no op for",
    "HashingVectorizer": "its features are hashes of words, which ONNX has no op for; CountVectorizer has a rule",
    "MultiLabelBinarizer": "it takes sets of labels, which are no tensors",
}
"""Estimators that ONNX cannot have, and why."""


def refuse(estimator: Any) -> None:
    name = type(estimator).__name__
    if name in REFUSED:
        raise UnsupportedError(f"{name} cannot be converted: {REFUSED[name]}")


def from_skl2onnx(op: Writer, estimator: Any, x: Data) -> Outputs:
    require("skl2onnx", what=type(estimator).__name__)
    from skl2onnx import convert_sklearn
    from skl2onnx._supported_operators import sklearn_operator_name_map
    from skl2onnx.common import data_types as kinds
    from skl2onnx.common._registration import _converter_pool

    name = type(estimator).__name__
    refuse(estimator)
    alias = sklearn_operator_name_map.get(type(estimator))
    if alias is None or alias not in _converter_pool:
        raise UnsupportedError(f"{name} has no rule here, and no converter registered with skl2onnx")
    tensor = x if isinstance(x, Tensor) and x.dtype == ir.DataType.STRING else op.matrix(x)
    strings = tensor.dtype == ir.DataType.STRING
    if strings and tensor.rank == 1:
        tensor = op.column(tensor)
    kind = kinds.StringTensorType if strings else kinds.DoubleTensorType
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proto = convert_sklearn(
                estimator,
                initial_types=[("X", kind([None, op.width(tensor)]))],
                options=options,
                target_opset={"": op.model.opset_imports[""], ML: 3},
            )
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnsupportedError(f"{name}: skl2onnx does not convert it: {reason}") from error
    found = _copied(op, load(proto).ir.graph, tensor)
    if len(found) == 1:
        return {("predict" if hasattr(estimator, "predict") else "transform"): found[0]}
    second = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    return {"predict": found[0], second: found[1]}


def _copied(op: Writer, graph: ir.Graph, x: Tensor) -> list[Tensor]:
    """The nodes of a graph of one input, written again."""
    values: dict[ir.Value, Tensor] = {graph.inputs[0]: x}
    for value in graph.initializers.values():
        constant = value.const_value
        assert constant is not None
        strings = constant.dtype == ir.DataType.STRING
        values[value] = op.strings(constant.numpy()) if strings else op.constant(constant.numpy(), constant.dtype)
    for node in graph:
        inputs = [None if value is None else values[value] for value in node.inputs]
        made = op.many(node.op_type, len(node.outputs), *inputs, domain=node.domain, **node.attributes)
        values |= zip(node.outputs, made, strict=True)
    return [values[value] for value in graph.outputs]
