"""LightGBM models as ONNX models."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats.boosting import lightgbm_file
from onward.frontends.boosting.graph import begun, both, finished, flat, labelled
from onward.frontends.boosting.lightgbm_text import ZERO, Forest, Linear, read
from onward.frontends.boosting.trees import AT_MOST, Array, changed, reached, scores
from onward.frontends.decompose.special import log1p
from onward.frontends.opset import brought_to
from onward.graph.build import Builder, Tensor
from onward.model import Model

Link = Callable[[Builder, Tensor, Mapping[str, str]], Tensor]
"""How an objective with these options makes predictions of scores."""


def _same(op: Builder, score: Tensor, options: Mapping[str, str]) -> Tensor:
    return score


def _exp(op: Builder, score: Tensor, options: Mapping[str, str]) -> Tensor:
    return op.Exp(score)


def _sigmoid(op: Builder, score: Tensor, options: Mapping[str, str]) -> Tensor:
    slope = float(options.get("sigmoid", 1))
    return op.Sigmoid(score if slope == 1 else score * slope)


def _maybe_squared(op: Builder, score: Tensor, options: Mapping[str, str]) -> Tensor:
    return op.Sign(score) * score * score if "sqrt" in options else score


def _softplus(op: Builder, score: Tensor, options: Mapping[str, str]) -> Tensor:
    """`log(1 + exp(score))`; ONNX Runtime has Softplus in float32 only."""
    return op.Max(score, 0.0) + log1p(op, op.Exp(-op.Abs(score)))


LINKS: dict[str, Link] = {
    "": _same,
    "binary": _sigmoid,
    "cross_entropy": _sigmoid,
    "cross_entropy_lambda": _softplus,
    "multiclass": lambda op, score, options: op.Softmax(score, axis=1),
    "multiclassova": _sigmoid,
    **dict.fromkeys(("gamma", "poisson", "tweedie"), _exp),
    **dict.fromkeys(("fair", "huber", "mape", "quantile"), _same),
    **dict.fromkeys(("lambdarank", "rank_xendcg"), _same),
    **dict.fromkeys(("regression", "regression_l1"), _maybe_squared),
}


def converted(model: Any, raw: bool, dtype: npt.DTypeLike, opset: int) -> tuple[Model, Any]:
    """The ONNX model, and the booster or the estimator that it is of."""
    booster, estimator = _opened(model)
    made = brought_to(opset, _written(model, booster, estimator, raw, dtype, opset))
    return made, booster if estimator is None else estimator


def _written(model: Any, booster: Any, estimator: Any, raw: bool, dtype: npt.DTypeLike, opset: int) -> Model:
    forest = read(booster.model_to_string())
    op, x = begun(model, forest.features, dtype, opset)
    total = _scores(op, x, forest)
    if raw:
        return finished(op, prediction=flat(op, total))
    if forest.is_average:
        total = total / (len(forest.trees) // forest.targets)
    if forest.objective not in LINKS:
        raise UnsupportedError(
            f"the objective {forest.objective} is not supported: how it turns scores into predictions is not known"
        )
    prediction = flat(op, LINKS[forest.objective](op, total, forest.options))
    if not _is_classifier(estimator) or not forest.objective:
        return finished(op, prediction=prediction)
    probabilities = both(op, prediction) if prediction.rank == 1 else prediction
    best = op.ArgMax(probabilities, axis=1, keepdims=0)
    return finished(op, label=labelled(op, best, np.asarray(estimator.classes_)), probabilities=probabilities)


def _opened(model: Any) -> tuple[Any, Any]:
    """The booster, and the estimator that it belongs to, if there is one."""
    if isinstance(model, str | os.PathLike):
        return lightgbm_file(pathlib.Path(model)), None
    import lightgbm

    if isinstance(model, lightgbm.Booster):
        return model, None
    if not isinstance(model, lightgbm.LGBMModel):
        kind = type(model).__name__
        raise OnwardError(f"from_lightgbm takes a Booster, an estimator of LightGBM or a path, not {kind}")
    if not model.__sklearn_is_fitted__():
        raise InvalidModelError("the LightGBM model is not fitted")
    return model.booster_, model


def _is_classifier(estimator: Any) -> bool:
    import lightgbm

    return isinstance(estimator, lightgbm.LGBMClassifier)


def _scores(op: Builder, x: Tensor, forest: Forest) -> Tensor:
    """What the trees give together: (rows, targets)."""
    rows = changed(op, x, forest.zero_is_missing, lambda x: op.where(op.Abs(x) <= ZERO, float("nan"), x))
    rows = changed(op, rows, forest.categorical, lambda x: op.Sign(x) * op.Floor(op.Abs(x)))
    trees = forest.trees
    if x.dtype == ir.DataType.FLOAT:
        trees = [replace(tree, threshold=_rounded_down(tree.threshold)) for tree in trees]
    if forest.linear is None:
        return scores(op, rows, trees, AT_MOST, forest.targets)
    found = _linear_values(op, x, reached(op, rows, trees, AT_MOST), len(trees), forest.linear)
    rounds = len(trees) // forest.targets
    return op.sum(op.Reshape(found, op.ints([0, rounds, forest.targets])), [1], keepdims=False)


def _rounded_down(thresholds: Array) -> Array:
    """The largest numbers of float32 that are not above: no number of float32 lies between."""
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)


def _linear_values(op: Builder, x: Tensor, leaves: Tensor, trees: int, linear: Linear) -> Tensor:
    """What the functions at the leaves that were reached give: (rows, trees).

    All leaves get as many terms as the one that has most; those added read a column of zeros.
    """
    dtype = x.dtype.numpy()
    most = max(map(len, linear.features))
    zeros = (x.dims or [0])[-1]
    features = np.full((len(linear.features), most), zeros, np.int64)
    coefficients = np.zeros(features.shape, dtype)
    for row, (own, factors) in enumerate(zip(linear.features, linear.coefficients, strict=True)):
        features[row, : len(own)], coefficients[row, : len(own)] = own, factors
    constant = op.Gather(op.constant(linear.constants.astype(dtype)), leaves)
    if not most:
        return constant
    padded = op.Pad(x, op.ints([0, 0, 0, 1]))
    columns = op.Gather(op.constant(features), leaves)
    flat_columns = op.Reshape(columns, op.ints([0, trees * most]))
    given = op.Reshape(op.GatherElements(padded, flat_columns, axis=1), op.ints([0, trees, most]))
    terms = op.Gather(op.constant(coefficients), leaves) * given
    is_missing = op.ReduceMax(op.IsNaN(given).cast(x.dtype), op.ints([2]), keepdims=0) > 0
    value = op.Gather(op.constant(linear.values.astype(dtype)), leaves)
    return op.Where(is_missing, value, constant + op.sum(terms, [2], keepdims=False))
