"""Tree ensembles: the three ways in which ONNX lists trees, as one table of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.gate.bounds import check_room
from onward.spec.meaning import Spec, attributes, means

Array = npt.NDArray[Any]

TESTS = ("<=", "<", ">=", ">", "==", "!=", "in")
"""What a node asks of a feature and its threshold, in the order of ONNX's numbers for them."""

LEAF = len(TESTS)
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass(frozen=True)
class Forest:
    """All nodes of all trees, numbered through; the leaves come last and lead to themselves.

    A row of the input goes from node n to `children[n, 1]` if its feature passes the test, else to `children[n, 0]`.
    """

    feature: Array
    threshold: Array
    test: Array
    """The index in `TESTS` of what the node asks. For "in", the threshold is a row of `sets`."""
    missing: Array
    """Whether a missing value (NaN) passes the test."""
    children: Array
    roots: Array
    depth: int
    """How many steps lead from any root to a leaf."""
    sets: Array
    """Members of the sets that nodes ask for, one set a row, filled up with NaN."""
    weights: Array
    """What each leaf gives to each target, or NaN where it gives nothing: (leaves, targets)."""

    @property
    def first_leaf(self) -> int:
        return len(self.feature) - len(self.weights)

    @property
    def is_double(self) -> bool:
        """Whether features are compared in double precision."""
        return self.threshold.dtype == np.float64

    def scored(self) -> list[bool | None]:
        """For each target: whether all rows get a score (True), none does (False), or some do (None)."""
        given = ~np.isnan(self.weights)
        sure = np.ones((len(self.feature), given.shape[1]), bool)
        sure[self.first_leaf :] = given
        if not given.all():
            for _ in range(self.depth):
                sure &= sure[self.children].all(1)
        always, ever = sure[self.roots].max(0).tolist(), given.max(0).tolist()
        return [True if a else None if e else False for a, e in zip(always, ever, strict=True)]

    def take_turns(self) -> bool:
        """Whether the first tree gives to the first target only, the next to the next, and so on, round and round."""
        given, targets = ~np.isnan(self.weights), self.weights.shape[1]
        owner = np.full(len(self.feature), -1)
        owner[self.roots] = np.arange(len(self.roots))
        visited = level = self.roots
        for _ in range(self.depth):
            level = level[level < self.first_leaf]
            owner[self.children[level]] = owner[level][:, None]
            level = self.children[level].ravel()
            visited = np.concatenate([visited, level])
        trees = owner[self.first_leaf :]
        fits = (given.sum(1) == 1) & ((given.argmax(1) == trees % targets) | (trees < 0))
        is_shared = len(np.unique(visited)) < len(visited)
        return bool(fits.all()) and not is_shared and len(self.roots) % targets == 0


@dataclass(frozen=True)
class Trees(Spec):
    """`aggregate`: how the trees' scores for a target are combined; `transform`: what becomes of them then."""

    forest: Forest
    aggregate: str
    transform: str
    base: Array | None = None
    """What is added to the score of each target."""


@means("ai.onnx.ml::TreeEnsembleRegressor")
class TreeRegressor(Trees):
    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given, dtype = attributes(node), _precision(node)
        targets, aggregate = given["n_targets"], given.get("aggregate_function", "SUM")
        forest, base = forest_of_nodes(given, "target", targets, dtype), _attribute(given, "base_values", dtype)
        return cls(forest, aggregate, given.get("post_transform", "NONE"), base if len(base) == targets else None)


@means("ai.onnx.ml::TreeEnsemble")
class TreeEnsemble(Trees):
    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        aggregate, transform = given.get("aggregate_function", 1), given.get("post_transform", 0)
        return cls(forest_of_leaves(given), AGGREGATES[aggregate], TRANSFORMS[transform])


@means("ai.onnx.ml::TreeEnsembleClassifier")
@dataclass(frozen=True)
class TreeClassifier(Spec):
    forest: Forest
    labels: Sequence[Any]
    transform: str
    base: Array

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given, dtype = attributes(node), _precision(node)
        labels = given.get("classlabels_strings") or given.get("classlabels_int64s", ())
        forest = forest_of_nodes(given, "class", len(labels), dtype)
        return cls(forest, labels, given.get("post_transform", "NONE"), _attribute(given, "base_values", dtype))


def _precision(node: ir.Node) -> Any:
    """The numpy type that thresholds are compared in."""
    x = node.inputs[0]
    return np.float64 if x is not None and x.dtype == ir.DataType.DOUBLE else np.float32


def _depth(children: Array, roots: Array, first_leaf: int) -> int:
    """The longest way from a root to a leaf; refuses trees that lead in circles."""
    inner = children[:first_leaf]
    parents = np.bincount(inner[inner < first_leaf], minlength=first_leaf)
    ready = np.flatnonzero(parents == 0)
    level = np.zeros(len(children), np.int64)
    seen = 0
    while len(ready):
        seen += len(ready)
        below = inner[ready]
        np.maximum.at(level, below.ravel(), np.repeat(level[ready], 2) + 1)
        targets, counts = np.unique(below[below < first_leaf], return_counts=True)
        parents[targets] -= counts
        ready = targets[parents[targets] == 0]
    if seen < first_leaf:
        raise InvalidModelError("a tree of the ensemble leads in a circle")
    return int(level.max(initial=0))


def _forest(
    feature: Array,
    threshold: Array,
    test: Array,
    missing: Array,
    children: Array,
    roots: Array,
    sets: Array,
    leaf: Array,
    weights: Array,
) -> Forest:
    """Number the nodes so that leaves, in the order of `weights`, come last."""
    order = np.concatenate([np.flatnonzero(~leaf), np.flatnonzero(leaf)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    children = np.where(leaf[:, None], np.arange(len(order))[:, None], children)
    moved = place[children[order]]
    roots = place[roots]
    first_leaf = int((~leaf).sum())
    depth = _depth(moved, roots, first_leaf)
    feature = np.where(leaf, 0, feature)[order]
    return Forest(feature, threshold[order], test[order], missing[order], moved, roots, depth, sets, weights)


def _same_length(arrays: Mapping[str, Array], names: Sequence[str]) -> None:
    if len({len(arrays[name]) for name in names}) != 1:
        raise InvalidModelError(f"the attributes {', '.join(names)} differ in length")


_NODES = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")


def forest_of_nodes(given: Mapping[str, Any], kind: str, targets: int, dtype: Any) -> Forest:
    """The trees of TreeEnsembleRegressor (`kind` "target") or TreeEnsembleClassifier ("class")."""
    nodes = {name: _attribute(given, f"nodes_{name}", dtype) for name in _NODES}
    _same_length(nodes, _NODES)
    tree, number = nodes["treeids"], nodes["nodeids"]
    index = {key: i for i, key in enumerate(zip(tree.tolist(), number.tolist(), strict=True))}
    if len(index) < len(tree):
        raise InvalidModelError("two nodes of a tree have the same number")
    leaf = np.array([mode == "LEAF" for mode in nodes["modes"]], bool)
    test = np.array([_MODES.index(m) if m in _MODES else _MODES.index("BRANCH_NEQ") for m in nodes["modes"]])
    children = np.zeros((len(tree), 2), np.int64)
    for column, name in ((1, "truenodeids"), (0, "falsenodeids")):
        for i in np.flatnonzero(~leaf):
            child = index.get((int(tree[i]), int(nodes[name][i])))
            if child is None:
                raise InvalidModelError(f"node {number[i]} of tree {tree[i]} leads to a node that does not exist")
            children[i, column] = child
    tracks = np.asarray(given.get("nodes_missing_value_tracks_true") or [], np.int64)
    missing = np.zeros(len(tree), bool)
    missing[: len(tracks)] = tracks[: len(tree)] == 1
    roots = np.flatnonzero(np.diff(tree, prepend=tree[:1] - 1) != 0)
    weights = _weights(given, kind, targets, dtype, index, leaf)
    none = np.zeros((0, 0), dtype)
    return _forest(nodes["featureids"], nodes["values"], test, missing, children, roots, none, leaf, weights)


def _attribute(given: Mapping[str, Any], name: str, dtype: Any) -> Array:
    """A list attribute, or the tensor that stands for it (`…_as_tensor`), or nothing."""
    tensor = given.get(f"{name}_as_tensor")
    value = tensor.numpy() if tensor is not None else given.get(name)
    value = [] if value is None else value
    is_number = name.endswith(("values", "weights"))
    return np.asarray(value, dtype if is_number else None if name.endswith("modes") else np.int64)


def _weights(
    given: Mapping[str, Any], kind: str, targets: int, dtype: Any, index: Mapping[tuple[int, int], int], leaf: Array
) -> Array:
    names = ("treeids", "nodeids", "ids", "weights")
    entries = {name: _attribute(given, f"{kind}_{name}", dtype) for name in names}
    _same_length(entries, names)
    if not ((entries["ids"] >= 0) & (entries["ids"] < targets)).all():
        raise InvalidModelError(f"an element of {kind}_ids is not below {targets}")
    try:
        place = [index[key] for key in zip(entries["treeids"].tolist(), entries["nodeids"].tolist(), strict=True)]
    except KeyError:
        raise InvalidModelError(f"an element of {kind}_nodeids is no node of the tree") from None
    nodes = np.array(place, np.int64)
    kept = leaf[nodes] if len(nodes) else np.zeros(0, bool)
    rows = (np.cumsum(leaf) - 1)[nodes[kept]] if len(nodes) else nodes
    return _table(rows, entries["ids"][kept], entries["weights"][kept], int(leaf.sum()), targets, _combined(given))


def _combined(given: Mapping[str, Any]) -> str:
    """How two weights that one leaf gives to one target add up."""
    function = str(given.get("aggregate_function", "SUM"))
    return function if function in ("MIN", "MAX") else "SUM"


def _table(rows: Array, columns: Array, values: Array, leaves: int, targets: int, combined: str) -> Array:
    combine: Any
    combine, start = {"MIN": (np.minimum, np.inf), "MAX": (np.maximum, -np.inf), "SUM": (np.add, 0.0)}[combined]
    check_room("what each leaf gives to each target", (leaves, targets), values.dtype.itemsize, values.nbytes)
    table = np.full((leaves, targets), start, values.dtype)
    combine.at(table, (rows, columns), values)
    given = np.zeros((leaves, targets), bool)
    given[rows, columns] = True
    table[~given] = np.nan
    return table


def forest_of_leaves(given: Mapping[str, Any]) -> Forest:
    """The trees of TreeEnsemble, which lists inner nodes and leaves apart."""
    splits, modes = given["nodes_splits"].numpy(), given["nodes_modes"].numpy().astype(np.int64)
    leaf_weights, leaf_targets = given["leaf_weights"].numpy(), np.asarray(given["leaf_targetids"], np.int64)
    inner, leaves, targets = len(modes), len(leaf_weights), int(given["n_targets"])
    children = np.zeros((inner + leaves, 2), np.int64)
    for column, side in ((1, "true"), (0, "false")):
        ids, ends = np.asarray(given[f"nodes_{side}nodeids"]), np.asarray(given[f"nodes_{side}leafs"]) != 0
        limit = np.where(ends, leaves, inner)
        if len(ids) != inner or len(ends) != inner or not ((ids >= 0) & (ids < limit)).all():
            raise InvalidModelError(f"nodes_{side}nodeids do not fit the nodes and leaves of the ensemble")
        children[:inner, column] = np.where(ends, ids + inner, ids)
    if not ((leaf_targets >= 0) & (leaf_targets < targets)).all() or len(leaf_targets) != leaves:
        raise InvalidModelError(f"leaf_targetids do not fit {leaves} leaves and {targets} targets")
    if modes.max(initial=0) >= LEAF:
        raise InvalidModelError("an element of nodes_modes has no meaning")
    roots = np.asarray(given["tree_roots"], np.int64)
    if not ((roots >= 0) & (roots < inner)).all():
        raise InvalidModelError("an element of tree_roots is no node")
    only = (children[roots, 0] == children[roots, 1]) & (children[roots, 0] >= inner)
    roots = np.where(only, children[roots, 1], roots)  # a tree of one leaf is written as a node with that leaf twice
    tracks = given.get("nodes_missing_value_tracks_true")
    missing = np.zeros(inner + leaves, bool)
    missing[:inner] = np.asarray(tracks) == 1 if tracks else False
    threshold = np.concatenate([splits, np.zeros(leaves, splits.dtype)])
    sets = _sets(given, modes, threshold)
    weights = _table(np.arange(leaves), leaf_targets, leaf_weights, leaves, targets, "SUM")
    pad = np.zeros(leaves, np.int64)
    return _forest(
        np.concatenate([np.asarray(given["nodes_featureids"], np.int64), pad]),
        threshold,
        np.concatenate([modes, pad + LEAF]),
        missing,
        children,
        roots,
        sets,
        np.arange(inner + leaves) >= inner,
        weights,
    )


def _sets(given: Mapping[str, Any], modes: Array, threshold: Array) -> Array:
    """The sets of the nodes that ask for members, whose thresholds become rows of the result.

    `membership_values` holds them one after the other, each followed by NaN.
    """
    members = np.flatnonzero(modes == TESTS.index("in"))
    if not len(members):
        return np.zeros((0, 0), threshold.dtype)
    values = given["membership_values"].numpy()
    parts = np.split(values, np.flatnonzero(np.isnan(values)))
    lists = [parts[0], *(part[1:] for part in parts[1:])]
    if len(lists) < len(members):
        raise InvalidModelError("membership_values has fewer sets than there are nodes that need one")
    lists = lists[: len(members)]
    widest = max(map(len, lists), default=0) or 1
    check_room("the sets of a tree", (len(lists), widest), threshold.itemsize, values.nbytes)
    sets = np.full((len(lists), widest), np.nan, threshold.dtype)
    for row, part in zip(sets, lists, strict=True):
        row[: len(part)] = part
    threshold[members] = np.arange(len(members))
    return sets
