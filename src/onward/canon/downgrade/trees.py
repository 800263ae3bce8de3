"""TreeEnsemble of `ai.onnx.ml` 5 as a TreeEnsembleRegressor."""

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, refuse
from onward.graph.rewriter import needed, put, take

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
"""By number; the seventh is membership of a set, which older versions do not know."""
SUMS = ("AVERAGE", "SUM", "MIN", "MAX")
AFTER = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def as_regressor(node: ir.Node, op: Older) -> None:
    x, given = needed(node, 0), {name: attribute.value for name, attribute in node.attributes.items()}
    modes = [int(m) for m in given["nodes_modes"].numpy()]
    if any(m >= len(MODES) for m in modes):
        refuse("a node asks for the members of a set")
    flat = _Flat()
    for tree, root in enumerate(given["tree_roots"]):
        _tree(flat, given, modes, tree, int(root))
    splits, weights = given["nodes_splits"].numpy(), given["leaf_weights"].numpy()
    if splits.dtype == np.float64:
        refuse("it gives doubles, where older trees give floats")
    if splits.dtype == np.float16:
        splits, weights = splits.astype(np.float32), weights.astype(np.float32)
    values = np.array([0 if i is None else splits[i] for i in flat.split], splits.dtype)
    target_weights = np.array([weights[i] for i in flat.leaf], weights.dtype)
    for name in given:
        take(node, name)
    node.op_type, node.version = "TreeEnsembleRegressor", 3
    put(
        node,
        n_targets=int(given.get("n_targets", 1)),
        aggregate_function=SUMS[int(given.get("aggregate_function", 1))],
        post_transform=AFTER[int(given.get("post_transform", 0))],
        nodes_treeids=flat.tree,
        nodes_nodeids=flat.place,
        nodes_featureids=[0 if i is None else int(given["nodes_featureids"][i]) for i in flat.split],
        nodes_modes=["LEAF" if i is None else MODES[modes[i]] for i in flat.split],
        nodes_truenodeids=flat.true,
        nodes_falsenodeids=flat.false,
        target_treeids=flat.leaf_tree,
        target_nodeids=flat.leaf_place,
        target_ids=[int(given["leaf_targetids"][i]) for i in flat.leaf],
    )
    missing = given.get("nodes_missing_value_tracks_true")
    if missing is not None and len(missing):
        put(node, nodes_missing_value_tracks_true=[0 if i is None else int(missing[i]) for i in flat.split])
    put(node, nodes_values=[float(v) for v in values], target_weights=[float(w) for w in target_weights])
    if x.dtype == ir.DataType.FLOAT16:
        node.replace_input_with(0, op("Cast", x, to=ir.DataType.FLOAT))
        op.follow(node.outputs[0], "Cast", to=ir.DataType.FLOAT16)


class _Flat:
    """Nodes and leaves in one list, tree by tree."""

    def __init__(self) -> None:
        self.tree: list[int] = []
        self.place: list[int] = []
        self.split: list[int | None] = []
        self.true: list[int] = []
        self.false: list[int] = []
        self.leaf: list[int] = []
        self.leaf_tree: list[int] = []
        self.leaf_place: list[int] = []


def _tree(flat: _Flat, given: dict[str, Any], modes: list[int], tree: int, root: int) -> None:
    """Number the nodes of a tree in the order in which they are met."""
    leaves = list(given.get("nodes_trueleafs", [])), list(given.get("nodes_falseleafs", []))
    targets = list(given["nodes_truenodeids"]), list(given["nodes_falsenodeids"])
    start, place = len(flat.tree), 1
    pending: list[tuple[int, int | None, int | None]] = [(0, root, None)]
    if leaves[0][root] and leaves[1][root] and targets[0][root] == targets[1][root]:
        pending = [(0, None, int(targets[0][root]))]  # a tree of one leaf is a node with it on both sides
    rows: dict[int, tuple[int | None, int, int]] = {}
    while pending:
        number, split, leaf = pending.pop()
        if split is None:
            assert leaf is not None
            rows[number] = None, 0, 0
            flat.leaf.append(leaf)
            flat.leaf_tree.append(tree)
            flat.leaf_place.append(number)
            continue
        if place > 2 * len(modes) + 1:
            refuse("its nodes form a cycle")
        below = []
        for is_leaf, target in zip(leaves, targets, strict=True):
            below.append(place)
            goal = int(target[split])
            pending.append((place, None, goal) if is_leaf[split] else (place, goal, None))
            place += 1
        rows[number] = split, below[0], below[1]
    assert len(flat.tree) == start
    for number in sorted(rows):
        split, true, false = rows[number]
        flat.tree.append(tree)
        flat.place.append(number)
        flat.split.append(split)
        flat.true.append(true)
        flat.false.append(false)
