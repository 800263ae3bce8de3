"""The text that LightGBM saves a model as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.errors import InvalidModelError, UnsupportedError
from onward.frontends.boosting.trees import Array, Tree

CATEGORICAL, DEFAULT_LEFT = 1, 2
"""Bits of what a node decides by; those above say what is missing to it."""
NOTHING, ZEROS = 0, 1
"""What is missing to a node: nothing, so that NaN is zero; zero and NaN; or by another number, NaN."""
ZERO = float(np.float32(1e-35))
"""Numbers no larger than this are zero to LightGBM."""
WORD = 32
"""Bits of one number of a set."""

Fields = Mapping[str, str]


@dataclass(frozen=True)
class Linear:
    """Leaves, of all trees, that give a linear function of features; their value where one of these is missing."""

    constants: Array
    features: list[Array]
    coefficients: list[Array]
    values: Array


@dataclass(frozen=True)
class Forest:
    """A model of LightGBM."""

    features: int
    targets: int
    """The trees of one iteration."""
    trees: list[Tree]
    linear: Linear | None
    objective: str
    """Empty for one of the user's own."""
    options: Fields
    """Of the objective."""
    is_average: bool
    zero_is_missing: set[int]
    """Features of which zeros are missing values."""
    categorical: set[int]


def read(text: str) -> Forest:
    head, *parts = text.partition("\nend of trees")[0].split("\nTree=")
    header, own = _fields(head), [_fields(part) for part in parts]
    if not own:
        raise InvalidModelError("the LightGBM model has no trees")
    targets = int(header["num_tree_per_iteration"])
    objective, *options = header.get("objective", "").split() or [""]
    named = (option.partition(":") for option in options)
    zero, categorical = _kinds(own)
    return Forest(
        int(header["max_feature_idx"]) + 1,
        targets,
        [_tree(fields, number % targets) for number, fields in enumerate(own)],
        _linear(own),
        objective,
        {name: value for name, _, value in named},
        "average_output" in header,
        zero,
        categorical,
    )


def _fields(lines: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines.splitlines())
    return {name: value for name, _, value in pairs if name}


def _numbers(fields: Fields, name: str, dtype: Any) -> Array:
    return np.array(fields.get(name, "").split(), dtype)


def _kinds(trees: list[dict[str, str]]) -> tuple[set[int], set[int]]:
    """The features of which zeros are missing, and the categorical ones, which have to be so at every node."""
    features = np.concatenate([_numbers(tree, "split_feature", np.int64) for tree in trees])
    decisions = np.concatenate([_numbers(tree, "decision_type", np.int64) for tree in trees])
    is_categorical = decisions & CATEGORICAL != 0
    is_zero = ~is_categorical & (decisions >> 2 == ZEROS)
    kinds = []
    for chosen in (is_zero, is_categorical):
        found = set(features[chosen].tolist())
        if mixed := found & set(features[~chosen].tolist()):
            raise UnsupportedError(f"feature {min(mixed)} is of one kind in some trees and of another in others")
        kinds.append(found)
    return kinds[0], kinds[1]


def _tree(fields: Fields, target: int) -> Tree:
    values = _numbers(fields, "leaf_value", np.float64)
    if len(values) == 1:
        return Tree.leaf(values, target)
    decisions = _numbers(fields, "decision_type", np.int64)
    thresholds = _numbers(fields, "threshold", np.float64)
    is_set = decisions & CATEGORICAL != 0
    nan_is_zero = decisions >> 2 == NOTHING
    missing = np.where(nan_is_zero, thresholds >= 0, decisions & DEFAULT_LEFT != 0) & ~is_set
    ends = _numbers(fields, "cat_boundaries", np.int64)
    words = _numbers(fields, "cat_threshold", np.uint32)
    sets = {}
    for node in np.flatnonzero(is_set):
        number = int(thresholds[node])
        sets[int(node)] = _members(words[ends[number] : ends[number + 1]])
    return Tree(
        _numbers(fields, "split_feature", np.int64),
        np.where(is_set, 0, _around_zero(thresholds)),
        missing,
        _numbers(fields, "left_child", np.int64),
        _numbers(fields, "right_child", np.int64),
        values,
        sets,
        target,
    )


def _around_zero(thresholds: Array) -> Array:
    """The same thresholds for numbers of which small ones are not yet zero: these pass all together, or none does."""
    moved = np.where((thresholds >= 0) & (thresholds < ZERO), ZERO, thresholds)
    return np.where((thresholds < 0) & (thresholds >= -ZERO), np.nextafter(-ZERO, -np.inf), moved)


def _members(words: Array) -> Array:
    bits = words[:, None] >> np.arange(WORD, dtype=np.uint32) & 1
    return np.flatnonzero(bits)


def _linear(trees: list[dict[str, str]]) -> Linear | None:
    """The functions at the leaves, if any tree has them."""
    if not any(int(tree.get("is_linear", 0)) for tree in trees):
        return None
    constants, values, features, coefficients = [], [], [], []
    for tree in trees:
        value = _numbers(tree, "leaf_value", np.float64)
        is_linear = int(tree.get("is_linear", 0))
        counts = _numbers(tree, "num_features", np.int64) if is_linear else np.zeros(len(value), np.int64)
        ends = np.cumsum(counts)[:-1]
        features += np.split(_numbers(tree, "leaf_features", np.int64), ends)
        coefficients += np.split(_numbers(tree, "leaf_coeff", np.float64), ends)
        constants.append(_numbers(tree, "leaf_const", np.float64) if is_linear else value)
        values.append(value)
    return Linear(np.concatenate(constants), features, coefficients, np.concatenate(values))
