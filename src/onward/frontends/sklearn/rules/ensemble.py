"""Estimators made of others: votes, stacks, bags, one for each class or each target."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.compose import score_of_second
from onward.frontends.sklearn.rules.kernels import one_against_rest, squared_distances
from onward.frontends.sklearn.rules.linear import decided
from onward.frontends.sklearn.table import Data
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def _shares(model: Any, count: int) -> list[float]:
    """The weights of the members, which add up to 1."""
    given = model._weights_not_none
    weights = np.ones(count) if given is None else np.asarray(given, np.float64)
    return [float(weight) for weight in weights / weights.sum()]


@rule("VotingRegressor", as_given=True)
def mean_vote(op: Writer, model: Any, x: Data) -> Outputs:
    parts = [op.column(op.predict(one, x)) for one in model.estimators_]
    shares = _shares(model, len(parts))
    mean = op.total([part * share for part, share in zip(parts, shares, strict=True)])
    return {"predict": op.flat(mean), "transform": op.hstack(parts)}


@rule("VotingClassifier", as_given=True)
def vote(op: Writer, model: Any, x: Data) -> Outputs:
    """Its members know classes by their numbers."""
    shares = _shares(model, len(model.estimators_))
    classes = model.le_.classes_
    if model.voting == "soft":
        parts = [op.method(one, "predict_proba", x) for one in model.estimators_]
        chances = op.total([part * share for part, share in zip(parts, shares, strict=True)])
        found = {"predict": op.labels(classes, op.argmax(chances)), "predict_proba": chances}
        return found | ({"transform": op.hstack(parts)} if model.flatten_transform else {})
    columns = [op.column(op.predict(one, x)) for one in model.estimators_]
    numbers = op.ints(range(len(classes)))
    parts = [op.Equal(one, numbers).cast(op.real) * share for one, share in zip(columns, shares, strict=True)]
    return {"predict": op.labels(classes, op.argmax(op.total(parts))), "transform": op.hstack(columns)}


@rule("StackingClassifier", "StackingRegressor", as_given=True)
def stacked(op: Writer, model: Any, x: Data) -> Outputs:
    encoders = getattr(model, "_label_encoder", None)
    if isinstance(encoders, list):
        raise UnsupportedError("StackingClassifier of several labels has no rule")
    parts = []
    for one, method in zip(model.estimators_, model.stack_method_, strict=True):
        part = op.column(op.number(op.method(one, method, x)))
        binary = method == "predict_proba" and len(model.classes_) == 2
        parts.append(op.take(part, [1]) if binary else part)
    if model.passthrough:
        parts.append(op.matrix(x))
    features = op.hstack(parts)
    found = op.outputs(model.final_estimator_, features) | {"transform": features}
    if encoders is None:
        return found
    return found | {"predict": op.labels(encoders.classes_, found["predict"].cast(ir.DataType.INT64))}


def _bags(op: Writer, model: Any, x: Tensor) -> list[tuple[Any, Tensor]]:
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    return [(one, op.take(x, features)) for one, features in pairs]


@rule("BaggingRegressor")
def bagged_regression(op: Writer, model: Any, x: Tensor) -> Outputs:
    parts = [op.predict(one, part) for one, part in _bags(op, model, x)]
    return {"predict": op.total(parts) / float(len(parts))}


@rule("BaggingClassifier")
def bagged_classification(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Members know classes by their numbers, and may not have seen all of them."""
    count = len(model.classes_)
    bags = _bags(op, model, x)
    parts = []
    for one, part in bags:
        if hasattr(one, "predict_proba"):
            places = np.eye(count)[np.asarray(one.classes_, int)]
            chances = op.method(one, "predict_proba", part)
            parts.append(chances if len(places) == count else op.MatMul(chances, op.reals(places)))
        else:
            parts.append(op.Equal(op.column(op.predict(one, part)), op.ints(range(count))).cast(op.real))
    chances = op.total(parts) / float(len(parts))
    found = {"predict": op.labels(model.classes_, op.argmax(chances)), "predict_proba": chances}
    if not hasattr(model, "decision_function"):
        return found
    scores = op.total([op.method(one, "decision_function", part) for one, part in bags]) / float(len(bags))
    return found | {"decision_function": scores}


@rule("AdaBoostClassifier")
def boosted_classes(op: Writer, model: Any, x: Tensor) -> Outputs:
    count = model.n_classes_
    if count == 1:
        raise UnsupportedError("AdaBoostClassifier of a single class has no rule")
    parts = []
    for one, weight in zip(model.estimators_, np.asarray(model.estimator_weights_), strict=False):
        label = op.column(op.predict(one, x))
        same = _same(op, label, model.classes_)
        parts.append(op.where(same, op.reals(weight), op.reals(-weight / (count - 1))))
    scores = op.total(parts) / float(np.sum(model.estimator_weights_))
    if count == 2:
        scores = op.flat(op.take(scores, [1]) - op.take(scores, [0]))
        logits = op.hstack([-op.column(scores), op.column(scores)]) / 2.0
    else:
        logits = scores / float(count - 1)
    return decided(op, model, scores) | {"predict_proba": op.Softmax(logits, axis=1)}


def _same(op: Writer, label: Tensor, classes: Any) -> Tensor:
    return op.Equal(label, op.listed(classes))


@rule("AdaBoostRegressor")
def boosted_median(op: Writer, model: Any, x: Tensor) -> Outputs:
    """The median of its members' predictions by their weights."""
    values = op.hstack([op.column(op.predict(one, x)) for one in model.estimators_])
    count = len(model.estimators_)
    ordered, index = op.many("TopK", 2, values, op.ints([count]), largest=0, sorted=1, axis=1)
    weights = op.Gather(op.reals(np.asarray(model.estimator_weights_)[:count]), index, axis=0)
    upto = op.CumSum(weights, op.index(1))
    half = op.GreaterOrEqual(upto, op.take(upto, [count - 1]) * 0.5)
    place = op.ArgMax(half.cast(op.real), axis=1, keepdims=1)
    return {"predict": op.flat(op.GatherElements(ordered, place, axis=1))}


BY_SCORE = ["decision_function", "predict_proba"]


@rule("_ConstantPredictor")
def constant(op: Writer, model: Any, x: Tensor) -> Outputs:
    value = op.flat(op.filled(op.take(x, [0]), float(np.asarray(model.y_).reshape(-1)[0])))
    return {"predict": value, "decision_function": value, "predict_proba": op.pair(value)}


def _binary(op: Writer, model: Any, x: Data) -> tuple[Tensor, float]:
    """The score of the second of two classes, and what it has to exceed."""
    score, used = score_of_second(op, model, x, BY_SCORE)
    return op.flat(score), 0.5 if used != "decision_function" else 0.0


@rule("OneVsRestClassifier")
def one_for_each(op: Writer, model: Any, x: Tensor) -> Outputs:
    pairs = [_binary(op, one, x) for one in model.estimators_]
    scores = op.hstack([op.column(score) for score, _ in pairs])
    kind = model.label_binarizer_.y_type_
    found: Outputs = {}
    if kind == "multiclass":
        found["predict"] = op.labels(model.classes_, op.argmax(scores))
    else:
        over = (scores > pairs[0][1]).cast(ir.DataType.INT64)
        found["predict"] = over if model.multilabel_ else op.labels(model.classes_, op.flat(over))
    if hasattr(model, "decision_function"):
        found["decision_function"] = op.flat(scores) if len(pairs) == 1 else scores
    if hasattr(model, "predict_proba"):
        second = [op.take(op.method(one, "predict_proba", x), [1]) for one in model.estimators_]
        chances = op.pair(second[0]) if len(second) == 1 else op.hstack(second)
        if not model.multilabel_:
            total = op.sum(chances, [1])
            chances = chances / op.where(op.Equal(total, 0.0), 1.0, total)
        found["predict_proba"] = chances
    return found


@rule("OneVsOneClassifier")
def one_for_each_pair(op: Writer, model: Any, x: Tensor) -> Outputs:
    if model.pairwise_indices_ is not None:
        raise UnsupportedError("OneVsOneClassifier of a precomputed kernel has no rule")
    count = len(model.classes_)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    scores = [_binary(op, one, x) for one in model.estimators_]
    won = op.hstack([op.column(op.number(op.predict(one, x))) for one in model.estimators_])
    found = one_against_rest(op, won, op.hstack([op.column(score) for score, _ in scores]), pairs, count)
    if count > 2:
        return {"predict": op.labels(model.classes_, op.argmax(found)), "decision_function": found}
    second = op.flat(op.take(found, [1]))
    index = (second > scores[0][1]).cast(ir.DataType.INT64)
    return {"predict": op.labels(model.classes_, index), "decision_function": second}


@rule("OutputCodeClassifier")
def by_codes(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = op.hstack([op.column(_binary(op, one, x)[0]) for one in model.estimators_])
    index = op.argmin(squared_distances(op, scores, model.code_book_))
    return {"predict": op.labels(model.classes_, index)}


@rule("MultiOutputRegressor")
def regressors(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"predict": op.hstack([op.column(op.predict(one, x)) for one in model.estimators_])}


@rule("MultiOutputClassifier")
def classifiers(op: Writer, model: Any, x: Tensor) -> Outputs:
    found = {"predict": op.hstack([op.column(op.predict(one, x)) for one in model.estimators_])}
    if hasattr(model, "predict_proba"):
        for i, one in enumerate(model.estimators_):
            found[f"predict_proba_{i}"] = op.method(one, "predict_proba", x)
    return found


@rule("ClassifierChain", "RegressorChain")
def chained(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Each member is given what those before it said."""
    method = getattr(model, "chain_method_", "predict")
    names = [name for name in ("predict", "predict_proba", "decision_function") if hasattr(model, name)]
    columns: dict[str, list[Tensor]] = {name: [] for name in names}
    said: list[Tensor] = []
    for one in model.estimators_:
        data = op.hstack([x, *said])
        said.append(op.column(op.number(_response(op, one, data, method))))
        for name in names:
            columns[name].append(op.column(op.number(_response(op, one, data, name))))
    back = np.argsort(model.order_)
    return {name: op.hstack([parts[i] for i in back]) for name, parts in columns.items()}


def _response(op: Writer, model: Any, x: Tensor, method: str) -> Tensor:
    found = op.method(model, method, x)
    return op.take(found, [1]) if method == "predict_proba" else found
