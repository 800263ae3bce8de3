import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.verify.data import input_sets, make_inputs
from onward.verify.sizes import fit, slots


def model(text: str, **weights: np.ndarray) -> Model:
    proto = onnx.ModelProto()
    proto.graph.CopyFrom(onnx.parser.parse_graph(text))
    proto.ir_version, proto.graph.name = 8, "test"
    proto.opset_import.extend([helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, key) for key, value in weights.items())
    return load(proto)


def weight(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


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
    net = model("g (float[N,T] x) => (float[a,b] y) { y = Reshape(x, s) }", s=np.array([7919, 7907]))
    with pytest.raises(UnsupportedError, match="dims="):
        make_inputs(net)


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
