"""Projections onto components, and clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.kernels import distances, squared_distances
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor


def _projected(op: Writer, x: Tensor, mean: Any, components: Any) -> Outputs:
    """(x - mean) · componentsᵀ."""
    centered = x if mean is None else x - op.reals(mean)
    if hasattr(components, "toarray"):
        components = components.toarray()
    return {"transform": op.MatMul(centered, op.reals(np.asarray(components).T))}


@rule("PCA", "IncrementalPCA")
def principal(op: Writer, model: Any, x: Tensor) -> Outputs:
    components = np.asarray(model.components_)
    if model.whiten:
        scale = np.sqrt(model.explained_variance_)
        components = components / np.maximum(scale, np.finfo(scale.dtype).eps)[:, np.newaxis]
    return _projected(op, x, model.mean_, components)


@rule("FastICA")
def independent(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _projected(op, x, model.mean_ if model.whiten else None, model.components_)


@rule("TruncatedSVD", "GaussianRandomProjection", "SparseRandomProjection")
def projection(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _projected(op, x, None, model.components_)


@rule("FactorAnalysis")
def factors(op: Writer, model: Any, x: Tensor) -> Outputs:
    loadings = np.asarray(model.components_)
    scaled = loadings / model.noise_variance_
    return _projected(op, x, model.mean_, np.linalg.inv(np.eye(len(loadings)) + scaled @ loadings.T) @ scaled)


@rule("SparsePCA", "MiniBatchSparsePCA")
def sparse_principal(op: Writer, model: Any, x: Tensor) -> Outputs:
    """A ridge regression on the components, whose solution is a projection."""
    components = np.asarray(model.components_, np.float64)
    gram = components @ components.T + model.ridge_alpha * np.eye(len(components))
    return _projected(op, x, model.mean_, np.linalg.solve(gram, components))


@rule("KMeans", "MiniBatchKMeans")
def means(op: Writer, model: Any, x: Tensor) -> Outputs:
    square = squared_distances(op, x, model.cluster_centers_)
    return {"predict": op.argmin(square), "transform": op.Sqrt(square)}


@rule("BisectingKMeans")
def bisecting(op: Writer, model: Any, x: Tensor) -> Outputs:
    mean = getattr(model, "_X_mean", 0.0)

    def label(node: Any) -> Tensor:
        if node.left is None:
            return op.index(int(node.label))
        centers = np.vstack([node.left.center, node.right.center]) + mean
        first = op.Equal(op.argmin(squared_distances(op, x, centers)), op.index(0))
        return op.Where(first, label(node.left), label(node.right))

    far = op.Sqrt(squared_distances(op, x, model.cluster_centers_))
    return {"predict": label(model._bisecting_tree), "transform": far}


@rule("AffinityPropagation", "MeanShift")
def exemplars(op: Writer, model: Any, x: Tensor) -> Outputs:
    if not len(model.cluster_centers_):
        raise UnsupportedError(f"{type(model).__name__} did not converge: it has no clusters")
    return {"predict": op.argmin(distances(op, x, model.cluster_centers_))}


@rule("Birch")
def birch(op: Writer, model: Any, x: Tensor) -> Outputs:
    far = distances(op, x, model.subcluster_centers_)
    return {"predict": op.labels(model.subcluster_labels_, op.argmin(far)), "transform": far}


@rule("FeatureAgglomeration")
def agglomeration(op: Writer, model: Any, x: Tensor) -> Outputs:
    labels = np.asarray(model.labels_)
    groups = [op.take(x, np.flatnonzero(labels == label)) for label in np.unique(labels)]
    pools = {np.mean: op.ReduceMean, np.max: op.ReduceMax, np.amax: op.ReduceMax, np.min: op.ReduceMin}
    if model.pooling_func not in pools:
        raise UnsupportedError("FeatureAgglomeration: only numpy's mean, max and min have rules as pooling functions")
    pool = pools[model.pooling_func]
    return {"transform": op.hstack([pool(group, op.ints([1]), keepdims=1) for group in groups])}


@rule("PatchExtractor")
def patches(op: Writer, model: Any, x: Tensor) -> Outputs:
    """All patches of all images, row by row: windows that overlap, taken by their indices."""
    if model.max_patches is not None:
        raise UnsupportedError("PatchExtractor: patches drawn at random (max_patches) have no rule")
    sizes = [d for d in x.dims or () if isinstance(d, int)]
    height, width = model.patch_size or (sizes[0] // 10, sizes[1] // 10)
    down = np.add.outer(np.arange(sizes[0] - height + 1), np.arange(height))
    along = np.add.outer(np.arange(sizes[1] - width + 1), np.arange(width))
    windows = op.Gather(op.Gather(x, op.constant(down), axis=1), op.constant(along), axis=3)
    rest = list(range(5, 2 + len(sizes) + 1))
    turned = op.Transpose(windows, perm=[0, 1, 3, 2, 4, *rest])
    return {"transform": op.Reshape(turned, op.ints([-1, height, width, *[n for n in sizes[2:] if n != 1]]))}
