"""XGBoost models as ONNX models."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats.boosting import xgboost_file
from onward.formats.xgboost_model import parsed, reached
from onward.frontends.boosting.graph import begun, both, finished, flat
from onward.frontends.boosting.trees import BELOW, Array, Tree, changed, gathered, scores
from onward.frontends.opset import brought_to
from onward.graph.build import Builder, Tensor
from onward.model import Model


class Link(NamedTuple):
    """How an objective makes predictions of margins."""

    predict: Callable[[Builder, Tensor], Tensor]
    margin: Callable[[Array], Array] = lambda base: base
    """The margin of the base score, which is given as a prediction."""


def _logit(base: Array) -> Array:
    return -np.log(1 / base - 1)


def _first_best(op: Builder, margins: Tensor) -> Tensor:
    return op.ArgMax(margins, axis=1, keepdims=0).cast(margins.dtype)


SAME = Link(lambda op, margins: margins)
LOGISTIC = Link(lambda op, margins: op.Sigmoid(margins), _logit)
LOG = Link(lambda op, margins: op.Exp(margins), np.log)
LINKS = {
    "binary:hinge": Link(lambda op, margins: (margins > 0).cast(margins.dtype)),
    "binary:logistic": LOGISTIC,
    "binary:logitraw": SAME,
    "count:poisson": LOG,
    "multi:softmax": Link(_first_best),
    "multi:softprob": Link(lambda op, margins: op.Softmax(margins, axis=1)),
    "reg:gamma": LOG,
    "reg:logistic": LOGISTIC,
    "reg:tweedie": LOG,
    "survival:aft": LOG,
    "survival:cox": LOG,
    **dict.fromkeys(("rank:map", "rank:ndcg", "rank:pairwise"), SAME),
    **dict.fromkeys(("reg:absoluteerror", "reg:linear", "reg:pseudohubererror", "reg:quantileerror"), SAME),
    **dict.fromkeys(("reg:squarederror", "reg:squaredlogerror"), SAME),
}


def converted(model: Any, raw: bool, dtype: npt.DTypeLike, opset: int) -> tuple[Model, Any]:
    """The ONNX model, and the booster or the estimator that it is of."""
    booster, estimator = _opened(model)
    made = brought_to(opset, _written(model, booster, estimator, raw, dtype, opset))
    return made, booster if estimator is None else estimator


def _written(model: Any, booster: Any, estimator: Any, raw: bool, dtype: npt.DTypeLike, opset: int) -> Model:
    try:
        learner = parsed(booster.save_raw(raw_format="ubj"))["learner"]
    except ValueError as error:
        raise InvalidModelError("the XGBoost model is not fitted") from error
    op, x = begun(model, booster.num_features(), dtype, opset)
    rows = x.cast(ir.DataType.FLOAT)
    missing = getattr(estimator, "missing", None)
    if missing is not None and not np.isnan(missing):
        rows = op.where(op.Equal(rows, float(missing)), float("nan"), rows)
    best = None if estimator is None else _best(estimator)
    if learner["gradient_booster"]["name"] == "gblinear":
        margins = _linear(op, rows, booster, learner["gradient_booster"]["model"])
    else:
        margins = _margins(op, rows, learner, best)
    if raw:
        return finished(op, prediction=flat(op, margins))
    prediction = flat(op, _link(learner).predict(op, margins))
    if not _is_classifier(estimator):
        return finished(op, prediction=prediction)
    return finished(op, **_classified(op, prediction, margins, estimator))


def _opened(model: Any) -> tuple[Any, Any]:
    """The booster, and the estimator that it belongs to, if there is one."""
    if isinstance(model, str | os.PathLike):
        return xgboost_file(pathlib.Path(model)), None
    import xgboost

    if isinstance(model, xgboost.Booster):
        return model, None
    if not isinstance(model, xgboost.XGBModel):
        raise OnwardError(
            f"from_xgboost takes a Booster, an estimator of XGBoost or a path, not {type(model).__name__}"
        )
    if not model.__sklearn_is_fitted__():
        raise InvalidModelError("the XGBoost model is not fitted")
    return model.get_booster(), model


def _is_classifier(estimator: Any) -> bool:
    import xgboost

    return isinstance(estimator, xgboost.XGBClassifier)


def _best(estimator: Any) -> int | None:
    """The iteration that training was stopped for, after which estimators use no trees."""
    try:
        return int(estimator.best_iteration)
    except AttributeError:
        return None


def _link(learner: Mapping[str, Any]) -> Link:
    objective = learner["objective"]["name"]
    if objective not in LINKS:
        raise UnsupportedError(
            f"the objective {objective} is not supported: how it turns margins into predictions is not known"
        )
    return LINKS[objective]


def _linear(op: Builder, x: Tensor, booster: Any, model: Mapping[str, Any]) -> Tensor:
    """The margins of a linear model, to which missing values are zeros.

    What a row of nothing gets is asked of XGBoost, which adds to every class the base score of the first.
    """
    import xgboost

    features = booster.num_features()
    nothing = xgboost.DMatrix(np.full((1, features), np.nan, np.float32))
    start = booster.predict(nothing, output_margin=True, validate_features=False).reshape(1, -1)
    weights = np.asarray(model["weights"], np.float32).reshape(features + 1, -1)[:-1]
    return op.where(op.IsNaN(x), 0.0, x) @ op.constant(weights) + op.constant(start)


def _margins(op: Builder, x: Tensor, learner: Mapping[str, Any], best: int | None) -> Tensor:
    parameters, booster = learner["learner_model_param"], learner["gradient_booster"]
    targets = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    base = np.asarray(json.loads(parameters["base_score"]), np.float64).reshape(-1)
    base = np.broadcast_to(_link(learner).margin(base), targets).astype(np.float32)
    trees = _trees(booster, best)
    if not trees:
        raise InvalidModelError("the XGBoost model has no trees")
    categorical = {int(tree.feature[node]) for tree in trees for node in tree.sets}
    x = changed(op, x, categorical, op.Floor)
    total = gathered(op, x, trees, BELOW) if trees[0].values.ndim > 1 else scores(op, x, trees, BELOW, targets)
    return total + op.constant(base)


def _trees(booster: Mapping[str, Any], best: int | None) -> list[Tree]:
    """The trees, those of a dart booster weighted."""
    dart = booster["name"] == "dart"
    model = booster["gbtree"]["model"] if dart else booster["model"]
    count = len(model["trees"]) if best is None else model["iteration_indptr"][best + 1]
    weights = booster["weight_drop"] if dart else [1.0] * count
    parts = zip(model["trees"][:count], model["tree_info"], weights, strict=False)
    return [_tree(tree, target, weight) for tree, target, weight in parts]


def _tree(tree: Mapping[str, Any], target: int, weight: float) -> Tree:
    left, right = np.asarray(tree["left_children"]), np.asarray(tree["right_children"])
    kept = reached(left, right)
    is_leaf, is_inner = kept & (left < 0), kept & (left >= 0)
    place = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(is_inner) - 1)
    values = _values(tree, is_leaf) * np.float32(weight)
    if is_leaf[0]:
        return Tree.leaf(values[:1], target)
    inner = np.flatnonzero(is_inner)
    sets = _sets(tree, place, is_inner)
    passed, failed = place[left[inner]], place[right[inner]]
    missing = np.asarray(tree["default_left"], bool)[inner]
    asks = np.isin(np.arange(len(inner)), list(sets))
    return Tree(
        np.asarray(tree["split_indices"])[inner],
        np.where(asks, 0, np.asarray(tree["split_conditions"], np.float32)[inner]),
        missing ^ asks,
        np.where(asks, failed, passed),
        np.where(asks, passed, failed),
        values,
        sets,
        target,
    )


def _values(tree: Mapping[str, Any], is_leaf: Array) -> Array:
    """What the leaves give; a leaf of vectors says in `right_children` which row of `leaf_weights` is its own."""
    size = int(tree["tree_param"]["size_leaf_vector"])
    if size <= 1:
        rows, values = np.flatnonzero(is_leaf), np.asarray(tree["split_conditions"], np.float32)
    elif "leaf_weights" in tree:
        rows, values = np.asarray(tree["right_children"])[is_leaf], np.asarray(tree["leaf_weights"], np.float32)
    else:
        rows, values = np.flatnonzero(is_leaf), np.asarray(tree["base_weights"], np.float32)
    return values.reshape(-1, size)[rows] if size > 1 else values[rows]


def _sets(tree: Mapping[str, Any], place: Array, inner: Array) -> dict[int, Array]:
    """The categories that go right at each node that asks for one; all others go left."""
    categories = np.asarray(tree["categories"], np.int64)
    parts = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    return {int(place[node]): np.sort(categories[start : start + size]) for node, start, size in parts if inner[node]}


def _classified(op: Builder, prediction: Tensor, margins: Tensor, estimator: Any) -> dict[str, Tensor]:
    """Labels and probabilities, as the estimator makes them of predictions."""
    if estimator.objective == "multi:softmax":
        return {"label": prediction.cast(ir.DataType.INT32), "probabilities": op.Softmax(margins, axis=1)}
    if prediction.rank == 1:
        return {"label": (prediction > 0.5).cast(ir.DataType.INT64), "probabilities": both(op, prediction)}
    if estimator.n_classes_ == 2:
        return {"label": (prediction > 0.5).cast(ir.DataType.DOUBLE), "probabilities": prediction}
    return {"label": op.ArgMax(prediction, axis=1, keepdims=0), "probabilities": prediction}
