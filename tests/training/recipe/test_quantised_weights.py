"""Integer weights are trained as floats that are rounded in every step, where there are no floats to train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import onward
from onward import training
from onward.errors import OnwardError
from onward.training.recipe.quantised_weights import with_float_weights

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)
X = RNG.standard_normal((16, 4)).astype(np.float32)
INT8, UINT8, INT32 = TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32
CODES = RNG.integers(-127, 128, (4, 3)).astype(np.int8)
BIAS = RNG.integers(-3000, 3000, 3).astype(np.int32)
SCALES = np.array([0.01, 0.02, 0.005], np.float32)
HELD: dict[str, Any] = {
    "w": CODES,
    "b": BIAS,
    "ws": SCALES,
    "bs": (SCALES * np.float32(0.03)).astype(np.float32),
    "s": np.float32(0.03),
    "z": np.uint8(120),
    "os": np.float32(0.05),
    "oz": np.uint8(128),
}
LAYER = """
    q = QuantizeLinear(x, s, z) xd = DequantizeLinear(q, s, z) wd = DequantizeLinear<axis = 1>(w, ws)
    bd = DequantizeLinear<axis = 0>(b, bs) p = MatMul(xd, wd) h = Add(p, bd) yq = QuantizeLinear(h, os, oz)
"""


def built(nodes: str, output: str = "uint8[n, 3] y", **held: Any) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> g (float[n, 4] x) => ({output}) {{ {nodes} }}'
    )
    tensors = {**HELD, **held}
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in tensors.items())
    onnx.checker.check_model(proto, full_check=True)
    return proto


LAYERED = LAYER + "y = Identity(yq)"


def run(proto: onnx.ModelProto, **feeds: Array) -> Array:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds or {"x": X})[0]


def saved(trainer: training.Trainer, path: Path, **how: bool) -> onnx.ModelProto:
    trainer.save(path, **how)
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(path)


def arrays(proto: onnx.ModelProto) -> dict[str, Array]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


@pytest.mark.parametrize(("codes", "step", "most"), [(CODES, 1, 0), ((CODES // 16).astype(ml_dtypes.int4), 20, 1)])
def test_it_starts_as_the_same_model_and_learns(codes: Array, step: int, most: int, tmp_path: Path) -> None:
    """The loss is of the numbers that the output stands for. Of 4 bits, ONNX Runtime adds up otherwise."""
    given = built(LAYERED, w=codes, ws=SCALES * step)
    made = training.prepare(given, "mse", training.Adam(lr=0.01))
    assert {name: array.shape for name, array in made.parameters.items()} == {"w": (4, 3), "b": (3,)}
    trainer = training.Trainer(made, kernels=False)
    for how in (False, True):
        tuned = saved(trainer, tmp_path / "tuned.onnx", narrow_weights=how)
        assert np.abs(run(tuned).astype(int) - run(given)).max() <= most
        assert arrays(tuned)["w"].dtype == (codes.dtype if how else np.float32)
    assert np.array_equal(arrays(tuned)["w"], codes)
    goal = X @ RNG.standard_normal((4, 3)).astype(np.float32) * 0.5
    losses = [trainer.step({"x": X, "labels": goal}) for _ in range(150)]
    assert losses[0] == pytest.approx(np.mean(((run(given) - 128.0) * 0.05 - goal) ** 2), rel=1e-5)
    assert losses[-1] < losses[0] / 3
    narrow = saved(trainer, tmp_path / "tuned.onnx", narrow_weights=True)
    assert np.mean(((run(narrow) - 128.0) * 0.05 - goal) ** 2) == pytest.approx(losses[-1], rel=0.2)
    assert np.abs(run(narrow).astype(int) - run(saved(trainer, tmp_path / "wide.onnx"))).max() <= most


def test_floats_alone_are_trained_where_there_are_some_unless_integers_are_named() -> None:
    head = LAYER + "yd = DequantizeLinear(yq, os, oz) y = MatMul(yd, v)"
    given = built(head, "float[n, 2] y", v=RNG.standard_normal((3, 2)).astype(np.float32))
    assert set(training.prepare(given, "mse", "sgd").parameters) == {"v"}
    assert set(training.prepare(given, "mse", "sgd", ["w"]).parameters) == {"w"}
    with pytest.raises(OnwardError, match="no float weight is called 'nothing'"):
        training.prepare(given, "mse", "sgd", ["nothing"])


def test_what_a_caller_may_give_stays_so(tmp_path: Path) -> None:
    """A state is given as integers, and has a first value in the file."""
    nodes = LAYER + "sd = DequantizeLinear(state, os) e = Add(h, sd) y = QuantizeLinear(e, os, oz)"
    given = built(nodes, state=np.array([[1, 2, 3]], np.int8))
    given.graph.input.append(helper.make_tensor_value_info("state", INT8, [1, 3]))
    trainer = training.Trainer(training.prepare(given, "mse", "sgd"), kernels=False)
    assert set(trainer.parameters) == {"w", "b"}
    tuned = saved(trainer, tmp_path / "tuned.onnx")
    for state in ([[1, 2, 3]], [[90, 0, -90]]):
        feeds = {"x": X, "state": np.array(state, np.int8)}
        assert np.array_equal(run(tuned, **feeds), run(given, **feeds))
    assert np.array_equal(run(tuned), run(given))


@pytest.mark.parametrize(
    ("codes", "scale", "zero", "attributes"),
    [
        (RNG.integers(-128, 128, (6, 4)).astype(np.int8), RNG.random((3, 4)), None, "<axis = 0, block_size = 2>"),
        (
            RNG.integers(0, 256, (2, 6)).astype(np.uint8),
            RNG.random((2, 2)),
            RNG.integers(0, 256, (2, 2)),
            "<block_size = 3>",
        ),
        (RNG.integers(-9000, 9000, (2, 3, 4)).astype(np.int16), RNG.random(4), RNG.integers(-9, 9, 4), "<axis = -1>"),
        (RNG.integers(0, 256, (5,)).astype(np.uint8), np.array([0.1]), np.array([7]), ""),
    ],
)
def test_numbers_are_those_of_the_standard(codes: Array, scale: Array, zero: Array | None, attributes: str) -> None:
    held = {"w": codes, "ws": scale.astype(np.float32)} | ({} if zero is None else {"z": zero.astype(codes.dtype)})
    dims = ", ".join(map(str, codes.shape))
    given = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float x) => (float[{dims}] y) {{
        wd = DequantizeLinear{attributes}(w, ws{"" if zero is None else ", z"}) y = Add(x, wd) }}"""
    )
    given.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in held.items())
    made = with_float_weights(onward.load(given))
    assert made is not None
    feeds = {"x": np.float32(0)}
    (expected,) = ReferenceEvaluator(given).run(None, feeds)
    assert np.array_equal(arrays(made.to_proto())["w"], expected)
    assert np.array_equal(ReferenceEvaluator(made.to_proto()).run(None, feeds)[0], expected)


def test_one_constant_of_two_layers_becomes_two_weights() -> None:
    more = "t = Transpose(xd) u = DequantizeLinear<axis = 1>(w, ws) k = MatMul(xd, u) e = Add(h, k)"
    shared = f"{LAYER} {more} y = QuantizeLinear(e, os, oz)"
    made = training.prepare(built(shared), "mse", "sgd")
    assert set(made.parameters) == {"w", "w_2", "b"}
    assert np.array_equal(made.parameters["w"], made.parameters["w_2"])


def test_gradients_through_rounding_go_on_elsewhere_by_the_graph_of_a_step(tmp_path: Path) -> None:
    """In the words of PyTorch they would be zero."""
    made = training.prepare(built(LAYERED), "mse", "sgd")
    training.to_torch_package(made, tmp_path / "net")
    assert "gradients pass through quantisation" in (tmp_path / "net/README.md").read_text()
    assert (tmp_path / "net/step.py").exists()


def test_what_trees_have_learned_is_not_trained() -> None:
    tree = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0],
        nodes_nodeids=[0],
        nodes_featureids=[0],
        nodes_modes=["LEAF"],
        nodes_values=[0.0],
        nodes_truenodeids=[0],
        nodes_falsenodeids=[0],
        target_treeids=[0],
        target_nodeids=[0],
        target_ids=[0],
        target_weights=[1.0],
    )
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", w]) for n, w in (("x", 4), ("y", 1)))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    forest = helper.make_model(helper.make_graph([tree], "tree", [x], [y]), opset_imports=imports, ir_version=8)
    with pytest.raises(OnwardError, match=r"nothing to train: what TreeEnsemble\w* has learned has no gradient"):
        training.prepare(forest, "mse")
