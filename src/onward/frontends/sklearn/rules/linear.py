"""Linear models: regression and classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


@rule(
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV", "Lasso"),
    *("LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "LinearSVR", "MultiTaskElasticNet"),
    *("MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "OrthogonalMatchingPursuit"),
    *("OrthogonalMatchingPursuitCV", "PassiveAggressiveRegressor", "QuantileRegressor", "Ridge", "RidgeCV"),
    *("SGDRegressor", "TheilSenRegressor"),
)
def linear_regression(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"predict": op.linear(x, model.coef_, model.intercept_)}


@rule("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
def generalized(op: Writer, model: Any, x: Tensor) -> Outputs:
    raw = op.linear(x, model.coef_, model.intercept_)
    link = type(model._base_loss.link).__name__
    if link not in ("LogLink", "IdentityLink"):
        raise UnsupportedError(f"{type(model).__name__}: the link function {link} has no rule")
    return {"predict": op.Exp(raw) if link == "LogLink" else raw}


@rule("CCA", "PLSCanonical", "PLSRegression")
def partial_least_squares(op: Writer, model: Any, x: Tensor) -> Outputs:
    centered = x - op.reals(model._x_mean)
    found = op.linear(centered, model.coef_, model.intercept_)
    turned = op.MatMul(centered / op.reals(model._x_std), op.reals(model.x_rotations_))
    return {"predict": op.flat(found) if model._predict_1d else found, "transform": turned}


@rule("PLSSVD")
def svd_of_both(op: Writer, model: Any, x: Tensor) -> Outputs:
    scaled = (x - op.reals(model._x_mean)) / op.reals(model._x_std)
    return {"transform": op.MatMul(scaled, op.reals(model.x_weights_))}


@rule("SGDOneClassSVM")
def one_class(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = op.flat(op.linear(x, np.atleast_2d(model.coef_), -np.asarray(model.offset_)))
    return {"predict": op.sign(scores), "decision_function": scores}


def decided(op: Writer, model: Any, scores: Tensor) -> Outputs:
    """Labels by scores: of a vector whether they are positive, of a matrix the largest."""
    index = (scores > 0).cast(op.index(0).dtype) if scores.rank == 1 else op.argmax(scores)
    return {"predict": op.labels(model.classes_, index), "decision_function": scores}


def scores_of(op: Writer, model: Any, x: Tensor) -> Tensor:
    """Of two classes a vector, of more a matrix."""
    found = op.linear(x, np.atleast_2d(model.coef_), model.intercept_)
    return op.flat(found) if found.dims is not None and found.dims[1] == 1 else found


@rule("LinearSVC", "PassiveAggressiveClassifier", "Perceptron")
def linear_classifier(op: Writer, model: Any, x: Tensor) -> Outputs:
    return decided(op, model, scores_of(op, model, x))


@rule("RidgeClassifier", "RidgeClassifierCV")
def ridge_classifier(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = scores_of(op, model, x)
    if model._label_binarizer.y_type_.startswith("multilabel"):
        return {"predict": (scores > 0).cast(op.index(0).dtype), "decision_function": scores}
    return decided(op, model, scores)


@rule("LinearDiscriminantAnalysis")
def linear_discriminant(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = scores_of(op, model, x)
    found = decided(op, model, scores) | {"predict_proba": softmax_or_sigmoid(op, scores)}
    if model.solver == "lsqr":
        return found
    centered = x - op.reals(model.xbar_) if model.solver == "svd" else x
    scalings = np.asarray(model.scalings_)[:, : model._max_components]
    return found | {"transform": op.MatMul(centered, op.reals(scalings))}


@rule("LogisticRegression", "LogisticRegressionCV")
def logistic(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = scores_of(op, model, x)
    by_class = scores.rank == 2 and getattr(model, "multi_class", "deprecated") == "ovr"
    chances = shares(op, op.sigmoid(scores)) if by_class else softmax_or_sigmoid(op, scores)
    return decided(op, model, scores) | {"predict_proba": chances}


def softmax_or_sigmoid(op: Writer, scores: Tensor) -> Tensor:
    return op.pair(op.sigmoid(scores)) if scores.rank == 1 else op.Softmax(scores, axis=1)


def shares(op: Writer, weights: Tensor) -> Tensor:
    """Each row by its sum, or equal where all are 0."""
    total = op.sum(weights, [1])
    none = op.Equal(total, 0.0)
    filled = op.where(none, op.filled(weights, 1.0), weights)
    width = op.width(weights)
    return filled / op.where(none, float(width), total)


@rule("SGDClassifier")
def stochastic(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = scores_of(op, model, x)
    found = decided(op, model, scores)
    if model.loss not in ("log_loss", "modified_huber"):
        return found
    is_logistic = model.loss == "log_loss"
    chance = op.sigmoid(scores) if is_logistic else (op.Clip(scores, -1.0, 1.0) + 1.0) / 2.0
    return found | {"predict_proba": op.pair(chance) if scores.rank == 1 else shares(op, chance)}


@rule("QuadraticDiscriminantAnalysis")
def quadratic_discriminant(op: Writer, model: Any, x: Tensor) -> Outputs:
    norms = []
    for rotation, scaling, mean in zip(model.rotations_, model.scalings_, model.means_, strict=True):
        turned = op.MatMul(x - op.reals(mean), op.reals(rotation * scaling**-0.5))
        norms.append(op.sum(turned * turned, [1]))
    logs = [np.sum(np.log(scaling)) for scaling in model.scalings_]
    scores = op.hstack(norms) * -0.5 + op.reals(np.log(model.priors_) - 0.5 * np.asarray(logs))
    found = {"predict": op.labels(model.classes_, op.argmax(scores)), "predict_proba": op.Softmax(scores, axis=1)}
    if len(model.classes_) == 2:
        scores = op.flat(op.take(scores, [1]) - op.take(scores, [0]))
    return found | {"decision_function": scores}
