"""Tree ensembles: which leaf each row reaches in each tree, then one lookup of what the leaves give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.ml_scores import labels, transformed, transformed_column
from onward.backends.tensorflow.target import ops, rule, tf
from onward.canon.origin import origin
from onward.errors import UnsupportedError
from onward.spec.ml_trees import AGGREGATES, TESTS, TRANSFORMS, Forest, forest_of_leaves, forest_of_nodes

Array = np.ndarray[Any, Any]


def _rows(e: Emitter, x: Expr) -> tuple[Expr, Any]:
    """The input as floating-point rows, and the numpy type that thresholds are compared in."""
    rows = x if e.rank(x) == 2 else ops.as_rows(x)
    if e.dtype(x) == ir.DataType.DOUBLE:
        return rows, np.float64
    return rows if e.dtype(x) == ir.DataType.FLOAT else tf.cast(rows, tf.float32), np.float32


def _leaves(e: Emitter, rows: Expr, forest: Forest) -> Expr:
    inner = slice(forest.first_leaf)
    tests = np.unique(forest.test[inner])
    options: dict[str, Any] = {}
    if len(tests) > 1 or TESTS.index("in") in tests:
        options["test"] = e.constant(forest.test.astype(np.uint8), "test")
    elif len(tests) == 1 and tests[0] != 0:
        options["test"] = TESTS[int(tests[0])]
    if forest.missing[inner].any():
        options["missing"] = e.constant(forest.missing, "missing")
    if len(forest.sets):
        options["sets"] = e.constant(forest.sets, "sets")
    return ops.tree_leaves(
        rows,
        e.constant(forest.feature, "feature"),
        e.constant(forest.threshold, "threshold"),
        e.constant(forest.children, "branches"),
        e.constant(forest.roots, "roots"),
        first_leaf=forest.first_leaf,
        depth=forest.depth,
        **options,
    )


def _scores(e: Emitter, leaves: Expr, forest: Forest, aggregate: str, base: Array | None = None) -> Expr:
    """What the trees give each target together, and a base value for the targets that any tree gives something."""
    combine = {"SUM": tf.reduce_sum, "AVERAGE": tf.reduce_mean, "MIN": tf.reduce_min, "MAX": tf.reduce_max}[aggregate]
    given = ~np.isnan(forest.weights)
    scored = forest.scored()
    nothing = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
    total = combine(tf.gather(e.constant(np.where(given, forest.weights, nothing), "weights"), leaves), axis=1)
    if nothing and not all(scored):
        total = e.let(total)
        total = tf.where(tf.math.is_inf(total), 0.0, total)
    if base is None or not base.any():
        return total
    if None in scored:
        scale = e.constant(base, "base")
        return total + tf.where(_is_scored(e, leaves, forest), scale, tf.zeros_like(scale))
    return total + e.constant(base * np.array(scored, base.dtype), "base")


def _is_scored(e: Emitter, leaves: Expr, forest: Forest) -> Expr:
    """Whether any leaf that a row reaches gives something to each target."""
    return tf.reduce_any(tf.gather(e.constant(~np.isnan(forest.weights), "given"), leaves), axis=1)


def _base(values: Sequence[float] | None, tensor: ir.TensorProtocol | None, dtype: Any) -> Array:
    return np.asarray(tensor.numpy() if tensor is not None else values or [], dtype)


@rule("ai.onnx.ml::TreeEnsembleRegressor")
def tree_ensemble_regressor(
    e: Emitter,
    x: Expr,
    *,
    n_targets: int,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: ir.TensorProtocol | None = None,
    post_transform: str = "NONE",
    **trees: Any,
) -> Expr:
    rows, dtype = _rows(e, x)
    forest = forest_of_nodes({**trees, "aggregate_function": aggregate_function}, "target", n_targets, dtype)
    base = _base(base_values, base_values_as_tensor, dtype)
    used = base if len(base) == n_targets else None
    leaves = e.let(_leaves(e, rows, forest), "leaves")
    scores = _scores(e, leaves, forest, aggregate_function, used)
    scores = _single(scores, dtype)
    return transformed_column(scores, post_transform) if n_targets == 1 else transformed(scores, post_transform)


@rule("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(
    e: Emitter, x: Expr, *, n_targets: int, aggregate_function: int = 1, post_transform: int = 0, **trees: Any
) -> Expr:
    forest = forest_of_leaves({**trees, "n_targets": n_targets})
    rows = x if e.rank(x) == 2 else ops.as_rows(x)
    scores = _scores(e, _leaves(e, rows, forest), forest, AGGREGATES[aggregate_function])
    transform = TRANSFORMS[post_transform]
    return transformed_column(scores, transform) if n_targets == 1 else transformed(scores, transform)


@rule("ai.onnx.ml::TreeEnsembleClassifier")
def tree_ensemble_classifier(
    e: Emitter,
    x: Expr,
    *,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: ir.TensorProtocol | None = None,
    post_transform: str = "NONE",
    **trees: Any,
) -> tuple[Expr, Expr]:
    """One or two classes follow rules of their own, which ONNX leaves open; these are ONNX Runtime's.

    Among them: where both of two classes get scores, the labels are 0 and 1, unless they are strings.
    """
    names: list[Any] = [*classlabels_strings] or [*classlabels_int64s]
    rows, dtype = _rows(e, x)
    forest = forest_of_nodes(trees, "class", len(names), dtype)
    base = _base(base_values, base_values_as_tensor, dtype)
    leaves = e.let(_leaves(e, rows, forest), "leaves")
    if len(names) > 2:
        return _many_classes(e, leaves, forest, base, names, post_transform, dtype)
    scores = e.let(_scores(e, leaves, forest, "SUM"), "scores")
    if len(names) == 1:
        return _one_class(e, scores, base, names, post_transform, dtype)
    return _two_classes(e, scores, forest, base, names, post_transform, dtype)


def _single(scores: Expr, dtype: Any) -> Expr:
    """Scores are given in single precision."""
    return tf.cast(scores, tf.float32) if dtype is np.float64 else scores


def _many_classes(
    e: Emitter, leaves: Expr, forest: Forest, base: Array, names: Sequence[Any], transform: str, dtype: Any
) -> tuple[Expr, Expr]:
    """The label is that of the highest score among the classes that get one."""
    scores = _scores(e, leaves, forest, "SUM")
    ranked = scores = e.let(scores + e.constant(base, "base") if base.any() else scores, "scores")
    if not len(base) and not all(forest.scored()):
        ranked = tf.where(_is_scored(e, leaves, forest), scores, -float("inf"))
    return labels(e, tf.argmax(ranked, axis=1), names), transformed(_single(scores, dtype), transform)


def _one_class(
    e: Emitter, scores: Expr, base: Array, names: Sequence[Any], transform: str, dtype: Any
) -> tuple[Expr, Expr]:
    if isinstance(names[0], str) or len(base) > 1:
        raise UnsupportedError(f"{origin(e.node)}: a single class with these labels or base values has no meaning")
    scores = e.let(scores + float(base[0]), "scores") if base.any() else scores
    return tf.cast(scores[:, 0] > 0, tf.int64), transformed_column(_single(scores, dtype), transform)


def _two_classes(
    e: Emitter, scores: Expr, forest: Forest, base: Array, names: Sequence[Any], transform: str, dtype: Any
) -> tuple[Expr, Expr]:
    first, second = forest.scored()
    if second is None or first is None:
        raise UnsupportedError(f"{origin(e.node)}: of two classes, some leaves of a tree give a score to one only")
    zero, one = scores[:, 0], scores[:, 1]
    is_positive = not (forest.weights < 0).any()
    if len(base) == 2 and second:
        one = e.let(zero + float(base[1]))
        zero = -one
    elif len(base):
        zero = zero + float(base[0]) if first and base[0] else zero
    decisive = e.let(one if second else zero)
    both = bool(first and second)
    index = tf.cast(decisive > (0.5 if is_positive and not both else 0), tf.int64)
    label = index if both and not isinstance(names[0], str) else labels(e, index, names)
    if second or len(base) == 2:
        columns = tf.stack([zero if first else tf.zeros_like(one), one], axis=1)
        return label, transformed(_single(columns, dtype), transform)
    if transform == "PROBIT":
        raise UnsupportedError(f"{origin(e.node)}: PROBIT of a single score for two classes has no meaning")
    if transform == "LOGISTIC":
        return label, tf.sigmoid(_single(tf.stack([-decisive, decisive], axis=1), dtype))
    other = 1 - decisive if is_positive else -decisive
    return label, _single(tf.stack([other, decisive], axis=1), dtype)
