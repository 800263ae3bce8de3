"""The parts of estimators that scikit-learn computes with in C, where a number too large reads memory at random.

A file is checked for them once it is opened, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onward.errors import InvalidModelError


def check_parts(estimator: Any) -> None:
    """Refuse an estimator that has a damaged part."""
    for part in _parts(estimator):
        for base in type(part).__mro__:
            is_sound = CHECKS.get(f"{base.__module__}.{base.__qualname__}")
            if is_sound is not None and not is_sound(part):
                raise InvalidModelError(f"it is damaged: a {type(part).__name__} in it leads outside of itself")


def has_function(estimator: Any) -> bool:
    """Whether a FunctionTransformer in it calls a function of the user's, which is given data frames as they come."""
    return any(_is_function(part) for part in _parts(estimator))


def _is_function(part: Any) -> bool:
    name = type(part).__name__
    if name != "FunctionTransformer" or not type(part).__module__.startswith("sklearn.") or part.func is None:
        return False
    inner = getattr(part.func, "func", part.func)
    return not isinstance(inner, np.ufunc) and not str(getattr(inner, "__module__", "")).startswith("sklearn.")


def _parts(whole: Any) -> Iterator[Any]:
    """Everything that an object is made of, itself included."""
    waiting, seen = [whole], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | None | type):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple | set):
            waiting += part
        elif isinstance(part, np.ndarray):
            waiting += part.reshape(-1).tolist() if part.dtype.kind == "O" else []
        else:
            waiting += getattr(part, "__dict__", {}).values()


def _within(numbers: Any, start: Any, end: Any) -> bool:
    array = np.asarray(numbers)
    return bool(((array >= start) & (array < end)).all())


def _is_tree(tree: Any) -> bool:
    """Children come after their parent, and are there."""
    count = tree.node_count
    if not 0 < count <= tree.capacity:
        return False
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    inner = np.flatnonzero(left != -1)
    return (
        bool((right[left == -1] == -1).all())
        and _within(left[inner], inner + 1, count)
        and _within(right[inner], inner + 1, count)
        and _within(np.asarray(tree.feature)[inner], 0, tree.n_features)
    )


def _is_predictor(predictor: Any) -> bool:
    nodes = predictor.nodes
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    found = nodes[inner]
    sets = found["bitset_idx"][found["is_categorical"] != 0]
    kept = min(len(predictor.binned_left_cat_bitsets), len(predictor.raw_left_cat_bitsets))
    return (
        len(nodes) > 0
        and _within(found["left"].astype(np.int64), inner + 1, len(nodes))
        and _within(found["right"].astype(np.int64), inner + 1, len(nodes))
        and _within(found["feature_idx"], 0, 1 << 31)
        and _within(sets, 0, kept)
    )


def _is_neighbourhood(tree: Any) -> bool:
    """A tree of points: its nodes are ranges of an order of the points."""
    points, order, nodes, _, _, levels, count = tree.__getstate__()[:7]
    rows = len(points)
    return (
        len(order) == rows
        and count == len(nodes) == 2**levels - 1
        and _within(order, 0, rows)
        and _within(nodes["idx_start"], 0, rows + 1)
        and _within(nodes["idx_end"], 0, rows + 1)
    )


def _is_machine(machine: Any) -> bool:
    """Of a support vector machine: each vector belongs to a class, if there are any, and has its coefficients."""
    counts, rows = np.asarray(machine._n_support), machine.support_vectors_.shape[0]
    of_classes = machine._impl in ("c_svc", "nu_svc")
    pairs = len(counts) * (len(counts) - 1) // 2
    return (
        bool((counts >= 0).all())
        and (int(counts.sum()) == rows if of_classes else bool((counts == rows).all()))
        and machine._dual_coef_.shape == (len(counts) - 1, rows)
        and len(machine._intercept_) == pairs
        and len(machine._probA) in (0, pairs)
    )


CHECKS: dict[str, Callable[[Any], bool]] = {
    "sklearn.tree._tree.Tree": _is_tree,
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": _is_predictor,
    "sklearn.neighbors._kd_tree.BinaryTree64": _is_neighbourhood,
    "sklearn.neighbors._kd_tree.BinaryTree32": _is_neighbourhood,
    "sklearn.neighbors._ball_tree.BinaryTree64": _is_neighbourhood,
    "sklearn.neighbors._ball_tree.BinaryTree32": _is_neighbourhood,
    "sklearn.svm._base.BaseLibSVM": _is_machine,
}
"""Whether a part is sound, by the full name of its class."""
