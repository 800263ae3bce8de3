"""Tree ensembles: which leaf each row reaches in each tree, then one lookup of what the leaves give.

What a framework says in its own way is a `Words`; the helpers are named alike in every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.errors import UnsupportedError
from onward.graph.origin import origin
from onward.spec.ml_trees import TESTS, Forest, TreeClassifier, TreeEnsemble, TreeRegressor

Array = np.ndarray[Any, Any]
Word = Callable[..., Expr]


@dataclass(frozen=True)
class Words:
    """How a framework says what classical models do with rows and columns of scores."""

    as_rows: Word
    """A tensor of two axes, of which the first may be new."""
    single: Word
    """In single precision."""
    as_index: Word
    """Truth values as the int64 numbers 0 and 1."""
    where: Word
    total: Word
    """(leaves, weights, aggregate): the SUM, AVERAGE, MIN or MAX of what the leaves of each row give, by target."""
    by_turns: Word
    """(values, rounds, targets): the sums of columns that belong to the targets in turn."""
    is_finite: Word
    best: Word
    """The column of the highest score of each row."""
    columns: Word
    """Two columns side by side; zeros for a first one that is None."""
    column: Word
    """(scores, k): column k, as a vector."""
    is_scored: Word
    """(leaves, given): whether any leaf that a row reaches gives something to each target."""
    softmax: Word
    sigmoid: Word


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
        return e.target.pick_strings(e.constant(np.array(names, object), "labels"), index, e.node)
    if list(names) == list(range(len(names))):
        return index
    return e.target.pick(e.constant(np.array(names, np.int64), "labels"), index)


def _rows(e: Emitter, w: Words, x: Expr) -> Expr:
    return x if e.rank(x) == 2 else w.as_rows(x)


def _float_rows(e: Emitter, w: Words, x: Expr) -> Expr:
    rows = _rows(e, w, x)
    return rows if e.dtype(x) in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else w.single(rows)


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
        given = e.target.pick(e.constant(weights.sum(1), "weights"), leaves)
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
    return w.is_scored(leaves, e.constant(~np.isnan(forest.weights), "given"))


def _single(w: Words, scores: Expr, forest: Forest) -> Expr:
    """Scores are given in single precision."""
    return w.single(scores) if forest.is_double else scores


def regressor(w: Words, e: Emitter, x: Expr, p: TreeRegressor) -> Expr:
    leaves = e.let(_leaves(e, _float_rows(e, w, x), p.forest), "leaves")
    scores = _single(w, _scores(e, w, leaves, p.forest, p.aggregate, p.base), p.forest)
    return _transformed(w, scores, p.transform, p.forest.weights.shape[1] == 1)


def ensemble(w: Words, e: Emitter, x: Expr, p: TreeEnsemble) -> Expr:
    scores = _scores(e, w, _leaves(e, _rows(e, w, x), p.forest), p.forest, p.aggregate)
    return _transformed(w, scores, p.transform, p.forest.weights.shape[1] == 1)


def classifier(w: Words, e: Emitter, x: Expr, p: TreeClassifier) -> tuple[Expr, Expr]:
    """One or two classes follow rules of their own, which ONNX leaves open; these are ONNX Runtime's.

    Among them: where both of two classes get scores, the labels are 0 and 1, unless they are strings.
    """
    leaves = e.let(_leaves(e, _float_rows(e, w, x), p.forest), "leaves")
    if len(p.labels) > 2:
        return _many_classes(e, w, leaves, p)
    scores = e.let(_scores(e, w, leaves, p.forest, "SUM"), "scores")
    return _one_class(e, w, scores, p) if len(p.labels) == 1 else _two_classes(e, w, scores, p)


def _many_classes(e: Emitter, w: Words, leaves: Expr, p: TreeClassifier) -> tuple[Expr, Expr]:
    """The label is that of the highest score among the classes that get one."""
    scores = _scores(e, w, leaves, p.forest, "SUM")
    ranked = scores = e.let(scores + e.constant(p.base, "base") if p.base.any() else scores, "scores")
    if not len(p.base) and not all(p.forest.scored()):
        ranked = w.where(_is_scored(e, w, leaves, p.forest), scores, -float("inf"))
    return _labels(e, w, w.best(ranked), p.labels), _transformed(w, _single(w, scores, p.forest), p.transform)


def _one_class(e: Emitter, w: Words, scores: Expr, p: TreeClassifier) -> tuple[Expr, Expr]:
    if isinstance(p.labels[0], str) or len(p.base) > 1:
        raise UnsupportedError(f"{origin(e.node)}: a single class with these labels or base values has no meaning")
    scores = e.let(scores + float(p.base[0]), "scores") if p.base.any() else scores
    return w.as_index(w.column(scores, 0) > 0), _transformed(
        w, _single(w, scores, p.forest), p.transform, is_column=True
    )


def _two_classes(e: Emitter, w: Words, scores: Expr, p: TreeClassifier) -> tuple[Expr, Expr]:
    first, second = p.forest.scored()
    if second is None or first is None:
        raise UnsupportedError(f"{origin(e.node)}: of two classes, some leaves of a tree give a score to one only")
    zero, one = w.column(scores, 0), w.column(scores, 1)
    is_positive = not (p.forest.weights < 0).any()
    if len(p.base) == 2 and second:
        one = e.let(zero + float(p.base[1]))
        zero = -one
    elif len(p.base):
        zero = zero + float(p.base[0]) if first and p.base[0] else zero
    decisive = e.let(one if second else zero)
    both = bool(first and second)
    index = w.as_index(decisive > (0.5 if is_positive and not both else 0))
    label = index if both and not isinstance(p.labels[0], str) else _labels(e, w, index, p.labels)
    if second or len(p.base) == 2:
        return label, _transformed(w, _single(w, w.columns(zero if first else None, one), p.forest), p.transform)
    if p.transform == "PROBIT":
        raise UnsupportedError(f"{origin(e.node)}: PROBIT of a single score for two classes has no meaning")
    if p.transform == "LOGISTIC":
        return label, w.sigmoid(_single(w, w.columns(-decisive, decisive), p.forest))
    other = 1 - decisive if is_positive else -decisive
    return label, _single(w, w.columns(other, decisive), p.forest)


def rules(w: Words) -> dict[str, Rule]:
    """The rules of a backend that says it so."""
    return {
        "ai.onnx.ml::TreeEnsembleRegressor": lambda e, x, p: regressor(w, e, x, p),
        "ai.onnx.ml::TreeEnsemble": lambda e, x, p: ensemble(w, e, x, p),
        "ai.onnx.ml::TreeEnsembleClassifier": lambda e, x, p: classifier(w, e, x, p),
    }
