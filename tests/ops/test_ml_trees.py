"""Tree ensembles against ONNX Runtime, on random forests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check, merged, source, to_torch
from ml_models import ml_model
from onnx import numpy_helper

from onward.errors import InvalidModelError, UnsupportedError
from onward.scoreboard.suite import prepare
from onward.spec.ml_trees import forest_of_nodes

FEATURES = 5


def grow(
    seed: int, trees: int = 7, depth: int = 5, modes: Sequence[str] = ("BRANCH_LEQ",), missing: bool = False
) -> tuple[dict[str, list[Any]], list[tuple[int, int]]]:
    """Node attributes of random trees, and the (tree, node) of each leaf."""
    rng = np.random.default_rng(seed)
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in (*names, "missing_value_tracks_true")}
    leaves = []

    def add(tree: int, level: int) -> int:
        """Append a node and what is below it; gives its number."""
        number = sum(t == tree for t in nodes["nodes_treeids"])
        is_leaf = level == depth or (level > 0 and rng.random() < 0.2)
        place = len(nodes["nodes_treeids"])
        feature, value = int(rng.integers(FEATURES)), float(np.float32(rng.integers(-4, 5) / 2))
        row = (tree, number, feature, "LEAF" if is_leaf else str(rng.choice(list(modes))), value, 0, 0)
        for name, item in zip(names, row, strict=True):
            nodes[f"nodes_{name}"].append(item)
        nodes["nodes_missing_value_tracks_true"].append(int(rng.integers(2)) if missing else 0)
        if is_leaf:
            leaves.append((tree, number))
        else:
            nodes["nodes_truenodeids"][place] = add(tree, level + 1)
            nodes["nodes_falsenodeids"][place] = add(tree, level + 1)
        return number

    for tree in range(trees):
        add(tree, 0 if tree else depth)
    return nodes, leaves


def weigh(
    kind: str, leaves: Sequence[tuple[int, int]], targets: Sequence[int], positive: bool = False, seed: int = 1
) -> dict[str, list[Any]]:
    """Leaf attributes: a weight for each of `targets`; (tree, node, target) may be left out by None."""
    rng = np.random.default_rng(seed)
    rows = [(*leaf, t, float(np.float32(abs(w) / 5 if positive else w)))
            for leaf in leaves for t in targets for w in [rng.standard_normal()]]  # fmt: skip
    tree, node, target, weight = map(list, zip(*rows, strict=True))
    return {f"{kind}_treeids": tree, f"{kind}_nodeids": node, f"{kind}_ids": target, f"{kind}_weights": weight}


def rows(dtype: Any = np.float32, missing: bool = False) -> np.ndarray:
    """Numbers of which many equal a threshold."""
    x = np.random.default_rng(3).integers(-5, 6, (40, FEATURES)) / 2
    if missing:
        x[::3, 1] = x[::4, 3] = np.nan
    return x.astype(dtype)


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("modes", [*([m] for m in MODES), MODES], ids=lambda m: "+".join(m))
def test_branches(modes: list[str], missing: bool) -> None:
    nodes, leaves = grow(0, modes=modes, missing=missing)
    x = rows(missing=missing)
    check(ml_model("TreeEnsembleRegressor", [x], n_targets=1, **nodes, **weigh("target", leaves, [0])), [x])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_input_types(dtype: Any) -> None:
    nodes, leaves = grow(1)
    x = rows(dtype)
    weights = weigh("class", leaves, range(3))
    check(ml_model("TreeEnsembleClassifier", [x], 2, classlabels_int64s=[0, 1, 2], **nodes, **weights), [x])
    if np.dtype(dtype).kind == "f":
        check(ml_model("TreeEnsembleRegressor", [x], n_targets=2, **nodes, **weigh("target", leaves, [0, 1])), [x])


def test_thresholds_are_compared_in_the_precision_of_the_input() -> None:
    nodes, leaves = grow(2)
    third = 1 / 3
    values = np.full(len(nodes.pop("nodes_values")), third)
    x = np.array([[third], [np.nextafter(third, 1)], [float(np.float32(third))]]).repeat(FEATURES, 1)
    weights = weigh("target", leaves, [0])
    weights.pop("target_weights")
    tensors = {
        "nodes_values_as_tensor": numpy_helper.from_array(values),
        "target_weights_as_tensor": numpy_helper.from_array(np.arange(len(leaves)) / 3),
    }
    check(ml_model("TreeEnsembleRegressor", [x], n_targets=1, **nodes, **weights, **tensors), [x])
    single = x.astype(np.float32)
    nodes["nodes_values"] = [third] * len(values)
    plain = weigh("target", leaves, [0])
    check(ml_model("TreeEnsembleRegressor", [single], n_targets=1, **nodes, **plain), [single])


TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regressor(targets: int, aggregate: str) -> None:
    nodes, leaves = grow(4)
    given = {**nodes, **weigh("target", leaves, range(targets), positive=True), "aggregate_function": aggregate}
    bases = [{}, {"base_values": [0.25, -0.5, 1.0][:targets]}]
    models = [
        ml_model("TreeEnsembleRegressor", [rows()], n_targets=targets, **given, **base, post_transform=transform)
        for base in bases
        for transform in TRANSFORMS
    ]
    check(*merged([(model, [rows()]) for model in models]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (0, 0, 1)], ids=str)
@pytest.mark.parametrize("trees", [3, 6, 7])
def test_trees_of_one_target_each(trees: int, order: tuple[int, ...]) -> None:
    """Those that take turns need one weight a leaf; others are right all the same."""
    nodes, leaves = grow(3, trees=trees)
    weights = weigh("target", leaves, [0])
    weights["target_ids"] = [order[tree % 3] for tree in weights["target_treeids"]]
    model = ml_model("TreeEnsembleRegressor", [rows()], n_targets=3, **nodes, **weights)
    check(model, [rows()], rtol=1e-5, atol=1e-5)
    in_turns = order == (0, 1, 2) and trees % 3 == 0
    assert (f'"weights", torch.zeros({len(leaves)})' in source(model)) == in_turns


@pytest.mark.parametrize("aggregate", ["SUM", "MIN", "MAX"])
def test_targets_that_some_rows_have_no_score_for(aggregate: str) -> None:
    nodes, leaves = grow(5, trees=2)
    weights = weigh("target", leaves, [0])
    weights["target_ids"] = [i % 3 for i in range(len(leaves))]
    for base in [[], [0.25, -0.5, 1.0, 2.0]]:
        given = {"aggregate_function": aggregate, **({"base_values": base} if base else {})}
        check(ml_model("TreeEnsembleRegressor", [rows()], n_targets=4, **nodes, **weights, **given), [rows()])


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("scored", [[0], [1], [0, 1], [0, 1, 2], [0, 2]], ids=str)
def test_classifier(scored: list[int], positive: bool) -> None:
    nodes, leaves = grow(6)
    classes = max(2, max(scored) + 1)
    bases = [[], [0.25], [0.25, -0.5]] if classes == 2 else [[], [0.25, -0.5, 0.125]]
    names = {"classlabels_int64s": [3, 7, 5][:classes]}, {"classlabels_strings": list("nyx")[:classes]}
    models = [
        ml_model("TreeEnsembleClassifier", [rows()], 2, post_transform=transform, **nodes, **weights, **base, **labels)
        for weights in [weigh("class", leaves, scored, positive)]
        for base in [{"base_values": b} if b else {} for b in bases]
        for labels in names
        for transform in TRANSFORMS
        if not (transform == "PROBIT" and scored == [0] and len(base.get("base_values", [])) < 2)
    ]
    check(*merged([(model, [rows()]) for model in models]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("base", [[], [0.25]])
def test_classifier_of_one_class(base: list[float]) -> None:
    nodes, leaves = grow(7)
    given = {"base_values": base} if base else {}
    weights = weigh("class", leaves, [0])
    check(
        ml_model("TreeEnsembleClassifier", [rows()], 2, classlabels_int64s=[4], **nodes, **weights, **given), [rows()]
    )


def test_a_single_probit_of_two_classes_is_refused() -> None:
    nodes, leaves = grow(7)
    weights = weigh("class", leaves, [0])
    model = ml_model(
        "TreeEnsembleClassifier", [rows()], 2, classlabels_int64s=[0, 1], post_transform="PROBIT", **nodes, **weights
    )
    with pytest.raises(UnsupportedError, match="PROBIT"):
        to_torch(model)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", range(4))
def test_version_five(aggregate: int, dtype: Any) -> None:
    """Two trees, the second a single leaf; sets, missing values and leaves that two nodes share.

    ONNX Runtime takes post_transform 1 for LOGISTIC and 2 for SOFTMAX, the text of the op has it the other way round.
    """
    x = rows(dtype, missing=True)
    x[:, [0, 2]] = np.trunc(x[:, [0, 2]])

    def model(transform: int) -> onnx.ModelProto:
        return ml_model(
            "TreeEnsemble",
            [x],
            version=5,
            n_targets=2,
            aggregate_function=aggregate,
            post_transform=transform,
            tree_roots=[0, 3],
            nodes_featureids=[0, 1, 2, 0],
            nodes_modes=numpy_helper.from_array(np.array([6, 0, 6, 0], np.uint8)),
            nodes_splits=numpy_helper.from_array(np.array([0, 0.5, 0, 0], dtype)),
            nodes_truenodeids=[1, 0, 0, 4],
            nodes_trueleafs=[0, 1, 1, 1],
            nodes_falsenodeids=[2, 2, 3, 4],
            nodes_falseleafs=[0, 1, 1, 1],
            nodes_missing_value_tracks_true=[0, 1, 0, 0],
            membership_values=numpy_helper.from_array(np.array([1, 2, -5, np.nan, 0, np.nan], dtype)),
            leaf_targetids=[0, 1, 1, 0, 0],
            leaf_weights=numpy_helper.from_array(np.array([5.5, -1, 2, 3, 0.25], dtype)),
        )

    check(model(0), [x])
    for ours, theirs in [(1, 2), (2, 1), (3, 3)]:
        check(model(ours), [x], expected=prepare("onnxruntime", model(theirs))([x]), rtol=1e-5)


def test_a_forest_is_one_table() -> None:
    nodes, leaves = grow(9, trees=30)
    code = source(ml_model("TreeEnsembleRegressor", [rows()], n_targets=1, **nodes, **weigh("target", leaves, [0])))
    assert code.count("tree_leaves(") == 1
    assert "for " not in code.split("def forward")[1].split("def load")[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": [1, 0, 0]}, "leads in a circle|does not exist"),
        ({"nodes_nodeids": [0, 0, 1]}, "same number"),
        ({"nodes_values": [0.0]}, "differ in length"),
        ({"target_ids": [0, 5]}, "not below"),
        ({"target_nodeids": [1, 9]}, "no node"),
    ],
)
def test_broken_trees_are_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.0] * 3,
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
        "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
    }  # fmt: skip
    if "nodes_truenodeids" in change:
        change = {"nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], "nodes_falsenodeids": [2, 2, 0]} | change
    with pytest.raises(InvalidModelError, match=message):
        forest_of_nodes(given | change, "target", 1, np.float32)
