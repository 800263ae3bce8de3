"""Neural networks, polynomials, and estimators that learn nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def _activated(op: Writer, name: str, x: Tensor) -> Tensor:
    if name == "identity":
        return x
    if name == "softmax":
        return op.Softmax(x, axis=1)
    ops = {"relu": op.Relu, "tanh": op.Tanh, "logistic": op.sigmoid, "exp": op.Exp}
    if name not in ops:
        raise UnsupportedError(f"the activation {name!r} has no rule")
    return ops[name](x)


def _forward(op: Writer, model: Any, x: Tensor) -> Tensor:
    last = len(model.coefs_) - 1
    for i, (weights, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        x = op.linear(x, np.asarray(weights).T, bias)
        x = _activated(op, model.out_activation_ if i == last else model.activation, x)
    return x


@rule("MLPRegressor")
def perceptron_regression(op: Writer, model: Any, x: Tensor) -> Outputs:
    found = _forward(op, model, x)
    return {"predict": op.flat(found) if model.n_outputs_ == 1 else found}


@rule("MLPClassifier")
def perceptron_classification(op: Writer, model: Any, x: Tensor) -> Outputs:
    chances = _forward(op, model, x)
    if model._label_binarizer.y_type_.startswith("multilabel"):
        return {"predict": (chances > 0.5).cast(ir.DataType.INT64), "predict_proba": chances}
    if model.n_outputs_ == 1:
        index = (op.flat(chances) > 0.5).cast(ir.DataType.INT64)
        return {"predict": op.labels(model.classes_, index), "predict_proba": op.pair(chances)}
    return {"predict": op.labels(model.classes_, op.argmax(chances)), "predict_proba": chances}


@rule("BernoulliRBM")
def boltzmann(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"transform": op.sigmoid(op.linear(x, model.components_, model.intercept_hidden_))}


@rule("PolynomialFeatures")
def polynomial(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Products of columns; a column of ones stands for factors that a product of lower degree has not."""
    powers = np.asarray(model.powers_)
    ones = powers.shape[1]
    degree = max(int(powers.sum(1).max()), 1)
    factors = np.full((len(powers), degree), ones)
    for row, counts in zip(factors, powers, strict=True):
        listed = np.repeat(np.arange(ones), counts)
        row[: len(listed)] = listed
    table = op.hstack([x, op.filled(op.take(x, [0]), 1.0)])
    found = op.take(table, factors[:, 0])
    for k in range(1, degree):
        found = found * op.take(table, factors[:, k])
    return {"transform": found}


@rule("DummyRegressor")
def constant_number(op: Writer, model: Any, x: Tensor) -> Outputs:
    row = op.constant(np.asarray(model.constant_).reshape(-1))
    found = op.repeated(row, x)
    return {"predict": op.flat(found) if model.n_outputs_ == 1 else found}


@rule("DummyClassifier")
def constant_class(op: Writer, model: Any, x: Tensor) -> Outputs:
    if model._strategy in ("stratified", "uniform"):
        raise UnsupportedError(f"DummyClassifier: the strategy {model._strategy!r} draws at random, which has no rule")
    several = model.n_outputs_ > 1
    classes = model.classes_ if several else [model.classes_]
    priors = model.class_prior_ if several else [model.class_prior_]
    constants = list(np.asarray(model.constant).reshape(-1)) if model._strategy == "constant" else [None] * len(classes)
    found: Outputs = {}
    labels = []
    for i, (known, prior, fixed) in enumerate(zip(classes, priors, constants, strict=True)):
        best = int(np.argmax(prior)) if fixed is None else int(np.flatnonzero(np.asarray(known) == fixed)[0])
        row = np.asarray(prior, np.float64) if model._strategy == "prior" else np.eye(len(known))[best]
        found[f"predict_proba_{i}" if several else "predict_proba"] = op.repeated(op.reals(row), x)
        labels.append(op.repeated(op.listed(np.asarray(known)[best : best + 1]), x))
    return found | {"predict": op.hstack(labels) if several else op.flat(labels[0])}
