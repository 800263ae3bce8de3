"""Pipelines, unions, columns apart, and estimators that wrap another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.function import function_of
from onward.frontends.sklearn.table import Data, Table
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


@rule("Pipeline", as_given=True)
def pipeline(op: Writer, model: Any, x: Data) -> Mapping[str, Data]:
    *steps, (_, last) = model.steps
    for _, step in steps:
        if step is not None and step != "passthrough":
            x = op.passed(step, x)
    return {"transform": x} if last is None or last == "passthrough" else op.results(last, x)


@rule("FeatureUnion", as_given=True)
def union(op: Writer, model: Any, x: Data) -> Mapping[str, Data]:
    weights = model.transformer_weights or {}
    parts: list[Data] = []
    for name, one in model.transformer_list:
        if isinstance(one, str) and one == "drop":
            continue
        part = x if isinstance(one, str) else op.passed(one, x)
        parts.append(_weighted(op, part, weights.get(name)))
    return {"transform": _beside(op, model, x, parts)}


@rule("ColumnTransformer", as_given=True)
def by_columns(op: Writer, model: Any, x: Data) -> Mapping[str, Data]:
    weights = model.transformer_weights or {}
    parts: list[Data] = []
    for name, one, wanted in model.transformers_:
        indices = [int(i) for i in model._transformer_to_input_indices[name]]
        if not indices or (isinstance(one, str) and one == "drop"):
            continue
        columns = _columns(op, model, x, indices)
        if np.isscalar(wanted) and not isinstance(wanted, bool):
            columns = _series(op, columns)
        part = columns if isinstance(one, str) else op.passed(one, columns)
        parts.append(_weighted(op, part, weights.get(name)))
    return {"transform": _beside(op, model, x, parts)}


def _columns(op: Writer, model: Any, x: Data, indices: list[int]) -> Data:
    """By name in a table, whose columns may be in another order than those it was fitted on."""
    names = getattr(model, "feature_names_in_", None)
    if not isinstance(x, Table) or names is None:
        return op.chosen(x, indices)
    return x.chosen([str(names[i]) for i in indices])


def _series(op: Writer, columns: Data) -> Data:
    """One column by itself."""
    if isinstance(columns, Table) and columns.rows is not None:
        return columns.chosen(columns.names, as_series=True)
    return op.flat(op.plain(columns))


def _weighted(op: Writer, part: Data, weight: float | None) -> Data:
    return part if weight is None else op.number(op.plain(part)) * float(weight)


def _beside(op: Writer, model: Any, x: Data, parts: list[Data]) -> Data:
    """A table where the transformer gives a data frame to a function on data frames, else one tensor."""
    return op.labelled(model, x, parts) if isinstance(x, Table) and x.rows is not None else op.joined(parts)


@rule("GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV", as_given=True)
def search(op: Writer, model: Any, x: Data) -> Mapping[str, Data]:
    return op.results(model.best_estimator_, x)


@rule("FrozenEstimator", as_given=True)
def frozen(op: Writer, model: Any, x: Data) -> Mapping[str, Data]:
    return op.results(model.estimator, x)


@rule("RANSACRegressor", "SelfTrainingClassifier")
def wrapped(op: Writer, model: Any, x: Tensor) -> Outputs:
    return op.outputs(model.estimator_, x)


@rule("TransformedTargetRegressor", as_given=True)
def transformed_target(op: Writer, model: Any, x: Data) -> Outputs:
    found = inverse(op, model.transformer_, op.column(op.predict(model.regressor_, x)))
    return {"predict": op.flat(found) if model._training_dim == 1 else found}


def inverse(op: Writer, model: Any, x: Tensor) -> Tensor:
    """What a transformer's inverse_transform returns."""
    name = type(model).__name__
    if name in ("StandardScaler", "RobustScaler", "MaxAbsScaler"):
        center = getattr(model, "mean_" if name == "StandardScaler" else "center_", None)
        scale = getattr(model, "scale_", None)
        x = x if scale is None else x * op.reals(scale)
        return x if center is None else x + op.reals(center)
    if name == "MinMaxScaler":
        return (x - op.reals(model.min_)) / op.reals(model.scale_)
    if name == "FunctionTransformer":
        if model.inverse_func is None:
            return x
        if model.inv_kw_args:
            raise UnsupportedError("FunctionTransformer: arguments of its function have no rule")
        found: Tensor = function_of(op, model.inverse_func)(x)
        return found
    if name == "PowerTransformer":
        x = inverse(op, model._scaler, x) if model.standardize else x
        return _power_inverse(op, model, x)
    if name == "Pipeline":
        for _, step in reversed(model.steps):
            x = x if step is None or isinstance(step, str) else inverse(op, step, x)
        return x
    raise UnsupportedError(f"the inverse of {name} has no rule")


def _power_inverse(op: Writer, model: Any, x: Tensor) -> Tensor:
    lambdas = np.asarray(model.lambdas_, np.float64)
    if model.method == "box-cox":
        return _root(op, x, lambdas)
    up = _root(op, op.Max(x, op.reals(0.0)), lambdas) - 1.0
    down = 1.0 - _root(op, op.Max(-x, op.reals(0.0)), 2.0 - lambdas)
    return op.Where(x >= 0, up, down)


def _root(op: Writer, x: Tensor, lambdas: Any) -> Tensor:
    """(1 + k x)^(1/k) by column, which is exp x for k = 0."""
    divisor = np.where(lambdas == 0, 1.0, lambdas)
    powers = op.Pow(x * op.reals(lambdas) + 1.0, op.reals(1.0 / divisor))
    return op.Where(op.constant(lambdas == 0), op.Exp(x), powers)


def score_of_second(op: Writer, model: Any, x: Data, names: list[str]) -> tuple[Tensor, str]:
    """The score of the second of two classes, by the first of these methods that the estimator has."""
    name = next((one for one in names if hasattr(model, one)), "predict")
    score = op.method(model, name, x)
    return (op.flat(op.take(score, [1])) if name == "predict_proba" else score), name


@rule("FixedThresholdClassifier", "TunedThresholdClassifierCV", as_given=True)
def threshold(op: Writer, model: Any, x: Data) -> Outputs:
    tuned = type(model).__name__ == "TunedThresholdClassifierCV"
    inner = getattr(model, "estimator_", model.estimator)
    wanted = model._get_response_method()
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    score, used = score_of_second(op, inner, x, names)
    positive = model._curve_scorer._get_pos_label() if tuned else model.pos_label
    first = positive is not None and positive == model.classes_[0]
    if first:
        score = 1.0 - score if used == "predict_proba" else -score
    limit = model.best_threshold_ if tuned else model.threshold
    if isinstance(limit, str):
        limit = 0.5 if used == "predict_proba" else 0.0
    index = (score >= float(limit)).cast(ir.DataType.INT64)
    classes = np.asarray(model.classes_)[::-1] if first else model.classes_
    return op.outputs(inner, x) | {"predict": op.labels(classes, index)}


@rule("CalibratedClassifierCV", as_given=True)
def calibrated(op: Writer, model: Any, x: Data) -> Outputs:
    parts = [_calibrated(op, one, x) for one in model.calibrated_classifiers_]
    chances = op.total(parts) / float(len(parts))
    return {"predict": op.labels(model.classes_, op.argmax(chances)), "predict_proba": chances}


def _calibrated(op: Writer, model: Any, x: Data) -> Tensor:
    from onward.frontends.sklearn.rules.interpolate import isotonic_column

    name = next(one for one in ("decision_function", "predict_proba") if hasattr(model.estimator, one))
    scores, count = op.method(model.estimator, name, x), len(model.classes)
    if count == 2 and name == "predict_proba":
        scores = op.take(scores, [1])
    scores = op.column(scores)
    if model.method == "temperature":
        return _tempered(op, model.calibrators[0], scores, name)
    parts: list[Tensor | None] = [None] * count
    own = [int(np.flatnonzero(np.asarray(model.classes) == label)[0]) for label in model.estimator.classes_]
    for i, calibrator in enumerate(model.calibrators):
        score = op.take(scores, [i])
        if type(calibrator).__name__ == "IsotonicRegression":
            part = isotonic_column(op, calibrator, score)
        else:
            part = op.sigmoid(-(score * float(calibrator.a_) + float(calibrator.b_)))
        parts[1 if count == 2 else own[i]] = part
    if count == 2:
        assert parts[1] is not None
        return op.pair(parts[1])
    joined = op.hstack([op.zeros_like(op.take(scores, [0])) if part is None else part for part in parts])
    total = op.sum(joined, [1])
    none = op.Equal(total, 0.0)
    return op.where(none, 1.0 / count, joined / op.where(none, 1.0, total))


def _tempered(op: Writer, calibrator: Any, scores: Tensor, name: str) -> Tensor:
    if op.width(scores) == 1:
        logits = op.pair(scores) if name == "predict_proba" else op.hstack([-scores, scores])
    else:
        logits = scores
    if name == "predict_proba":
        logits = op.Log(logits + 1e-12)
    return op.Softmax(logits * float(calibrator.beta_), axis=1)
