"""Trees as ONNX has them, for every library of boosted trees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.build import Builder, Tensor

Array = npt.NDArray[Any]
ML = "ai.onnx.ml"
AT_MOST, BELOW, MEMBER = 0, 1, 6
"""What a node asks, by ONNX's numbers: `x <= threshold`, `x < threshold`, whether x is in a set."""


@dataclass(frozen=True)
class Tree:
    """A tree; its inner nodes and its leaves are numbered apart, and the root is node 0.

    A row goes from a node to `passed` or to `failed`: another node, or where it is negative, the leaf `~n`.
    """

    feature: Array
    threshold: Array
    missing: Array
    """Whether a missing value (NaN) passes the test."""
    passed: Array
    failed: Array
    values: Array
    """What the leaves give: a number each, or a vector."""
    sets: Mapping[int, Array] = field(default_factory=dict)
    """The whole numbers that pass, of nodes that ask for membership."""
    target: int = 0

    @staticmethod
    def leaf(values: Array, target: int = 0) -> Tree:
        """A tree without a test: ONNX has it as a node that leads to its only leaf either way."""
        none = np.zeros(1, np.int64)
        return Tree(none, np.zeros(1), none.astype(bool), ~none, ~none, values, target=target)


def scores(op: Builder, x: Tensor, trees: Sequence[Tree], test: int, targets: int) -> Tensor:
    """For each target, the sum of what the leaves give that a row reaches: (rows, targets)."""
    dtype = x.dtype.numpy()
    nodes = np.cumsum([0, *(len(tree.feature) for tree in trees)])
    leaves = np.cumsum([0, *(len(tree.values) for tree in trees)])
    sets = {
        start + node: members for tree, start in zip(trees, nodes, strict=False) for node, members in tree.sets.items()
    }
    modes = np.full(nodes[-1], test, np.uint8)
    modes[list(sets)] = MEMBER
    members = [part for node in sorted(sets) for part in (sets[node], [np.nan])]
    listed: dict[str, Any] = {
        "leaf_targetids": np.repeat([tree.target for tree in trees], np.diff(leaves)),
        "nodes_featureids": np.concatenate([tree.feature for tree in trees]),
        "nodes_missing_value_tracks_true": np.concatenate([tree.missing for tree in trees]),
        "tree_roots": nodes[:-1],
    }
    for side, children in (("true", [tree.passed for tree in trees]), ("false", [tree.failed for tree in trees])):
        to = np.concatenate(children)
        owner = np.repeat(np.arange(len(trees)), np.diff(nodes))
        listed[f"nodes_{side}leafs"] = to < 0
        listed[f"nodes_{side}nodeids"] = np.where(to < 0, ~to + leaves[owner], to + nodes[owner])
    found = op.many(
        "TreeEnsemble",
        1,
        x,
        domain=ML,
        aggregate_function=1,
        leaf_weights=ir.Tensor(np.concatenate([tree.values for tree in trees]).astype(dtype)),
        membership_values=ir.Tensor(np.concatenate(members).astype(dtype)) if members else None,
        n_targets=targets,
        nodes_modes=ir.Tensor(modes),
        nodes_splits=ir.Tensor(np.concatenate([tree.threshold for tree in trees]).astype(dtype)),
        **{name: ir.AttrInt64s(name, numbers.astype(np.int64).tolist()) for name, numbers in listed.items()},
    )[0]
    found.value.shape = ir.Shape([*(x.dims or [None])[:1], targets])
    return found


def reached(op: Builder, x: Tensor, trees: Sequence[Tree], test: int) -> Tensor:
    """The leaf that a row reaches in each tree, the leaves of all trees numbered through: (rows, trees)."""
    numbered = [replace(tree, values=np.arange(len(tree.values)), target=i) for i, tree in enumerate(trees)]
    first = np.cumsum([0, *(len(tree.values) for tree in trees[:-1])])
    return scores(op, x, numbered, test, len(trees)).cast(ir.DataType.INT64) + op.ints(first.tolist())


def gathered(op: Builder, x: Tensor, trees: Sequence[Tree], test: int) -> Tensor:
    """As `scores`, for trees whose leaves give a vector, an element for each target."""
    table = np.concatenate([tree.values for tree in trees]).astype(x.dtype.numpy())
    return op.sum(op.Gather(op.constant(table), reached(op, x, trees, test)), [1], keepdims=False)


def changed(op: Builder, x: Tensor, features: Collection[int], change: Callable[[Tensor], Tensor]) -> Tensor:
    """`x` with the change made to some of its columns."""
    if not features:
        return x
    width = (x.dims or [None])[-1]
    assert isinstance(width, int)
    return op.Where(op.constant(np.isin(np.arange(width), list(features))), change(x), x)
