"""Decision trees and ensembles of them, as ONNX's TreeEnsemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.boosting.trees import AT_MOST, Tree, gathered, reached, scores
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.rules.linear import decided
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor

Array = npt.NDArray[Any]


def plain(fitted: Any, values: Array, features: Array | None = None) -> Tree:
    """A tree of scikit-learn, with what its nodes give; it may have been fitted on some of the features."""
    tree = fitted.tree_
    feature = tree.feature if features is None else np.asarray(features)[np.maximum(tree.feature, 0)]
    return made(
        tree.children_left, tree.children_right, feature, tree.threshold, tree.missing_go_to_left != 0, values, {}
    )


def made(
    left: Array, right: Array, feature: Array, threshold: Array, missing: Array, values: Array, sets: dict[int, Array]
) -> Tree:
    """Nodes of all kinds are numbered together, and a leaf leads nowhere (-1): ONNX has leaves apart."""
    ends = left < 0
    inner = np.flatnonzero(~ends)
    if not len(inner):
        return Tree.leaf(values)
    number = np.where(ends, ~(np.cumsum(ends) - 1), np.cumsum(~ends) - 1)
    own = {int(number[node]): members for node, members in sets.items()}
    rows = (feature[inner], threshold[inner], missing[inner], number[left[inner]], number[right[inner]])
    return Tree(*rows, values[ends], own)


def summed(op: Writer, x: Tensor, trees: Sequence[Tree]) -> Tensor:
    """The sum, over all trees, of the vectors that their leaves give: (batch, targets)."""
    if trees[0].values.shape[1] > 1:
        return gathered(op, x, trees, AT_MOST)
    return scores(op, x, [replace(tree, values=tree.values[:, 0]) for tree in trees], AT_MOST, 1)


def narrowed(op: Writer, x: Tensor) -> Tensor:
    """As trees of scikit-learn take numbers: rounded to float32."""
    return x.cast(ir.DataType.FLOAT).cast(op.real)


def _values(fitted: Any) -> Array:
    """(nodes, outputs, classes)."""
    return np.asarray(fitted.tree_.value, np.float64)


@rule("DecisionTreeRegressor", "ExtraTreeRegressor")
def regression_tree(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _regressed(op, model, x, [model])


@rule("ExtraTreesRegressor", "RandomForestRegressor")
def regression_forest(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _regressed(op, model, x, model.estimators_)


def _regressed(op: Writer, model: Any, x: Tensor, members: Sequence[Any]) -> Outputs:
    found = summed(op, narrowed(op, x), [plain(one, _values(one)[:, :, 0] / len(members)) for one in members])
    return {"predict": op.flat(found) if model.n_outputs_ == 1 else found}


@rule("DecisionTreeClassifier", "ExtraTreeClassifier")
def classification_tree(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _classified(op, model, x, [model])


@rule("ExtraTreesClassifier", "RandomForestClassifier")
def classification_forest(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _classified(op, model, x, model.estimators_)


def _classified(op: Writer, model: Any, x: Tensor, members: Sequence[Any]) -> Outputs:
    """Probabilities, of several outputs one after the other; the label is that of the largest."""
    several = model.n_outputs_ > 1
    classes = model.classes_ if several else [model.classes_]
    trees = [plain(one, _values(one)) for one in members]
    leaves = reached(op, narrowed(op, x), trees, AT_MOST)
    table = np.concatenate([tree.values for tree in trees])
    found: Outputs = {}
    labels = []
    for i, known in enumerate(classes):
        counts = table[:, i, : len(known)]
        chances = op.mean(op.Gather(op.reals(counts / counts.sum(axis=1, keepdims=True)), leaves, axis=0), 1)
        found[f"predict_proba_{i}" if several else "predict_proba"] = chances
        labels.append(op.labels(known, op.argmax(chances)))
    if not several:
        return found | {"predict": labels[0]}
    return found | {"predict": op.hstack([op.column(label) for label in labels])}


@rule("RandomTreesEmbedding")
def embedding(op: Writer, model: Any, x: Tensor) -> Outputs:
    trees = [plain(one, np.arange(one.tree_.node_count)) for one in model.estimators_]
    leaves = reached(op, narrowed(op, x), trees, AT_MOST)
    nodes = op.Gather(op.constant(np.concatenate([tree.values for tree in trees])), leaves, axis=0)
    seen = enumerate(model.one_hot_encoder_.categories_)
    parts = [op.Equal(op.take(nodes, [i]), op.ints(known)) for i, known in seen]
    return {"transform": op.hstack(parts).cast(op.real)}


@rule("GradientBoostingRegressor")
def boosted_regression(op: Writer, model: Any, x: Tensor) -> Outputs:
    return {"predict": op.flat(_raw(op, model, x))}


@rule("GradientBoostingClassifier")
def boosted_classification(op: Writer, model: Any, x: Tensor) -> Outputs:
    raw = _raw(op, model, x)
    binary = model.n_trees_per_iteration_ == 1
    if binary:
        raw = op.flat(raw)
        inner = raw * 2.0 if model.loss == "exponential" else raw
        chances = op.pair(op.sigmoid(inner))
        index = (raw >= 0).cast(ir.DataType.INT64)
        return {"predict": op.labels(model.classes_, index), "decision_function": raw, "predict_proba": chances}
    return decided(op, model, raw) | {"predict_proba": op.Softmax(raw, axis=1)}


def _raw(op: Writer, model: Any, x: Tensor) -> Tensor:
    """The first prediction and what the trees of each stage add to it."""
    narrow = narrowed(op, x)
    count = model.estimators_.shape[1]
    parts = []
    for k in range(count):
        stages = model.estimators_[:, k]
        parts.append(summed(op, narrow, [plain(one, _values(one)[:, :, 0] * model.learning_rate) for one in stages]))
    found = op.hstack(parts)
    return found if isinstance(model.init_, str) else found + _first(op, model, narrow)


def _first(op: Writer, model: Any, x: Tensor) -> Tensor:
    """What the initial estimator predicts, as raw scores; it is the same for all rows unless the user gave one."""
    from sklearn.base import is_classifier
    from sklearn.ensemble._gb import _init_raw_predictions

    if not type(model.init_).__name__.startswith("Dummy"):
        if is_classifier(model):
            raise UnsupportedError("a boosted classifier that starts from another estimator has no rule")
        return op.column(op.predict(model.init_, x))
    row = np.zeros((1, model.n_features_in_), np.float32)
    return op.reals(_init_raw_predictions(row, model.init_, model._loss, is_classifier(model)))


@rule("HistGradientBoostingRegressor", as_given=True)
def histogram_regression(op: Writer, model: Any, x: Any) -> Outputs:
    raw = op.flat(_histogram_raw(op, model, x))
    link = type(model._loss.link).__name__
    if link not in ("LogLink", "IdentityLink"):
        raise UnsupportedError(f"HistGradientBoostingRegressor: the link function {link} has no rule")
    return {"predict": op.Exp(raw) if link == "LogLink" else raw}


@rule("HistGradientBoostingClassifier", as_given=True)
def histogram_classification(op: Writer, model: Any, x: Any) -> Outputs:
    raw = _histogram_raw(op, model, x)
    if model.n_trees_per_iteration_ == 1:
        scores = op.flat(raw)
        return decided(op, model, scores) | {"predict_proba": op.pair(op.sigmoid(scores))}
    return decided(op, model, raw) | {"predict_proba": op.Softmax(raw, axis=1)}


def _histogram_raw(op: Writer, model: Any, x: Any) -> Tensor:
    data = op.transform(model._preprocessor, x) if model._preprocessor is not None else op.matrix(x)
    numbers = op.number(data)
    parts = []
    for k in range(model.n_trees_per_iteration_):
        stages = [stage[k] for stage in model._predictors]
        parts.append(summed(op, numbers, [_histogram_tree(one) for one in stages]))
    return op.hstack(parts) + op.reals(np.asarray(model._baseline_prediction).reshape(1, -1))


def _histogram_tree(fitted: Any) -> Tree:
    nodes = fitted.nodes
    inner = ~nodes["is_leaf"].astype(bool)
    left, right = (np.where(inner, nodes[side].astype(np.int64), -1) for side in ("left", "right"))
    members = {}
    for number in np.flatnonzero(inner & nodes["is_categorical"].astype(bool)):
        words = fitted.raw_left_cat_bitsets[nodes["bitset_idx"][number]]
        members[int(number)] = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    feature, missing = nodes["feature_idx"].astype(np.int64), nodes["missing_go_to_left"].astype(bool)
    values = np.asarray(nodes["value"], np.float64)[:, np.newaxis]
    return made(left, right, feature, nodes["num_threshold"], missing, values, members)


@rule("IsolationForest")
def isolation(op: Writer, model: Any, x: Tensor) -> Outputs:
    from sklearn.ensemble._iforest import _average_path_length

    depths = [
        np.asarray(path + rest - 1.0, np.float64)[:, np.newaxis]
        for path, rest in zip(model._decision_path_lengths, model._average_path_length_per_tree, strict=True)
    ]
    parts = zip(model.estimators_, depths, model.estimators_features_, strict=True)
    trees = [plain(one, depth, features) for one, depth, features in parts]
    total = op.flat(summed(op, narrowed(op, x), trees))
    whole = len(trees) * float(_average_path_length([model._max_samples])[0])
    scores = -op.Exp(total * float(-np.log(2.0) / whole)) - float(model.offset_)
    return {"predict": op.sign(scores), "decision_function": scores}
