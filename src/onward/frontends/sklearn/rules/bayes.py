"""Naive Bayes, and mixtures of Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def _classified(op: Writer, model: Any, joint: Tensor) -> Outputs:
    return {"predict": op.labels(model.classes_, op.argmax(joint)), "predict_proba": op.Softmax(joint, axis=1)}


@rule("GaussianNB")
def gaussian(op: Writer, model: Any, x: Tensor) -> Outputs:
    parts = []
    for theta, var in zip(model.theta_, model.var_, strict=True):
        off = x - op.reals(theta)
        parts.append(op.sum(off * off / op.reals(var), [1]))
    fixed = np.log(model.class_prior_) - 0.5 * np.sum(np.log(2.0 * np.pi * model.var_), axis=1)
    return _classified(op, model, op.hstack(parts) * -0.5 + op.reals(fixed))


@rule("MultinomialNB")
def multinomial(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _classified(op, model, op.linear(x, model.feature_log_prob_, model.class_log_prior_))


@rule("ComplementNB")
def complement(op: Writer, model: Any, x: Tensor) -> Outputs:
    prior = model.class_log_prior_ if len(model.classes_) == 1 else 0.0
    return _classified(op, model, op.linear(x, model.feature_log_prob_, prior))


@rule("BernoulliNB")
def bernoulli(op: Writer, model: Any, x: Tensor) -> Outputs:
    if model.binarize is not None:
        x = (x > float(model.binarize)).cast(op.real)
    negative = np.log(1 - np.exp(model.feature_log_prob_))
    fixed = model.class_log_prior_ + negative.sum(axis=1)
    return _classified(op, model, op.linear(x, model.feature_log_prob_ - negative, fixed))


@rule("CategoricalNB")
def categorical(op: Writer, model: Any, x: Tensor) -> Outputs:
    parts = []
    for i, table in enumerate(model.feature_log_prob_):
        index = op.flat(op.take(x, [i])).cast(ir.DataType.INT64)
        parts.append(op.Gather(op.reals(table.T), index, axis=0))
    return _classified(op, model, op.total(parts) + op.reals(model.class_log_prior_))


@rule("GaussianMixture", "BayesianGaussianMixture")
def mixture(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = _log_gaussian(op, model, x)
    if type(model).__name__ == "GaussianMixture":
        fixed = np.log(model.weights_)
    else:
        fixed = model._estimate_log_weights() + _expected_determinant(model)
    joint = scores + op.reals(fixed)
    return {"predict": op.argmax(joint), "predict_proba": op.Softmax(joint, axis=1)}


def _expected_determinant(model: Any) -> Any:
    """What the Bayesian mixture adds to the log density of each component."""
    from scipy.special import digamma

    features = model.means_.shape[1]
    degrees = np.asarray(model.degrees_of_freedom_)
    lambda_ = features * np.log(2.0) + digamma(0.5 * (degrees - np.arange(features)[:, np.newaxis])).sum(0)
    return 0.5 * (lambda_ - features / model.mean_precision_) - 0.5 * features * np.log(degrees)


def _log_gaussian(op: Writer, model: Any, x: Tensor) -> Tensor:
    """The log density of each component, by the Cholesky factors of their precisions."""
    means, factors = np.asarray(model.means_), np.asarray(model.precisions_cholesky_)
    count, features = means.shape
    if model.covariance_type in ("full", "tied"):
        if model.covariance_type == "tied":
            factors = np.broadcast_to(factors, (count, features, features))
        logs = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(1)
        turned = [
            op.MatMul(x, op.reals(f)) - op.reals((m @ f)[np.newaxis]) for m, f in zip(means, factors, strict=True)
        ]
    elif model.covariance_type in ("diag", "spherical"):
        factors = factors.reshape(count, -1) * np.ones((1, features))
        logs = np.log(factors).sum(1)
        turned = [(x - op.reals(m)) * op.reals(f) for m, f in zip(means, factors, strict=True)]
    else:
        raise UnsupportedError(f"covariance_type {model.covariance_type!r} has no rule")
    squares = op.hstack([op.sum(one * one, [1]) for one in turned])
    return squares * -0.5 + op.reals(logs - 0.5 * features * np.log(2 * np.pi))
