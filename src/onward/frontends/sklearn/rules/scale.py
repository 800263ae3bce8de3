"""Scalers and other transformations of each number by itself, and feature selection."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.frontends.decompose.special import expm1, ndtri
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.interpolate import interpolated
from onward.frontends.sklearn.table import Data
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


@rule("StandardScaler")
def standard(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {
        "transform": scaled(op, x, model.mean_ if model.with_mean else None, model.scale_ if model.with_std else None)
    }


@rule("RobustScaler")
def robust(op: Writer, model: Any, x: Tensor) -> Outputs:
    center, scale = model.center_ if model.with_centering else None, model.scale_ if model.with_scaling else None
    return {"transform": scaled(op, x, center, scale)}


@rule("MaxAbsScaler")
def max_abs(op: Writer, model: Any, x: Tensor) -> Outputs:
    found = scaled(op, x, None, model.scale_)
    return {"transform": op.Clip(found, -1.0, 1.0) if getattr(model, "clip", False) else found}


def scaled(op: Writer, x: Tensor, center: Any, scale: Any) -> Tensor:
    if center is not None:
        x = x - op.reals(center)
    return x if scale is None else x / op.reals(scale)


@rule("MinMaxScaler")
def min_max(op: Writer, model: Any, x: Tensor) -> Outputs:
    found = x * op.reals(model.scale_) + op.reals(model.min_)
    if model.clip:
        low, high = (float(bound) for bound in model.feature_range)
        found = op.Clip(found, low, high)
    return {"transform": found}


@rule("Binarizer")
def binarizer(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"transform": (x > float(model.threshold)).cast(op.real)}


@rule("Normalizer")
def normalizer(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"transform": normalized(op, x, model.norm)}


def normalized(op: Writer, x: Tensor, norm: str) -> Tensor:
    """Rows by their norm; one of zeros stays as it is."""
    if norm == "max":
        size = op.ReduceMax(op.Abs(x), op.ints([1]), keepdims=1)
    elif norm == "l1":
        size = op.sum(op.Abs(x), [1])
    else:
        size = op.Sqrt(op.sum(x * x, [1]))
    return x / op.where(op.Equal(size, 0.0), 1.0, size)


@rule("PowerTransformer")
def power(op: Writer, model: Any, x: Tensor) -> Outputs:
    lambdas = np.asarray(model.lambdas_, np.float64)
    found = _box_cox(op, x, lambdas) if model.method == "box-cox" else _yeo_johnson(op, x, lambdas)
    return op.outputs(model._scaler, found) if model.standardize else {"transform": found}


def _box_cox(op: Writer, x: Tensor, lambdas: Any) -> Tensor:
    """(xᵏ - 1) / k by column, which is log x for k = 0."""
    logs = op.Log(x)
    divisor = np.where(lambdas == 0, 1.0, lambdas)
    powers = expm1(op, logs * op.reals(lambdas)) / op.reals(divisor)
    return op.Where(op.constant(lambdas == 0), logs, powers)


def _yeo_johnson(op: Writer, x: Tensor, lambdas: Any) -> Tensor:
    """A Box-Cox of 1 + x for what is not negative, of 1 - x with 2 - k for the rest."""
    up = _box_cox(op, op.Max(x, op.reals(0.0)) + 1.0, lambdas)
    down = _box_cox(op, 1.0 - op.Min(x, op.reals(0.0)), 2.0 - lambdas)
    return op.Where(x >= 0, up, -down)


@rule("QuantileTransformer")
def quantile(op: Writer, model: Any, x: Tensor) -> Outputs:
    edge = 1e-7
    parts = []
    for i, quantiles in enumerate(np.asarray(model.quantiles_, np.float64).T):
        column = op.take(x, [i])
        references = np.asarray(model.references_, np.float64)
        up = interpolated(op, column, quantiles, references)
        down = interpolated(op, -column, -quantiles[::-1], -references[::-1])
        found = (up - down) * 0.5
        low, high = float(quantiles[0]), float(quantiles[-1])
        if model.output_distribution == "normal":
            is_low, is_high = (column - edge) < low, (column + edge) > high
        else:
            is_low, is_high = op.Equal(column, low), op.Equal(column, high)
        found = op.where(is_low, 0.0, op.where(is_high, 1.0, found))
        parts.append(op.Where(op.isnan(column), column, found))
    found = op.hstack(parts)
    if model.output_distribution == "normal":
        from scipy.stats import norm

        bound = float(norm.ppf(1 - (edge - np.spacing(1))))
        inside = ndtri(op, op.Clip(found, edge / 10, 1.0 - edge / 10))
        found = op.Where(op.isnan(found), found, op.Clip(inside, float(norm.ppf(edge - np.spacing(1))), bound))
    return {"transform": found}


@rule("AdditiveChi2Sampler")
def additive_chi2(op: Writer, model: Any, x: Tensor) -> Outputs:
    interval = model.sample_interval or {1: 0.8, 2: 0.5, 3: 0.4}[model.sample_steps]
    zero = op.Equal(x, 0.0)
    parts = [op.Sqrt(x * interval)]
    angle = op.Log(op.where(zero, 1.0, x)) * interval
    for j in range(1, model.sample_steps):
        factor = op.Sqrt(x * (2 * interval / float(np.cosh(np.pi * j * interval))))
        parts += [factor * op.Cos(angle * float(j)), factor * op.Sin(angle * float(j))]
    return {"transform": op.hstack(parts)}


@rule(
    *("GenericUnivariateSelect", "SelectFdr", "SelectFpr", "SelectFromModel", "SelectFwe", "SelectKBest"),
    *("SelectPercentile", "SequentialFeatureSelector", "VarianceThreshold"),
    as_given=True,
)
def selected(op: Writer, model: Any, x: Data) -> Outputs:
    return {"transform": op.plain(op.chosen(x, np.flatnonzero(model.get_support()).tolist()))}


@rule("RFE", "RFECV", as_given=True)
def eliminated(op: Writer, model: Any, x: Data) -> Outputs:
    kept = selected(op, model, x)["transform"]
    return op.outputs(model.estimator_, kept) | {"transform": kept}


@rule("KBinsDiscretizer")
def bins(op: Writer, model: Any, x: Tensor) -> Outputs:
    parts = []
    for i, edges in enumerate(model.bin_edges_):
        passed = op.GreaterOrEqual(op.take(x, [i]), op.reals(np.asarray(edges)[np.newaxis, 1:-1]))
        parts.append(op.sum(passed.cast(ir.DataType.INT64), [1]))
    if model.encode == "ordinal":
        return {"transform": op.hstack(parts)}
    hot = [op.Equal(part, op.ints(range(n))) for part, n in zip(parts, model.n_bins_, strict=True)]
    return {"transform": op.hstack(hot).cast(op.real)}
