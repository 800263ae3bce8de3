"""Functions given by points, with straight lines between them, and splines."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def place(op: Writer, x: Tensor, knots: Any) -> Tensor:
    """The interval between sorted knots that each number of a column is in, 0 for all before the second knot."""
    passed = op.GreaterOrEqual(x, op.reals(np.asarray(knots)[np.newaxis, 1:-1]))
    return op.sum(passed.cast(ir.DataType.INT64), [1])


def interpolated(op: Writer, x: Tensor, xs: Any, ys: Any) -> Tensor:
    """Like numpy's interp: by the line between the two points around each number of a column, constant outside."""
    xs, ys = np.asarray(xs, np.float64), np.asarray(ys, np.float64)
    if len(xs) == 1:
        return op.filled(x, float(ys[0]))
    widths = np.diff(xs)
    slopes = np.divide(np.diff(ys), widths, out=np.zeros_like(widths), where=widths > 0)
    where = place(op, x, xs)
    left = [op.Gather(op.reals(values), where, axis=0) for values in (xs[:-1], ys[:-1], slopes)]
    inside = left[1] + (x - left[0]) * left[2]
    return op.where(x >= float(xs[-1]), float(ys[-1]), op.where(x < float(xs[0]), float(ys[0]), inside))


@rule("IsotonicRegression")
def isotonic(op: Writer, model: Any, x: Tensor) -> Outputs:
    found = op.flat(isotonic_column(op, model, op.column(x)))
    return {"predict": found, "transform": found}


def isotonic_column(op: Writer, model: Any, x: Tensor) -> Tensor:
    found = interpolated(op, x, model.X_thresholds_, model.y_thresholds_)
    if model.out_of_bounds == "clip" or len(model.y_thresholds_) == 1:
        return found
    low, high = float(model.X_min_), float(model.X_max_)
    outside = op.Or(x < low, x > high)
    return op.where(outside, float("nan"), found)


@rule("SplineTransformer")
def spline(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Straight lines outside the knots change, of degree 1, where scikit-learn sees the knots of later columns end."""
    parts = []
    margin = model.degree
    for i, curve in enumerate(model.bsplines_):
        lines = margin + 1 if model.extrapolation == "linear" and margin <= 1 else margin
        parts.append(_basis(op, model, op.take(x, [i]), curve, margin, lines))
        margin = lines
    if not model.include_bias:
        parts = [op.take(part, range(op.width(part) - 1)) for part in parts]
    return {"transform": op.hstack(parts)}


def _basis(op: Writer, model: Any, x: Tensor, curve: Any, margin: int, lines: int) -> Tensor:
    """All splines of a column, as a polynomial in each interval between knots; `margin` knots are outside the data."""
    from scipy.interpolate import BSpline, PPoly

    degree, kind = curve.k, model.extrapolation
    low, high = float(curve.t[margin]), float(curve.t[-margin - 1])
    missing = op.isnan(x) if model.handle_missing == "zeros" else None
    if kind == "periodic":
        span = float(curve.t[curve.t.size - degree - 1]) - low
        x = low + (x - low) - op.Floor((x - low) / span) * span if span > 0 else op.zeros_like(x)
    elif kind not in ("constant", "linear", "continue", "error"):
        raise UnsupportedError(f"SplineTransformer: extrapolation {kind!r} has no rule")
    knots = curve.t[degree : curve.t.size - degree]
    single = [PPoly.from_spline(BSpline(curve.t, column, degree)).c for column in np.asarray(curve.c).T]
    pieces = np.stack(single, axis=2)[:, degree : degree + len(knots) - 1]  # (degree + 1, intervals, splines)
    inner = op.Clip(x, low, high) if kind in ("constant", "linear") else x
    found = _polynomial(op, inner, knots, pieces)
    if kind == "linear":
        below, above = _line(op, x, curve, low, slice(lines)), _line(op, x, curve, high, slice(-lines, None))
        found = op.Where(x < low, below, op.Where(x > high, above, found))
    return found if missing is None else op.where(missing, 0.0, found)


def _polynomial(op: Writer, x: Tensor, knots: Any, pieces: Any) -> Tensor:
    where = op.flat(place(op, x, knots))
    off = x - op.column(op.Gather(op.reals(knots[:-1]), where, axis=0))
    found = op.Gather(op.reals(pieces[0]), where, axis=0)
    for coefficients in pieces[1:]:
        found = found * off + op.Gather(op.reals(coefficients), where, axis=0)
    return found


def _line(op: Writer, x: Tensor, curve: Any, edge: float, which: slice) -> Tensor:
    """The tangents at an edge of those splines that reach beyond it, 0 for all others."""
    value, slope = np.zeros(curve.c.shape[1]), np.zeros(curve.c.shape[1])
    value[which], slope[which] = curve(edge)[which], curve(edge, nu=1)[which]
    return (x - edge) * op.reals(slope[np.newaxis]) + op.reals(value[np.newaxis])
