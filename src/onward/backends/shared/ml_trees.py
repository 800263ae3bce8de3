"""Tree ensembles: which leaf each row reaches in each tree, then one lookup of what the leaves give.

What a framework says in its own way is a `Words`; the helpers are named alike in every backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.errors import UnsupportedError
from onward.graph.origin import origin
from onward.spec.ml_trees import AGGREGATES, TESTS, TRANSFORMS, Forest, forest_of_leaves, forest_of_nodes

Array = np.ndarray[Any, Any]


class Words(ABC):
    """How a framework says what classical models do with rows and columns of scores."""

    @abstractmethod
    def as_rows(self, x: Expr) -> Expr:
        """A tensor of two axes, of which the first may be new."""

    @abstractmethod
    def single(self, x: Expr) -> Expr:
        """In single precision."""

    @abstractmethod
    def as_index(self, truth: Expr) -> Expr:
        """Truth values as the int64 numbers 0 and 1."""

    @abstractmethod
    def where(self, truth: Expr, yes: Any, no: Any) -> Expr: ...

    @abstractmethod
    def pick(self, rows: Expr, index: Expr) -> Expr: ...

    @abstractmethod
    def pick_strings(self, strings: Expr, index: Expr) -> Expr: ...

    @abstractmethod
    def total(self, leaves: Expr, weights: Expr, aggregate: str) -> Expr:
        """The SUM, AVERAGE, MIN or MAX of what the leaves of each row give, for each target."""

    @abstractmethod
    def by_turns(self, values: Expr, rounds: int, targets: int) -> Expr:
        """The sums of columns that belong to the targets in turn."""

    @abstractmethod
    def any_of(self, given: Expr) -> Expr:
        """Whether any is true along the second axis."""

    @abstractmethod
    def is_finite(self, x: Expr) -> Expr: ...

    @abstractmethod
    def best(self, scores: Expr) -> Expr:
        """The column of the highest score of each row."""

    @abstractmethod
    def columns(self, first: Expr | None, second: Expr) -> Expr:
        """Two columns side by side; zeros for a first one that there is not."""

    @abstractmethod
    def softmax(self, scores: Expr) -> Expr: ...

    @abstractmethod
    def sigmoid(self, scores: Expr) -> Expr: ...


def _transformed(w: Words, scores: Expr, transform: str, is_column: bool = False) -> Expr:
    """Scores after `post_transform`, which ONNX Runtime ignores for a single column, unless it is PROBIT."""
    match transform:
        case "PROBIT":
            return ops.probit(scores)
        case "SOFTMAX" if not is_column:
            return w.softmax(scores)
        case "LOGISTIC" if not is_column:
            return w.sigmoid(scores)
        case "SOFTMAX_ZERO" if not is_column:
            return ops.softmax_zero(scores)
    return scores


def _labels(e: Emitter, w: Words, index: Expr, names: Sequence[int] | Sequence[str]) -> Expr:
    """The label of each class index."""
    if names and isinstance(names[0], str):
        return w.pick_strings(e.constant(np.array(names, object), "labels"), index)
    if list(names) == list(range(len(names))):
        return index
    return w.pick(e.constant(np.array(names, np.int64), "labels"), index)


def _rows(e: Emitter, w: Words, x: Expr) -> tuple[Expr, Any]:
    """The input as floating-point rows, and the numpy type that thresholds are compared in."""
    rows = x if e.rank(x) == 2 else w.as_rows(x)
    if e.dtype(x) == ir.DataType.DOUBLE:
        return rows, np.float64
    return rows if e.dtype(x) == ir.DataType.FLOAT else w.single(rows), np.float32


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


def _scores(e: Emitter, w: Words, leaves: Expr, forest: Forest, aggregate: str, base: Array | None = None) -> Expr:
    """What the trees give each target together, and a base value for the targets that any tree gives something."""
    scored = forest.scored()
    nothing = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
    weights = np.where(np.isnan(forest.weights), nothing, forest.weights)
    targets = weights.shape[1]
    if aggregate == "SUM" and targets > 1 and forest.take_turns():
        given = w.pick(e.constant(weights.sum(1), "weights"), leaves)
        rounds = len(forest.roots) // targets
        total = given if rounds == 1 else w.by_turns(given, rounds, targets)
    else:
        total = w.total(leaves, e.constant(weights, "weights"), aggregate)
    if nothing and not all(scored):
        total = e.let(total)
        total = w.where(w.is_finite(total), total, 0.0)
    if base is None or not base.any():
        return total
    if None in scored:
        return total + w.where(_is_scored(e, w, leaves, forest), e.constant(base, "base"), 0.0)
    return total + e.constant(base * np.array(scored, base.dtype), "base")


def _is_scored(e: Emitter, w: Words, leaves: Expr, forest: Forest) -> Expr:
    """Whether any leaf that a row reaches gives something to each target."""
    return w.any_of(w.pick(e.constant(~np.isnan(forest.weights), "given"), leaves))


def _base(values: Sequence[float] | None, tensor: ir.TensorProtocol | None, dtype: Any) -> Array:
    return np.asarray(tensor.numpy() if tensor is not None else values or [], dtype)


def _single(w: Words, scores: Expr, dtype: Any) -> Expr:
    """Scores are given in single precision."""
    return w.single(scores) if dtype is np.float64 else scores


def regressor(
    e: Emitter,
    w: Words,
    x: Expr,
    *,
    n_targets: int,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: ir.TensorProtocol | None = None,
    post_transform: str = "NONE",
    **trees: Any,
) -> Expr:
    rows, dtype = _rows(e, w, x)
    forest = forest_of_nodes({**trees, "aggregate_function": aggregate_function}, "target", n_targets, dtype)
    base = _base(base_values, base_values_as_tensor, dtype)
    used = base if len(base) == n_targets else None
    leaves = e.let(_leaves(e, rows, forest), "leaves")
    scores = _single(w, _scores(e, w, leaves, forest, aggregate_function, used), dtype)
    return _transformed(w, scores, post_transform, n_targets == 1)


def ensemble(
    e: Emitter, w: Words, x: Expr, *, n_targets: int, aggregate_function: int = 1, post_transform: int = 0, **trees: Any
) -> Expr:
    forest = forest_of_leaves({**trees, "n_targets": n_targets})
    rows = x if e.rank(x) == 2 else w.as_rows(x)
    scores = _scores(e, w, _leaves(e, rows, forest), forest, AGGREGATES[aggregate_function])
    return _transformed(w, scores, TRANSFORMS[post_transform], n_targets == 1)


def classifier(
    e: Emitter,
    w: Words,
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
    rows, dtype = _rows(e, w, x)
    forest = forest_of_nodes(trees, "class", len(names), dtype)
    base = _base(base_values, base_values_as_tensor, dtype)
    leaves = e.let(_leaves(e, rows, forest), "leaves")
    if len(names) > 2:
        return _many_classes(e, w, leaves, forest, base, names, post_transform, dtype)
    scores = e.let(_scores(e, w, leaves, forest, "SUM"), "scores")
    if len(names) == 1:
        return _one_class(e, w, scores, base, names, post_transform, dtype)
    return _two_classes(e, w, scores, forest, base, names, post_transform, dtype)


def _many_classes(
    e: Emitter, w: Words, leaves: Expr, forest: Forest, base: Array, names: Sequence[Any], transform: str, dtype: Any
) -> tuple[Expr, Expr]:
    """The label is that of the highest score among the classes that get one."""
    scores = _scores(e, w, leaves, forest, "SUM")
    ranked = scores = e.let(scores + e.constant(base, "base") if base.any() else scores, "scores")
    if not len(base) and not all(forest.scored()):
        ranked = w.where(_is_scored(e, w, leaves, forest), scores, -float("inf"))
    return _labels(e, w, w.best(ranked), names), _transformed(w, _single(w, scores, dtype), transform)


def _one_class(
    e: Emitter, w: Words, scores: Expr, base: Array, names: Sequence[Any], transform: str, dtype: Any
) -> tuple[Expr, Expr]:
    if isinstance(names[0], str) or len(base) > 1:
        raise UnsupportedError(f"{origin(e.node)}: a single class with these labels or base values has no meaning")
    scores = e.let(scores + float(base[0]), "scores") if base.any() else scores
    return w.as_index(scores[:, 0] > 0), _transformed(w, _single(w, scores, dtype), transform, is_column=True)


def _two_classes(
    e: Emitter, w: Words, scores: Expr, forest: Forest, base: Array, names: Sequence[Any], transform: str, dtype: Any
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
    index = w.as_index(decisive > (0.5 if is_positive and not both else 0))
    label = index if both and not isinstance(names[0], str) else _labels(e, w, index, names)
    if second or len(base) == 2:
        return label, _transformed(w, _single(w, w.columns(zero if first else None, one), dtype), transform)
    if transform == "PROBIT":
        raise UnsupportedError(f"{origin(e.node)}: PROBIT of a single score for two classes has no meaning")
    if transform == "LOGISTIC":
        return label, w.sigmoid(_single(w, w.columns(-decisive, decisive), dtype))
    other = 1 - decisive if is_positive else -decisive
    return label, _single(w, w.columns(other, decisive), dtype)
