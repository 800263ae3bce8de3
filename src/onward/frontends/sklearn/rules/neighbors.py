"""Models that look for the nearest of the rows they were fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.impute import is_missing, with_indicator
from onward.frontends.sklearn.rules.iterate import solved
from onward.frontends.sklearn.rules.kernels import exact_distances, kernel, length, squared_distances
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def nearest(op: Writer, model: Any, x: Tensor, count: int | None = None) -> tuple[Tensor, Tensor]:
    """The nearest rows, the nearest first, and their distances: both (batch, count).

    They are found by products of rows, and their distances taken exactly, so that a row is at 0 from itself.
    """
    points = _points(model)
    metric, p = _metric(model)
    rough = squared_distances(op, x, points) if _euclidean(metric, p) else exact_distances(op, x, points, metric, p)
    wanted = op.ints([count or model.n_neighbors])
    _, index = op.many("TopK", 2, rough, wanted, largest=0, sorted=1, axis=1)
    rows = op.Gather(op.reals(points), index, axis=0)
    return index, length(op, op.Abs(rows - op.Unsqueeze(x, op.ints([1]))), metric, p)


def _points(model: Any) -> Any:
    points = model._fit_X
    return points.toarray() if hasattr(points, "toarray") else np.asarray(points, np.float64)


def _metric(model: Any) -> tuple[str, float]:
    metric = model.effective_metric_
    if not isinstance(metric, str):
        raise UnsupportedError(f"{type(model).__name__}: a metric that is Python code is not translated")
    return metric, float((model.effective_metric_params_ or {}).get("p", 2.0))


def _euclidean(metric: str, p: float) -> bool:
    return metric in ("euclidean", "l2") or (metric == "minkowski" and p == 2)


def weighted(op: Writer, model: Any, distance: Tensor) -> Tensor:
    """Weights of neighbours by their distances; where one is at 0, only such count."""
    if model.weights in (None, "uniform"):
        return op.filled(distance, 1.0)
    if model.weights != "distance":
        raise UnsupportedError(f"{type(model).__name__}: weights that are Python code are not translated")
    here = op.Equal(distance, 0.0)
    some = op.ReduceMax(here.cast(op.real), op.ints([1]), keepdims=1) > 0
    return op.Where(some, here.cast(op.real), 1.0 / op.where(here, 1.0, distance))


@rule("KNeighborsClassifier")
def nearest_class(op: Writer, model: Any, x: Tensor) -> Outputs:
    index, distance = nearest(op, model, x)
    weights = op.Unsqueeze(weighted(op, model, distance), op.ints([2]))

    def votes(codes: Any, count: int) -> Tensor:
        hot = op.Gather(op.reals(np.eye(count)[np.asarray(codes)]), index, axis=0)
        return op.ReduceSum(hot * weights, op.ints([1]), keepdims=0)

    return _voted(op, model, votes)


def _voted(op: Writer, model: Any, votes: Any) -> Outputs:
    """Labels and probabilities from the votes for each class, of one output or of several."""
    if model.outputs_2d_:
        outputs = list(zip(model.classes_, np.asarray(model._y).T, strict=True))
        found: Outputs = {}
        labels = []
        for i, (classes, codes) in enumerate(outputs):
            votes_for = votes(codes, len(classes))
            found[f"predict_proba_{i}"] = op.share(votes_for)
            labels.append(op.column(op.labels(classes, op.argmax(votes_for))))
        return found | {"predict": op.hstack(labels)}
    weight = votes(np.asarray(model._y).reshape(-1), len(model.classes_))
    return {"predict": op.labels(model.classes_, op.argmax(weight)), "predict_proba": op.share(weight)}


@rule("KNeighborsRegressor")
def nearest_mean(op: Writer, model: Any, x: Tensor) -> Outputs:
    index, distance = nearest(op, model, x)
    weights = op.Unsqueeze(op.share(weighted(op, model, distance)), op.ints([2]))
    target = np.asarray(model._y, np.float64)
    near = op.Gather(op.reals(target.reshape(len(target), -1)), index, axis=0)
    found = op.ReduceSum(near * weights, op.ints([1]), keepdims=0)
    return {"predict": op.flat(found) if target.ndim == 1 else found}


def _within(op: Writer, model: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Distances to all rows, and which of these are within the radius."""
    metric, p = _metric(model)
    distance = exact_distances(op, x, _points(model), metric, p)
    return distance, distance <= float(model.radius)


@rule("RadiusNeighborsClassifier")
def class_within(op: Writer, model: Any, x: Tensor) -> Outputs:
    distance, near = _within(op, model, x)
    weights = _near_weights(op, model, distance, near)
    none = op.Equal(op.sum(weights, [1]), 0.0)
    if model.outputs_2d_ or model.outlier_label_ is None:
        if model.outputs_2d_:
            raise UnsupportedError("RadiusNeighborsClassifier of several outputs has no rule")
        chances = op.share(op.MatMul(weights, op.reals(np.eye(len(model.classes_))[np.asarray(model._y)])))
        return {"predict": op.labels(model.classes_, op.argmax(chances)), "predict_proba": chances}
    votes = op.MatMul(weights, op.reals(np.eye(len(model.classes_))[np.asarray(model._y)]))
    outlier = model.outlier_label_[0]
    row = (np.asarray(model.classes_) == outlier).astype(np.float64)[np.newaxis]
    chances = op.Where(none, op.reals(row), votes / op.where(none, 1.0, op.sum(votes, [1])))
    labels = op.labels(model.classes_, op.argmax(chances))
    if not row.any():
        labels = op.Where(op.flat(none), op.listed(np.asarray([outlier])), labels)
    return {"predict": labels, "predict_proba": chances}


def _near_weights(op: Writer, model: Any, distance: Tensor, near: Tensor) -> Tensor:
    """Weights of the rows within the radius, 0 for all others."""
    inside = near.cast(op.real)
    if model.weights in (None, "uniform"):
        return inside
    return weighted(op, model, distance) * inside


@rule("RadiusNeighborsRegressor")
def mean_within(op: Writer, model: Any, x: Tensor) -> Outputs:
    """The mean of what is within the radius; NaN where nothing is."""
    weights = _near_weights(op, model, *_within(op, model, x))
    target = np.asarray(model._y, np.float64)
    found = op.MatMul(weights, op.reals(target.reshape(len(target), -1))) / op.sum(weights, [1])
    return {"predict": op.flat(found) if target.ndim == 1 else found}


@rule("KNeighborsTransformer")
def neighbour_graph(op: Writer, model: Any, x: Tensor) -> Outputs:
    count = model.n_neighbors + (model.mode == "distance")
    index, distance = nearest(op, model, x, count)
    values = distance if model.mode == "distance" else op.filled(distance, 1.0)
    size = op.Concat(op.rows(x), op.ints([model.n_samples_fit_]), axis=0)
    return {"transform": op.ScatterElements(op.Expand(op.reals(0.0), size), index, values, axis=1)}


@rule("RadiusNeighborsTransformer")
def radius_graph(op: Writer, model: Any, x: Tensor) -> Outputs:
    distance, near = _within(op, model, x)
    return {"transform": op.where(near, distance if model.mode == "distance" else op.filled(distance, 1.0), 0.0)}


@rule("LocalOutlierFactor")
def outlier_factor(op: Writer, model: Any, x: Tensor) -> Outputs:
    index, distance = nearest(op, model, x, model.n_neighbors_)
    known = np.asarray(model._distances_fit_X_, np.float64)[:, model.n_neighbors_ - 1]
    reach = op.Max(distance, op.Gather(op.reals(known), index, axis=0))
    density = 1.0 / (op.mean(reach, 1, keepdims=True) + 1e-10)
    ratio = op.Gather(op.reals(model._lrd), index, axis=0) / density
    scores = -op.mean(ratio, 1) - float(model.offset_)
    return {"predict": op.sign(scores), "decision_function": scores}


@rule("NeighborhoodComponentsAnalysis")
def neighborhood_components(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"transform": op.MatMul(x, op.reals(np.asarray(model.components_).T))}


@rule("Isomap")
def isomap(op: Writer, model: Any, x: Tensor) -> Outputs:
    if model.n_neighbors is None:
        raise UnsupportedError("Isomap by a radius has no rule")
    index, distance = nearest(op, model.nbrs_, x)
    ways = op.Gather(op.reals(model.dist_matrix_), index, axis=0) + op.Unsqueeze(distance, op.ints([2]))
    shortest = op.ReduceMin(ways, op.ints([1]), keepdims=0)
    return op.outputs(model.kernel_pca_, shortest * shortest * -0.5)


@rule("LocallyLinearEmbedding")
def locally_linear(op: Writer, model: Any, x: Tensor) -> Outputs:
    """A row as a mixture of its neighbours, whose weights solve a small system, by elimination."""
    index, _ = nearest(op, model.nbrs_, x, model.n_neighbors)
    off = op.Gather(op.reals(_points(model.nbrs_)), index, axis=0) - op.Unsqueeze(x, op.ints([1]))
    gram = op.MatMul(off, op.Transpose(off, perm=[0, 2, 1]))
    size = model.n_neighbors
    eye = op.reals(np.eye(size)[np.newaxis])
    trace = op.ReduceSum(gram * eye, op.ints([1, 2]), keepdims=1)
    ridge = op.where(trace > 0, trace * float(model.reg), float(model.reg))
    right = op.filled(op.Gather(gram, op.ints([0]), axis=2), 1.0)
    weights = solved(op, gram + eye * ridge, right, size)
    near = op.Gather(op.reals(model.embedding_), index, axis=0)
    return {"transform": op.ReduceSum(near * (weights / op.sum(weights, [1])), op.ints([1]), keepdims=0)}


@rule("KNNImputer")
def nearest_imputer(op: Writer, model: Any, x: Tensor) -> Outputs:
    if model.metric != "nan_euclidean":
        raise UnsupportedError("KNNImputer: a metric that is Python code is not translated")
    points, masked = np.asarray(model._fit_X, np.float64), np.asarray(model._mask_fit_X, bool)
    missing = is_missing(op, model, x)
    there = op.Not(missing).cast(op.real)
    known = np.where(masked, 0.0, points)
    filled = op.where(missing, 0.0, x)
    both = op.MatMul(there, op.reals((~masked).T.astype(np.float64)))
    off = op.Unsqueeze(filled, op.ints([1])) - op.reals(known[np.newaxis])
    off = off * op.Unsqueeze(there, op.ints([1])) * op.reals((~masked)[np.newaxis].astype(np.float64))
    squares = op.ReduceSum(off * off, op.ints([2]), keepdims=0)
    none = op.Equal(both, 0.0)
    distance = op.Sqrt(squares / op.where(none, 1.0, both) * float(points.shape[1]))
    distance = op.where(none, float("inf"), distance)
    columns = [_imputed(op, model, x, i, distance, missing) for i in range(points.shape[1]) if model._valid_mask[i]]
    return {"transform": with_indicator(op, model, op.hstack(columns), x)}


def _imputed(op: Writer, model: Any, x: Tensor, i: int, distance: Tensor, missing: Tensor) -> Tensor:
    """A column whose gaps are filled from the nearest rows that have a number there, or else by its mean."""
    masked = np.asarray(model._mask_fit_X, bool)[:, i]
    donors = np.flatnonzero(~masked)
    values = np.asarray(model._fit_X, np.float64)[donors, i]
    far = op.take(distance, donors)
    count = min(model.n_neighbors, len(donors))
    near, index = op.many("TopK", 2, far, op.ints([count]), largest=0, sorted=1, axis=1)
    reachable = op.Not(op.IsInf(near))
    weights = op.where(reachable, weighted(op, model, op.where(reachable, near, 1.0)), 0.0)
    total = op.sum(weights, [1])
    mean = op.sum(op.Gather(op.reals(values), index, axis=0) * weights, [1]) / op.where(
        op.Equal(total, 0.0), 1.0, total
    )
    filled = op.where(op.Equal(total, 0.0), float(values.mean()), mean)
    column = op.take(x, [i])
    return op.Where(op.Gather(missing, op.ints([i]), axis=1), filled, column)


@rule("LabelPropagation", "LabelSpreading")
def propagation(op: Writer, model: Any, x: Tensor) -> Outputs:
    spread = op.reals(model.label_distributions_)
    if model.kernel == "rbf":
        weights = op.MatMul(kernel(op, x, model.X_, "rbf", model.gamma, 3, 1), spread)
    elif model.kernel == "knn":
        index, _ = nearest(op, model.nn_fit, x, model.n_neighbors)
        weights = op.ReduceSum(op.Gather(spread, index, axis=0), op.ints([1]), keepdims=0)
    else:
        raise UnsupportedError(f"{type(model).__name__}: a kernel that is Python code is not translated")
    chances = op.share(weights)
    return {"predict": op.labels(model.classes_, op.argmax(chances)), "predict_proba": chances}
