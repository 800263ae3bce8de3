"""Gaussian processes and their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose.special import erf_series, erfc
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.kernels import exact_squares, kernel
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def covariance(op: Writer, form: Any, x: Tensor, points: Any) -> Tensor:
    """A kernel between every row and every point of the data it was fitted on, which are different points."""
    name = type(form).__name__
    if name in ("Sum", "Product"):
        first, second = (covariance(op, part, x, points) for part in (form.k1, form.k2))
        return first + second if name == "Sum" else first * second
    if name == "Exponentiation":
        return op.Pow(covariance(op, form.kernel, x, points), float(form.exponent))
    if name in ("ConstantKernel", "WhiteKernel"):
        constant = float(form.constant_value) if name == "ConstantKernel" else 0.0
        return op.repeated(op.reals(np.full(len(points), constant)), x)
    if name == "DotProduct":
        return op.MatMul(x, op.reals(np.asarray(points).T)) + float(form.sigma_0**2)
    if name == "PairwiseKernel":
        return kernel(op, x, points, form.metric, form.gamma, 3, 1)
    if name in ("RBF", "Matern"):
        scale = np.asarray(form.length_scale, np.float64)
        square = exact_squares(op, x / op.reals(scale), points / scale)
        return op.Exp(square * -0.5) if name == "RBF" else _matern(op, form.nu, square)
    if name == "RationalQuadratic":
        square = exact_squares(op, x, points)
        return op.Pow(square / float(2 * form.alpha * form.length_scale**2) + 1.0, -float(form.alpha))
    if name == "ExpSineSquared":
        wave = op.Sin(op.Sqrt(exact_squares(op, x, points)) * float(np.pi / form.periodicity)) / float(
            form.length_scale
        )
        return op.Exp(wave * wave * -2.0)
    raise UnsupportedError(f"the kernel {name} has no rule")


def _matern(op: Writer, nu: float, square: Tensor) -> Tensor:
    if nu == np.inf:
        return op.Exp(square * -0.5)
    if nu not in (0.5, 1.5, 2.5):
        raise UnsupportedError(f"the kernel Matern of nu={nu} has no rule; 0.5, 1.5, 2.5 and inf have")
    far = op.Sqrt(square) * float(np.sqrt(2 * nu))
    if nu == 0.5:
        return op.Exp(-far)
    factor = far + 1.0 if nu == 1.5 else far + 1.0 + far * far / 3.0
    return factor * op.Exp(-far)


def variance(op: Writer, form: Any, x: Tensor) -> Tensor:
    """A kernel of every row with itself: (batch, 1)."""
    name = type(form).__name__
    if name in ("Sum", "Product"):
        first, second = (variance(op, part, x) for part in (form.k1, form.k2))
        return first + second if name == "Sum" else first * second
    if name == "Exponentiation":
        return op.Pow(variance(op, form.kernel, x), float(form.exponent))
    if name == "DotProduct":
        return op.sum(x * x, [1]) + float(form.sigma_0**2)
    if name == "PairwiseKernel" and form.metric not in ("rbf", "laplacian", "cosine"):
        raise UnsupportedError(f"the variance of the kernel {form.metric!r} has no rule")
    constants = {"ConstantKernel": "constant_value", "WhiteKernel": "noise_level"}
    return op.filled(op.take(x, [0]), float(getattr(form, constants[name])) if name in constants else 1.0)


@rule("GaussianProcessRegressor")
def process_regression(op: Writer, model: Any, x: Tensor) -> Outputs:
    alpha = np.asarray(model.alpha_, np.float64)
    found = op.MatMul(covariance(op, model.kernel_, x, model.X_train_), op.reals(alpha.reshape(len(alpha), -1)))
    found = found * op.reals(model._y_train_std) + op.reals(model._y_train_mean)
    return {"predict": op.flat(found) if alpha.ndim == 1 or alpha.shape[1] == 1 else found}


@rule("GaussianProcessClassifier")
def process_classification(op: Writer, model: Any, x: Tensor) -> Outputs:
    return op.outputs(model.base_estimator_, x)


@rule("_BinaryGaussianProcessClassifierLaplace")
def binary_process(op: Writer, model: Any, x: Tensor) -> Outputs:
    """By Laplace's approximation; the logistic function is integrated as a sum of error functions."""
    from scipy.linalg import solve_triangular
    from sklearn.gaussian_process._gpc import COEFS, LAMBDAS

    near = covariance(op, model.kernel_, x, model.X_train_)
    mean = op.linear(near, (model.y_train_ - model.pi_)[np.newaxis], 0.0)
    spread = op.MatMul(near, op.reals(solve_triangular(model.L_, np.diag(model.W_sr_), lower=True).T))
    var = variance(op, model.kernel_, x) - op.sum(spread * spread, [1])
    alpha = 1.0 / (var * 2.0)
    lambdas = op.reals(LAMBDAS.T)
    scaled = op.Sqrt(alpha / (alpha + op.reals(LAMBDAS.T**2)))
    inner = mean * lambdas * scaled
    erf = op.Where(op.Abs(inner) < 2.0, erf_series(op, inner), 1.0 - erfc(op, inner))
    parts = op.Sqrt(float(np.pi) / alpha) * erf / (op.Sqrt(var * (2 * np.pi)) * 2.0)
    chance = op.sum(parts * op.reals(COEFS.T), [1]) + float(0.5 * COEFS.sum())
    index = (op.flat(mean) > 0).cast(ir.DataType.INT64)
    return {"predict": op.labels(model.classes_, index), "predict_proba": op.pair(chance)}
