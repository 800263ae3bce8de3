import subprocess
import sys

import numpy as np
import onnx
import pytest
from graphs import model, weight
from onnx import TensorProto, helper

from onward import runners
from onward.errors import InvalidDataError, UnsupportedError
from onward.graph.slots import slots
from onward.model import load
from onward.verification.data.sets import data_sets, input_sets, make_inputs
from onward.verification.data.sizes import fit


def test_static_shapes_and_dtypes_need_no_runtime() -> None:
    inputs = make_inputs(model("g (float[2,3] x, uint8[4] y, bool[2] z, double d) => (float[2,3] r) { r = Relu(x) }"))
    assert {name: (v.shape, v.dtype.name) for name, v in inputs.items()} == {
        "x": ((2, 3), "float32"),
        "y": ((4,), "uint8"),
        "z": ((2,), "bool"),
        "d": ((), "float64"),
    }


def test_the_seed_decides() -> None:
    net = model("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    assert np.array_equal(make_inputs(net, seed=3)["x"], make_inputs(net, seed=3)["x"])
    assert not np.array_equal(make_inputs(net, seed=3)["x"], make_inputs(net, seed=4)["x"])


def test_an_initializer_that_is_listed_as_an_input_is_not_fed() -> None:
    net = model("g (float[N,3] x, float[3,5] w) => (float[N,5] y) { y = MatMul(x, w) }", w=weight(3, 5))
    assert list(make_inputs(net)) == ["x"]


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("y = Conv<group=2>(x, w)", 6),
        ("t = Transpose<perm=[0,3,1,2]>(x) y = Conv(t, w)", None),
        ("y = Relu(x)", None),
    ],
)
def test_channels_follow_from_the_weight(body: str, size: int | None) -> None:
    net = model(f"g (float[N,C,H,W] x) => (y) {{ {body} }}", w=weight(4, 3, 3, 3))
    assert fit(net.ir.graph, slots(net.ir)).size("C") == size


def test_a_transpose_moves_the_demand_to_the_right_axis() -> None:
    net = model(
        "g (float[N,H,W,C] x) => (y) { t = Transpose<perm=[0,3,1,2]>(x) y = Conv(t, w) }",
        w=weight(4, 5, 3, 3),
    )
    assert fit(net.ir.graph, slots(net.ir)).sizes == {"C": 5}
    image = make_inputs(net)["x"]
    assert image.shape[3] == 5 and image.shape[1] != image.shape[2] and min(image.shape[1:3]) >= 8


def test_dimensions_with_one_name_have_one_size_and_dims_are_obeyed() -> None:
    net = model("g (float[N,T] x, float[T,N] y) => (float[N,N] z) { z = MatMul(x, y) }")
    inputs = make_inputs(net, dims={"T": 21})
    assert inputs["x"].shape == inputs["y"].shape[::-1] and inputs["x"].shape[1] == 21


def test_sizes_are_tried_until_the_model_runs() -> None:
    net = model("g (float[N,T] x) => (float[a,b] y) { s = Constant<value_ints=[-1, 4000]>() y = Reshape(x, s) }")
    assert make_inputs(net)["x"].size % 4000 == 0


def test_no_size_fits() -> None:
    net = model("g (float[N,T] x) => (float[a] y) { t = Concat<axis=0>(x, x) y = Reshape(t, s) }", s=np.array([7919]))
    with pytest.raises(UnsupportedError, match="dims="):
        make_inputs(net)


def test_a_model_without_anything_to_say_still_gets_data() -> None:
    net = model("g (float[N,T] x) => (y) { y = Slice(x, zero, zero) }", zero=np.array([0]))
    assert make_inputs(net)["x"].ndim == 2


def test_several_sizes() -> None:
    net = model("g (float[N,3,H,W] x) => (y) { y = Conv(x, w) }", w=weight(4, 3, 3, 3))
    shapes = [inputs["x"].shape for inputs in input_sets(net)]
    assert len(shapes) == len(set(shapes)) > 4


def test_indices_stay_below_the_table() -> None:
    net = model(
        "g (int64[B,T] ids) => (y) { r = Unsqueeze(ids, axis) c = Cast<to=6>(r) y = Gather(table, c) }",
        table=weight(7, 2),
        axis=np.array([2]),
    )
    ids = make_inputs(net)["ids"]
    assert ids.min() >= 0 and 3 <= ids.max() < 7


def test_a_mask_is_ones_and_then_zeros() -> None:
    text = "g (int64[B,T] m) => (y) { f = Cast<to=1>(m) y = Sub(one, f) }"
    mask = make_inputs(model(text, one=np.float32(1)), dims={"B": 8, "T": 32})["m"]
    assert set(np.unique(mask)) == {0, 1} and np.all(np.diff(mask, axis=1) <= 0) and np.all(mask[:, 0] == 1)


def test_lengths_do_not_exceed_the_sequence() -> None:
    text = "g (float[T,B,3] x, int32[B] n) => (y) { y, h, c = LSTM<hidden_size=2>(x, w, r, b, n) }"
    net = model(text, w=weight(1, 8, 3), r=weight(1, 8, 2), b=weight(1, 16))
    inputs = make_inputs(net, dims={"T": 9, "B": 4})
    assert inputs["n"].max() == 9 and inputs["n"].min() >= 1


def test_choices_come_from_the_constants_compared_with() -> None:
    net = model("g (int64 sr) => (y) { y = Equal(sr, rate) }", rate=np.array(16000))
    assert make_inputs(net)["sr"] == 16000


def test_strings_come_from_the_keys_of_the_encoder() -> None:
    encoder = 'ai.onnx.ml.LabelEncoder<keys_strings=["cat", "dog"], values_int64s=[1, 2]>'
    text = f"g (string[4] s) => (y) {{ y = {encoder}(s) }}"
    words = make_inputs(model(text))["s"]
    assert words.dtype == object and set(words) <= {"cat", "dog"}


def test_divisors_are_positive_and_bytes_use_their_range() -> None:
    inputs = make_inputs(model("g (float[64] x, float[64] y, uint8[512] b) => (z) { z = Div(x, y) }"))
    assert inputs["y"].min() > 0 > inputs["x"].min()
    assert inputs["b"].max() > 200


def test_features_of_trees_lie_around_the_thresholds() -> None:
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_featureids=[1, 0, 0],
        nodes_values=[5000.0, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_nodeids=[0, 1, 2],
        nodes_treeids=[0, 0, 0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_ids=[0, 0],
        target_nodeids=[1, 2],
        target_treeids=[0, 0],
        target_weights=[1.0, 2.0],
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "F"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    features = make_inputs(load(proto), dims={"N": 64})["x"]
    assert features.shape == (64, 2)
    assert 0.2 < np.mean(features[:, 1] > 5000) < 0.8


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("(float[a,b] x, float[c,d] y) => (z) { z = MatMul(x, y) }", {}),
        ("(float[a,b,c] x, float[d,e,f,g] y) => (z) { z = Add(x, y) }", {}),
        ("(float[a,b,c,d] x, float[e,f,g,h] w, float[i] s) => (z) { z = Conv<group=3>(x, w, s) }", {}),
        ("(float[a,b] x, float[c,d] w, float[e] s) => (z) { z = Gemm<transB=1>(x, w, s) }", {}),
        ("(float[a,b,c] x, float[d,e,f] w, float[g,h,i] r) => (z) { z, h, c = LSTM<hidden_size=5>(x, w, r) }", {}),
        ("(float[a,b,c] x, float[d] s, float[e] t) => (z) { z = LayerNormalization(x, s, t) }", {}),
        ("(float[a,b,c] x, float[d,e,f] y) => (z) { z = Concat<axis=1>(x, y) }", {}),
        ('(float[a,b,c] x, float[d,e,f] y) => (z) { z = Einsum<equation="bij,bkj->bik">(x, y) }', {}),
        ("(float[a,b] x, float[c,d] m) => (z) { t = Concat<axis=1>(x, x) z = Add(t, m) }", {}),
        ("(float[a,b,c] x) => (z) { z = Conv(x, w) }", {"w": weight(2, 3, 999)}),
        ("(float[a,b] x) => (z) { z = Reshape(x, s) }", {"s": np.array([0, 7, -1])}),
        ("(float[a,b,c] x) => (z) { z = Squeeze(x, s) }", {"s": np.array([1])}),
        ("(float[a,b] x, int64[c] s) => (z) { z = Expand(x, s) }", {}),
        ("(float[a,b] x, int64[c] s) => (z) { z = Reshape(x, s) }", {}),
        ("(float[a,b,c] x, int64[d] r) => (z) { z = Tile(x, r) }", {}),
        ("(float[a,b] x, int64[c] s) => (z) { z, q, r = Split<axis=1>(x, s) }", {}),
        ("(float[a,b] x, int64[c] k) => (v, i) { v, i = TopK(x, k) }", {}),
        ("(float[a,b] x, int64[c] p) => (z) { z = Pad(x, p) }", {}),
        ("(float[a,b] x, int64[c] s, int64[d] e, int64[f] g) => (z) { z = Slice(x, s, e, g) }", {}),
        ("(float[a,b] x, int64[c,d] i, float[e,f] u) => (z) { z = ScatterElements(x, i, u) }", {}),
        ("(float[a,b] x, int64[c,d] i, float[e,f] u) => (z) { z = ScatterND(x, i, u) }", {}),
        ("(int64 start, int64 limit, int64 delta) => (z) { z = Range(start, limit, delta) }", {}),
        ("(float[a,b,c,d] x, float[e] r, float[f] s) => (z) { z = Resize(x, r, s) }", {}),
        (
            "(float[a,b,c,d] x, int64[1] s) => (z)"
            " { f = Cast<to=1>(s) t = Concat<axis=0>(o, f, f) z = Resize(x, n, t) }",
            {"o": np.ones(2, np.float32), "n": np.zeros(0, np.float32)},
        ),
        ("(float[a,b] x, float s, uint8 o) => (z) { z = QuantizeLinear(x, s, o) }", {}),
        ("(float[a,b,c] x, int64[d,e] t) => (z) { z = NegativeLogLikelihoodLoss(x, t) }", {}),
        ("(float[a,b,c] x, int64[d] n) => (z) { z = ReverseSequence(x, n) }", {}),
        ("(seq(float[N]) s, int64 i) => (z) { z = SequenceAt(s, i) }", {}),
        ("(float[a,b] x, int64 i) => (z) { z = CumSum(x, i) }", {}),
    ],
)
def test_sizes_and_values_fit_where_nothing_is_declared(text: str, weights: dict[str, np.ndarray]) -> None:
    """The first sizes that are tried: what the graph says is enough."""
    net = model(f"g {text}", **weights)
    first = next(data_sets(net, runs=lambda feeds: True)).inputs
    outputs = runners.prepare("onnxruntime", net)(first)
    assert all(np.size(value) for value in outputs.values())


def test_a_dimension_that_is_written_as_a_sum() -> None:
    text = "g (float[B,past] x, float[B,new] y, float[B,Z] m) => (z) { t = Concat<axis=1>(x, y) z = Mul(t, m) }"
    proto = model(text).to_proto()
    proto.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "past + new"
    inputs = make_inputs(load(proto), dims={"past": 5, "new": 3})
    assert inputs["m"].shape[1] == 8


def test_sizes_of_a_known_total_follow() -> None:
    text = "g (float[B,P] x, float[B,T] y, float[B,8] m) => (z) { t = Concat<axis=1>(x, y) z = Mul(t, m) }"
    inputs = make_inputs(model(text), dims={"P": 5})
    assert inputs["y"].shape[1] == 3


def test_updates_have_a_place_each() -> None:
    text = "g (float[9,4] x, int64[5,4] i, float[5,4] u) => (z) { z = ScatterElements(x, i, u) }"
    places = make_inputs(model(text))["i"]
    assert all(len(set(column)) == 5 for column in places.T)


def test_nothing_is_dropped_at_random() -> None:
    net = model("g (float[8,8] x, float r, bool t) => (z) { z = Dropout(x, r, t) }")
    inputs = make_inputs(net)
    assert not inputs["t"] and 0 <= inputs["r"] <= 0.5


def test_functions_of_the_model_are_looked_into() -> None:
    body = helper.make_function(
        "own", "Look", ["t", "i"], ["y"], [helper.make_node("Gather", ["t", "i"], ["y"])], [helper.make_opsetid("", 17)]
    )
    graph = helper.make_graph(
        [helper.make_node("Look", ["table", "ids"], ["y"], domain="own")],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(weight(50, 2), "table")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    net = load(helper.make_model(graph, functions=[body], opset_imports=opsets, ir_version=8))
    ids = make_inputs(net)["ids"]
    assert 30 < ids.max() < 50
    assert net.ir.functions


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"M": 3}, "no input has a dynamic dimension 'M'; there are 'N'"),
        ({"N": -1}, "cannot be -1"),
        ({"N": "3"}, "cannot be '3'"),
    ],
)
def test_dims_that_make_no_sense(dims: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        make_inputs(model("g (float[N] x) => (y) { y = Relu(x) }"), dims=dims)


def test_the_largest_candidates_are_not_tried() -> None:
    net = model("g (float[a,b,c,d,e,f,g,h] x) => (y) { y = Relu(x) }")
    assert max(inputs["x"].size for inputs in input_sets(net)) <= 1 << 22


def test_data_does_not_depend_on_the_order_of_hashes() -> None:
    script = """
import hashlib, numpy as np
from graphs import model
from onward import runners
from onward.verification.data.sets import data_sets
net = model('g (float[N,T] x, int64[N,M] i, string[N] s, bool[M,T] b) => (y) { y = Abs(x) }')
digest = hashlib.sha256()
for made in data_sets(net, hard=True):
    digest.update(made.label.encode())
    for name, value in made.inputs.items():
        digest.update(name.encode() + repr(value.tolist()).encode())
print(digest.hexdigest())
"""
    found = set()
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        found.add(
            subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout
        )
    assert len(found) == 1


@pytest.mark.parametrize("name", ["state", "h0", "c", "hidden_in", "prev_h"])
def test_states_of_recurrent_layers_are_as_many_as_the_batch(name: str) -> None:
    """Where the graph does not tell: their second dimension is the batch."""
    net = model(f"g (float[N,T] x, float[2,M,128] {name}) => (y) {{ y = Abs(x) }}")
    sets = data_sets(net, runs=lambda feeds: feeds[name].shape[1] == feeds["x"].shape[0])
    assert next(sets).inputs["x"].shape[0] == 2


def test_a_dimension_goes_through_its_sizes_while_the_others_are_one() -> None:
    net = model("g (float[N,K] x, float[5,M] u) => (y) { y = Abs(x) }")
    sets = data_sets(net, runs=lambda feeds: feeds["x"].shape == (1, 64) and feeds["u"].shape == (5, 1))
    assert next(sets).inputs["u"].shape == (5, 1)


@pytest.mark.parametrize(
    ("pooling", "least"),
    [
        ("AveragePool<kernel_shape=[40,1], strides=[40,1]>", 40),
        ("MaxPool<kernel_shape=[40,1], strides=[40,1], pads=[4,0,4,0]>", 32),
        ("MaxPool<kernel_shape=[11,1], dilations=[5,1], strides=[40,1]>", 51),
    ],
)
def test_images_have_room_for_the_windows_of_poolings(pooling: str, least: int) -> None:
    """ONNX Runtime also pools what is smaller, which means nothing and which others refuse."""
    net = model(f"g (float[N,3,H,W] x) => (y) {{ y = {pooling}(x) }}")
    heights = {inputs["x"].shape[2] for inputs in input_sets(net)}
    assert least <= min(heights) and len(heights) > 2


def test_windows_are_never_the_reason_that_no_sizes_are_found() -> None:
    net = model("g (float[N,3,8,W] x) => (y) { y = AveragePool<kernel_shape=[9,1], strides=[9,1]>(x) }")
    assert make_inputs(net)["x"].shape[2] == 8
