"""What the text of a LightGBM model means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onward.errors import InvalidModelError, UnsupportedError
from onward.formats.lightgbm_text import CATEGORICAL, parsed
from onward.frontends.boosting.trees import Array, Tree

DEFAULT_LEFT = 2
"""A bit of what a node decides by; those above say what is missing to it."""
NOTHING, ZEROS = 0, 1
"""What is missing to a node: nothing, so that NaN is zero; zero and NaN; or by another number, NaN."""
ZERO = float(np.float32(1e-35))
"""Numbers no larger than this are zero to LightGBM."""
WORD = 32
"""Bits of one number of a set."""

Fields = Mapping[str, Array]


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
    options: Mapping[str, str]
    """Of the objective."""
    is_average: bool
    zero_is_missing: set[int]
    """Features of which zeros are missing values."""
    categorical: set[int]


def read(text: str) -> Forest:
    model = parsed(text)
    if not model.trees:
        raise InvalidModelError("the LightGBM model has no trees")
    targets = int(model.header["num_tree_per_iteration"])
    objective, *options = model.header.get("objective", "").split() or [""]
    named = (option.partition(":") for option in options)
    zero, categorical = _kinds([tree for tree in model.trees if len(tree["leaf_value"]) > 1])
    return Forest(
        model.features,
        targets,
        [_tree(fields, number % targets) for number, fields in enumerate(model.trees)],
        _linear(model.trees),
        objective,
        {name: value for name, _, value in named},
        "average_output" in model.header,
        zero,
        categorical,
    )


def _kinds(trees: Sequence[Fields]) -> tuple[set[int], set[int]]:
    """The features of which zeros are missing, and the categorical ones, which have to be so at every node."""
    features = np.concatenate([[], *(tree["split_feature"] for tree in trees)]).astype(np.int64)
    decisions = np.concatenate([[], *(tree["decision_type"] for tree in trees)]).astype(np.int64)
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
    values = fields["leaf_value"].astype(np.float64)
    if len(values) == 1:
        return Tree.leaf(values, target)
    decisions, thresholds = fields["decision_type"], fields["threshold"].astype(np.float64)
    is_set = decisions & CATEGORICAL != 0
    nan_is_zero = decisions >> 2 == NOTHING
    missing = np.where(nan_is_zero, thresholds >= 0, decisions & DEFAULT_LEFT != 0) & ~is_set
    sets = {}
    for node in np.flatnonzero(is_set):
        number = int(thresholds[node])
        start, end = fields["cat_boundaries"][number : number + 2]
        sets[int(node)] = _members(fields["cat_threshold"][start:end])
    return Tree(
        fields["split_feature"],
        np.where(is_set, 0, _around_zero(thresholds)),
        missing,
        fields["left_child"],
        fields["right_child"],
        values,
        sets,
        target,
    )


def _around_zero(thresholds: Array) -> Array:
    """The same thresholds for numbers of which small ones are not yet zero: these pass all together, or none does."""
    moved = np.where((thresholds >= 0) & (thresholds < ZERO), ZERO, thresholds)
    return np.where((thresholds < 0) & (thresholds >= -ZERO), np.nextafter(-ZERO, -np.inf), moved)


def _members(words: Array) -> Array:
    return np.flatnonzero(words[:, None] >> np.arange(WORD) & 1)


def _linear(trees: Sequence[Fields]) -> Linear | None:
    """The functions at the leaves, if any tree has them."""
    has_them = [bool(tree["is_linear"][0]) if "is_linear" in tree else False for tree in trees]
    if not any(has_them):
        return None
    constants, features, coefficients = [], [], []
    for tree, is_linear in zip(trees, has_them, strict=True):
        value = tree["leaf_value"]
        ends = np.cumsum(tree["num_features"] if is_linear else np.zeros(len(value), np.int64))[:-1]
        features += np.split(tree["leaf_features"] if is_linear else np.zeros(0, np.int64), ends)
        coefficients += np.split(tree["leaf_coeff"] if is_linear else np.zeros(0), ends)
        constants.append(tree["leaf_const"] if is_linear else value)
    return Linear(np.concatenate(constants), features, coefficients, np.concatenate([t["leaf_value"] for t in trees]))
