"""Distances and kernels between rows, and the models made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.linear import decided
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def squared_distances(op: Writer, x: Tensor, points: Any) -> Tensor:
    """|x - p|² of every row to every point, from their products: (batch, points)."""
    points = np.asarray(points, np.float64)
    cross = op.MatMul(x, op.reals(-2.0 * points.T))
    norms = op.sum(x * x, [1])
    return op.Max(norms + cross + op.reals((points**2).sum(1)), op.reals(0.0))


def exact_squares(op: Writer, x: Tensor, points: Any) -> Tensor:
    """As `squared_distances`, to the last digits also for points that are close."""
    off = op.Unsqueeze(x, op.ints([1])) - op.reals(np.asarray(points, np.float64)[np.newaxis])
    return op.ReduceSum(off * off, op.ints([2]), keepdims=0)


def exact_distances(op: Writer, x: Tensor, points: Any, metric: str, p: float = 2.0) -> Tensor:
    """Of every row to every point, coordinate by coordinate: for metrics that products do not give."""
    off = op.Abs(op.Unsqueeze(x, op.ints([1])) - op.reals(np.asarray(points, np.float64)[np.newaxis]))
    return length(op, off, metric, p)


def length(op: Writer, off: Tensor, metric: str, p: float = 2.0) -> Tensor:
    if metric in ("manhattan", "cityblock", "l1") or (metric == "minkowski" and p == 1):
        return op.ReduceSum(off, op.ints([2]), keepdims=0)
    if metric in ("euclidean", "l2") or (metric == "minkowski" and p == 2):
        return op.Sqrt(op.ReduceSum(off * off, op.ints([2]), keepdims=0))
    if metric in ("chebyshev", "infinity"):
        return op.ReduceMax(off, op.ints([2]), keepdims=0)
    if metric == "minkowski":
        return op.Pow(op.ReduceSum(op.Pow(off, float(p)), op.ints([2]), keepdims=0), 1.0 / p)
    raise UnsupportedError(f"the metric {metric!r} has no rule")


def distances(op: Writer, x: Tensor, points: Any, metric: str = "euclidean", p: float = 2.0) -> Tensor:
    if metric in ("euclidean", "l2") or (metric == "minkowski" and p == 2):
        return op.Sqrt(squared_distances(op, x, points))
    return exact_distances(op, x, points, metric, p)


def kernel(op: Writer, x: Tensor, points: Any, name: Any, gamma: float | None, degree: float, coef0: float) -> Tensor:
    """Of every row with every point: (batch, points)."""
    if gamma is None:
        gamma = 1.0 / np.asarray(points).shape[1]
    if name == "precomputed":
        return x
    if name == "rbf":
        return op.Exp(squared_distances(op, x, points) * -float(gamma))
    if name == "laplacian":
        return op.Exp(exact_distances(op, x, points, "manhattan") * -float(gamma))
    if name not in ("linear", "poly", "polynomial", "sigmoid", "cosine"):
        raise UnsupportedError(f"the kernel {getattr(name, '__name__', name)!r} has no rule")
    points = np.asarray(points, np.float64)
    if name == "cosine":
        norms = np.linalg.norm(points, axis=1, keepdims=True)
        size = op.Sqrt(op.sum(x * x, [1]))
        x, points = x / op.where(op.Equal(size, 0.0), 1.0, size), points / np.where(norms == 0, 1.0, norms)
    product = op.MatMul(x, op.reals(points.T))
    if name in ("linear", "cosine"):
        return product
    inner = product * float(gamma) + float(coef0)
    return op.Tanh(inner) if name == "sigmoid" else op.Pow(inner, float(degree))


def _kernel(op: Writer, model: Any, x: Tensor, points: Any, gamma: float | None) -> Tensor:
    degree, coef0 = model.degree, model.coef0
    return kernel(op, x, points, model.kernel, gamma, 3 if degree is None else degree, 1 if coef0 is None else coef0)


@rule("KernelRidge")
def kernel_ridge(op: Writer, model: Any, x: Tensor) -> Outputs:
    found = op.MatMul(_kernel(op, model, x, model.X_fit_, model.gamma), op.reals(_columns(model.dual_coef_)))
    return {"predict": op.flat(found) if model.dual_coef_.ndim == 1 else found}


def _columns(array: Any) -> Any:
    array = np.asarray(array)
    return array[:, np.newaxis] if array.ndim == 1 else array


@rule("KernelPCA")
def kernel_pca(op: Writer, model: Any, x: Tensor) -> Outputs:
    gamma = getattr(model, "gamma_", model.gamma)
    centered = op.transform(model._centerer, _kernel(op, model, x, model.X_fit_, gamma))
    kept = np.flatnonzero(model.eigenvalues_)
    alphas = np.zeros_like(model.eigenvectors_)
    alphas[:, kept] = model.eigenvectors_[:, kept] / np.sqrt(model.eigenvalues_[kept])
    return {"transform": op.MatMul(centered, op.reals(alphas))}


@rule("KernelCenterer")
def centerer(op: Writer, model: Any, x: Tensor) -> Outputs:
    means = op.sum(x, [1]) / float(model.K_fit_rows_.shape[0])
    return {"transform": x - op.reals(model.K_fit_rows_) - means + float(model.K_fit_all_)}


@rule("Nystroem")
def nystroem(op: Writer, model: Any, x: Tensor) -> Outputs:
    embedded = _kernel(op, model, x, model.components_, model.gamma)
    return {"transform": op.MatMul(embedded, op.reals(np.asarray(model.normalization_).T))}


@rule("RBFSampler")
def rbf_sampler(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"transform": _cosines(op, model, x)}


@rule("SkewedChi2Sampler")
def skewed_chi2(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"transform": _cosines(op, model, op.Log(x + float(model.skewedness)))}


def _cosines(op: Writer, model: Any, x: Tensor) -> Tensor:
    angles = op.MatMul(x, op.reals(model.random_weights_)) + op.reals(model.random_offset_)
    return op.Cos(angles) * float(np.sqrt(2.0 / model.n_components))


@rule("PolynomialCountSketch")
def count_sketch(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Sketches are convolved in a circle: a product of matrices for each power, as sizes are fixed."""
    features, size = model.n_features_in_, model.n_components
    scaled = x * float(np.sqrt(model.gamma))
    if model.coef0 != 0:
        scaled = op.hstack([scaled, op.filled(op.take(x, [0]), float(np.sqrt(model.coef0)))])
        features += 1
    found = None
    for index, sign in zip(model.indexHash_, model.bitHash_, strict=True):
        table = np.zeros((features, size))
        table[np.arange(features), index] = sign
        sketch = op.MatMul(scaled, op.reals(table))
        if found is None:
            found = sketch
            continue
        turns = (np.arange(size)[np.newaxis] - np.arange(size)[:, np.newaxis]) % size
        circle = op.Reshape(op.Gather(sketch, op.constant(turns), axis=1), op.ints([-1, size, size]))
        found = op.Squeeze(op.MatMul(op.Unsqueeze(found, op.ints([1])), circle), op.ints([1]))
    assert found is not None
    return {"transform": found}


@rule("SVR", "NuSVR")
def svm_regression(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"predict": _svm(op, model, x)}


@rule("OneClassSVM")
def one_class_svm(op: Writer, model: Any, x: Tensor) -> Outputs:
    scores = _svm(op, model, x)
    index = op.Where(scores > 0, op.index(1), op.index(-1))
    return {"predict": index, "decision_function": scores}


def _svm(op: Writer, model: Any, x: Tensor) -> Tensor:
    return op.linear(_svm_kernel(op, model, x), np.asarray(model._dual_coef_)[0], model._intercept_[0])


def _svm_kernel(op: Writer, model: Any, x: Tensor) -> Tensor:
    if getattr(model, "_sparse", False) or hasattr(model.support_vectors_, "toarray"):
        raise UnsupportedError(f"{type(model).__name__}: there is no rule for one that is fitted on sparse data")
    if model.kernel == "precomputed":
        return op.take(x, model.support_)
    return kernel(op, x, model.support_vectors_, model.kernel, model._gamma, model.degree, model.coef0)


@rule("SVC", "NuSVC")
def svm_classification(op: Writer, model: Any, x: Tensor) -> Outputs:
    if getattr(model, "probability", False) is True:
        raise UnsupportedError(f"{type(model).__name__}: probability=True has no rule; CalibratedClassifierCV has one")
    rows = _svm_kernel(op, model, x)
    count = len(model.classes_)
    ends = np.cumsum(model._n_support)
    groups = [np.arange(end - n, end) for end, n in zip(ends, model._n_support, strict=True)]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    weights = np.zeros((len(pairs), int(ends[-1])))
    dual = np.asarray(model._dual_coef_)
    for row, (i, j) in zip(weights, pairs, strict=True):
        row[groups[i]], row[groups[j]] = dual[j - 1, groups[i]], dual[i, groups[j]]
    scores = op.linear(rows, weights, model._intercept_)
    if count == 2:
        return decided(op, model, op.flat(-scores))
    return _by_pairs(op, model, scores, pairs)


def _by_pairs(op: Writer, model: Any, scores: Tensor, pairs: list[tuple[int, int]]) -> Outputs:
    """Each pair of classes votes; scikit-learn breaks ties by confidence only where it is asked to."""
    count = len(model.classes_)
    won = (scores > 0).cast(op.real)
    votes = pair_votes(op, won, pairs, count)
    combined = one_against_rest(op, 1.0 - won, -scores, pairs, count)
    index = op.argmax(combined if model.break_ties and model.decision_function_shape == "ovr" else votes)
    shown = combined if model.decision_function_shape == "ovr" else scores
    return {"predict": op.labels(model.classes_, index), "decision_function": shown}


def pair_votes(op: Writer, first_won: Tensor, pairs: list[tuple[int, int]], count: int) -> Tensor:
    """How many pairs each class won; `first_won` is 1 where the first of a pair did."""
    table, lost = np.zeros((len(pairs), count)), np.zeros(count)
    for k, (i, j) in enumerate(pairs):
        table[k, i], table[k, j] = 1.0, -1.0
        lost[j] += 1.0
    return op.MatMul(first_won, op.reals(table)) + op.reals(lost)


def one_against_rest(
    op: Writer, second_won: Tensor, confidence: Tensor, pairs: list[tuple[int, int]], count: int
) -> Tensor:
    """Votes, and less than one vote by the sum of confidences in each class."""
    table = np.zeros((len(pairs), count))
    for k, (i, j) in enumerate(pairs):
        table[k, i], table[k, j] = -1.0, 1.0
    sums = op.MatMul(confidence, op.reals(table))
    return pair_votes(op, 1.0 - second_won, pairs, count) + sums / ((op.Abs(sums) + 1.0) * 3.0)


@rule("NearestCentroid")
def nearest_centroid(op: Writer, model: Any, x: Tensor) -> Outputs:
    spread = np.where(model.within_class_std_dev_ == 0, 1.0, model.within_class_std_dev_)
    far = distances(op, x / op.reals(spread), model.centroids_ / spread, model.metric)
    prior = np.asarray(model.class_prior_)
    scores = op.reals(2.0 * np.log(prior)) - far * far
    if np.isclose(prior, 1 / len(model.classes_)).all():
        index = op.argmin(distances(op, x, model.centroids_, model.metric))
    else:
        index = op.argmax(scores)
    found = {"predict": op.labels(model.classes_, index), "predict_proba": op.Softmax(scores, axis=1)}
    if len(model.classes_) == 2:
        scores = op.flat(op.take(scores, [1]) - op.take(scores, [0]))
    return found | {"decision_function": scores}


@rule("EllipticEnvelope")
def elliptic(op: Writer, model: Any, x: Tensor) -> Outputs:
    off = x - op.reals(model.location_)
    turned = op.MatMul(off, op.reals(model.get_precision()))
    scores = op.ReduceSum(off * turned, op.ints([1]), keepdims=0) * -1.0 - float(model.offset_)
    return {"predict": op.sign(scores).cast(ir.DataType.INT64), "decision_function": scores}
