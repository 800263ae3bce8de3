"""Weights that bodies of If, Loop and Scan hold are trained as those of the main graph, and saved where they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from onward import load
from onward.training.info.read import load as load_trainable
from onward.training.recipe.optimizers import AdamW
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare

W = "float[3,3] w = {0.5, -0.2, 0.1, 0.3, 0.4, -0.6, 0.2, 0.1, 0.7}"
C = "w = Constant <value = float[3,3] {0.5, -0.2, 0.1, 0.3, 0.4, -0.6, 0.2, 0.1, 0.7}> ()"
LOOP = """agraph (float[N,3] x) => (float[N,3] y) <float[3] b = {0.1, 0.2, 0.3}@MAIN> {
    trips = Constant <value_int = 3> ()
    go = Constant <value = bool {1}> ()
    y = Loop (trips, go, x) <
        body = round (int64 i, bool on, float[N,3] s) => (bool on_, float[N,3] s_) @BODY {
            @CONSTANT
            on_ = Identity (on)
            p = MatMul (s, w)
            q = Add (p, b)
            s_ = Tanh (q)
        }
    >
}"""
SCAN = """agraph (float[N,3] x) => (float[N,3] y) <float[3] b = {0.1, 0.2, 0.3}@MAIN> {
    three = Constant <value_ints = [3]> ()
    zero = ConstantOfShape <value = float[1] {0}> (three)
    last, y = Scan <num_scan_inputs = 1, body = round (float[3] s, float[3] row) => (float[3] s_, float[3] out) @BODY {
        @CONSTANT
        p = MatMul (s, w)
        q = Add (p, row)
        s_ = Tanh (q)
        out = Add (s_, b)
    }> (zero, x)
}"""
IF = """agraph (float[N,3] x) => (float[N,3] y) <float[3] b = {0.1, 0.2, 0.3}@MAIN> {
    total = ReduceSum <keepdims = 0> (x)
    nought = Constant <value_float = 0.0> ()
    flag = Greater (total, nought)
    y = If (flag) <
        then_branch = yes () => (float[N,3] a) @BODY {
            @CONSTANT
            p = MatMul (x, w)
            a = Add (p, b)
        },
        else_branch = no () => (float[N,3] c) {
            q = Mul (x, b)
            c = Tanh (q)
        }
    >
}"""
MODELS = {"loop": LOOP, "scan": SCAN, "if": IF}
X = np.abs(np.random.default_rng(0).standard_normal((4, 3))).astype(np.float32)
BATCH = {"x": X, "labels": np.ones((4, 3), np.float32)}


def model(text: str, place: str) -> onnx.ModelProto:
    """With `w` in the main graph, in a body, or in a constant of a body."""
    text = text.replace("@MAIN", f", {W}" if place == "main" else "")
    text = text.replace("@BODY", f"<{W}>" if place == "body" else "").replace("@CONSTANT", C if place == "node" else "")
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')


def trainer(proto: onnx.ModelProto) -> Trainer:
    return Trainer(prepare(proto, "mse", AdamW(lr=3e-2)), threads=1, kernels=False)


@pytest.mark.parametrize("place", ["body", "node"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_weight_of_a_body_is_trained_and_saved(kind: str, place: str, tmp_path: Path) -> None:
    ours, plain = trainer(model(MODELS[kind], place)), trainer(model(MODELS[kind], "main"))
    assert {*ours.parameters} == {"w", "b"}
    losses = [ours.step(BATCH) for _ in range(5)]
    assert losses == [plain.step(BATCH) for _ in range(5)]
    assert losses[-1] < losses[0]
    tuned = ours.tuned().to_proto()
    assert len(tuned.graph.initializer) == 1
    results = [run(proto) for proto in (tuned, plain.tuned().to_proto())]
    np.testing.assert_array_equal(*results)
    ours.continued().save(tmp_path / "later.onnx")
    later = Trainer(load_trainable(tmp_path / "later.onnx"), threads=1, kernels=False)
    assert [later.step(BATCH) for _ in range(3)] == [plain.step(BATCH) for _ in range(3)]
    np.testing.assert_array_equal(run(load(tmp_path / "later.onnx").to_proto()), results[0])


def run(proto: onnx.ModelProto) -> np.ndarray:
    proto.ClearField("training_info")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {"x": X})[0]
    return found


TWO = """agraph (float[N,3] x) => (float[N,3] y) {
    total = ReduceSum <keepdims = 0> (x)
    nought = Constant <value_float = 0.0> ()
    flag = Greater (total, nought)
    y = If (flag) <
        then_branch = yes () => (float[N,3] a) <float[3] w = {0.1, 0.2, 0.3}> {
            a = Add (x, w)
        },
        else_branch = no () => (float[N,3] c) <float[3] w = {0.5, 0.6, 0.7}> {
            c = Mul (x, w)
        }
    >
}"""


def test_two_bodies_with_weights_of_one_name() -> None:
    """Each is trained as itself, and goes back to its own place."""
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{TWO}')
    ours = trainer(proto)
    assert len(ours.parameters) == 2
    for _ in range(3):
        ours.step(BATCH)
    bodies = {
        a.name: a.g for node in ours.tuned().to_proto().graph.node for a in node.attribute if node.op_type == "If"
    }
    first, second = (onnx.numpy_helper.to_array(bodies[name].initializer[0]) for name in ("then_branch", "else_branch"))
    assert (first > np.asarray([0.1, 0.2, 0.3], np.float32)).all()
    np.testing.assert_allclose(second, [0.5, 0.6, 0.7], rtol=0.01)  # no gradient: weight decay alone
    for _ in range(3):
        ours.step({**BATCH, "x": -X})
    bodies = {
        a.name: a.g for node in ours.tuned().to_proto().graph.node for a in node.attribute if node.op_type == "If"
    }
    assert (onnx.numpy_helper.to_array(bodies["else_branch"].initializer[0]) < second).all()


def test_a_weight_that_a_body_gives_out() -> None:
    text = """agraph (float[N,3] x) => (float[N,3] y) {
        total = ReduceSum <keepdims = 0> (x)
        nought = Constant <value_float = 0.0> ()
        flag = Greater (total, nought)
        z = If (flag) <
            then_branch = yes () => (float[3] w) <float[3] w = {0.1, 0.2, 0.3}> {},
            else_branch = no () => (float[3] v) { v = Constant <value_floats = [1.0, 2.0, 3.0]> () }
        >
        y = Add (x, z)
    }"""
    ours = trainer(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}'))
    losses = [ours.step(BATCH) for _ in range(5)]
    assert list(ours.parameters) == ["w"] and losses[-1] < losses[0]
