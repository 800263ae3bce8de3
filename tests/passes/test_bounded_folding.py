"""Files of a few hundred bytes that ask for gigabytes: what is large stays a computation, or is refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest
from harness import text_model
from onnx import helper, numpy_helper

import onward
from onward.errors import OnwardError
from onward.passes.pipelines import canonical

HEADER = '<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 3]>\n'
MANY = 1 << 28
MOST = 64 << 20
"""Bytes that may be taken meanwhile."""


def peak(proto: onnx.ModelProto) -> int:
    """Bytes that arrays took at once, while a model became canonical."""
    model = onward.load(proto)
    tracemalloc.start()
    try:
        canonical(model, lambda op: True)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ASKING = {
    "ConstantOfShape": "c = ConstantOfShape(many)",
    "a square": "s = Concat<axis=0>(side, side) c = ConstantOfShape(s)",
    "Range": "n = Squeeze(many) c = Range(zero, n, one)",
    "Expand": "c = Expand(one, many)",
    "sums": "a = Reshape(row, up) b = Reshape(row, across) c = Add(a, b)",
    "Where": "a = Reshape(row, up) b = Reshape(row, across) e = Reshape(row, deep) t = Equal(a, b) c = Where(t, a, e)",
    "Gather": "a = Reshape(row, across) i = Mul(row, zero) c = Gather(a, i)",
    "Concat": f"c = Concat<axis=0>({', '.join(['row'] * 5000)})",
    "Tile": "c = Tile(side, many)",
    "Pad": "p = Concat<axis=0>(one1, many) c = Pad(row, p)",
    "OneHot": "v = Constant<value_ints=[0, 1]>() n = Squeeze(many) c = OneHot(row, n, v)",
    "maxima": "p = Reshape(few, d1) q = Reshape(few, d2) r = Reshape(few, d3) s = Reshape(few, d4) c = Max(p, q, r, s)",
}


@pytest.mark.parametrize("what", ASKING)
def test_what_is_large_stays_a_computation(what: str) -> None:
    weights: dict[str, Any] = {
        "many": np.array([MANY]),
        "side": np.array([1 << 14]),
        "zero": np.array(0),
        "one": np.array(1),
        "one1": np.array([1]),
        "row": np.arange(4096),
        "few": np.arange(64),
        "up": np.array([-1, 1, 1]),
        "across": np.array([1, -1, 1]),
        "deep": np.array([1, 1, -1]),
        **{f"d{i}": np.where(np.arange(4) == i - 1, -1, 1) for i in range(1, 5)},
    }
    used = {name: array.astype(np.int64) for name, array in weights.items()}
    proto = text_model(
        f"{HEADER} g (int64[1] x) => (int64[k] y) {{ {ASKING[what]} d = Gather(c, x) y = Identity(d) }}", **used
    )
    assert peak(proto) < MOST


def test_parts_of_a_long_input() -> None:
    nodes = "q = SplitToSequence<axis = 0>(x, one) d = SequenceAt(q, one) y = Identity(d)"
    proto = text_model(f"{HEADER} g (int64[{1 << 40}] x) => (int64[k] y) {{ {nodes} }}", one=np.array(1))
    assert peak(proto) < MOST


def test_a_small_one_is_folded_all_the_same() -> None:
    proto = text_model(
        f"{HEADER} g (int64[3] x) => (int64[3] y) {{ c = ConstantOfShape(s) y = Add(x, c) }}", s=np.array([3])
    )
    graph = canonical(onward.load(proto), lambda op: True).graph
    assert [node.op_type for node in graph] == ["Add"]


def sparse(dims: list[int]) -> onnx.ModelProto:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([5])), dims)
    proto = text_model(f"{HEADER} g (float[1] x) => (float[n] y) {{ y = Add(x, x) }}")
    proto.graph.node[0].input[1] = "w"
    proto.graph.sparse_initializer.append(tensor)
    return proto


def test_sparse_weights_are_bounded() -> None:
    assert onward.load(sparse([1000])).ir.graph.initializers["w"].const_value is not None
    with pytest.raises(OnwardError, match=r"held densely, it would take 1,073,741,824 bytes.*ONWARD_MAX_FOLDED"):
        onward.load(sparse([MANY]))


ENSEMBLE = """y = ai.onnx.ml.TreeEnsembleRegressor<n_targets = 1000000000,
  nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2],
  nodes_featureids = [0, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [0.5, 0.0, 0.0],
  nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2],
  target_ids = [0, 0], target_weights = [1.0, 2.0]>(x)"""

COUNTED = """t = Cast<to = 7>(x) y = TfIdfVectorizer<mode = "TFIDF", min_gram_length = 1, max_gram_length = 1,
  max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0, 4000000000], pool_int64s = [1, 2],
  weights = [1.0, 2.0]>(t)"""


@pytest.mark.parametrize(
    ("nodes", "shape", "message"),
    [
        (ENSEMBLE, "float[n,1]", "what each leaf gives to each target would take"),
        (
            COUNTED,
            "float[n,1]",
            "a weight for each column would take",
        ),
    ],
)
def test_tables_are_bounded(nodes: str, shape: str, message: str) -> None:
    proto = text_model(f"{HEADER} g ({shape} x) => (float[n,m] y) {{ {nodes} }}")
    with pytest.raises(OnwardError, match=message):
        onward.to_torch(proto)
