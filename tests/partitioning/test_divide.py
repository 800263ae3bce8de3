"""Models divided among real runtimes: what one refuses or computes wrong runs elsewhere, and the whole is the same."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import onward
from onward import runners
from onward.errors import InvalidModelError, OnwardError
from onward.model import Model
from onward.partitioning.divide import divide
from onward.partitioning.graph import ready
from onward.partitioning.stages import FALLBACK, TARGET
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.chain import read_chain

MIXED = """<ir_version: 10, opset_import: ["" : 21]> g (float[n, 2, 2] x) => (float[n] y)
<float[2, 2] w = {1, 2, 3, 4}> {
    a = MatMul(x, w)
    b = Tanh(a)
    c = Det(b)
    d = Neg(c)
    y = Sigmoid(d)
}"""
"""OpenVINO has no Det."""
SCALED = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> g (float[n, 4] x) => (float[n, 4] y) {
    a = Tanh(x)
    b = ai.onnx.ml.Scaler <offset = [0.5, 0.0, -0.5, 1.0], scale = [1.0, 2.0, 3.0, 4.0]> (a)
    y = Sigmoid(b)
}"""
"""OpenVINO has no Scaler, but the ops that it is made of."""


def mixed() -> onnx.ModelProto:
    return onnx.parser.parse_model(MIXED)


def test_what_openvino_refuses_runs_on_onnx_runtime() -> None:
    made = divide(mixed(), "openvino")
    assert [part.side for part in made.parts] == [TARGET, FALLBACK, TARGET]
    assert [node.op_type for node in made.parts[1].nodes] == ["Det"]
    assert "Det" in next(iter(made.refused.values()))
    assert made.result is not None and made.result.status == "same"
    assert made.taken == 0.8


def test_what_can_be_written_in_ops_of_the_target_runs_there(tmp_path: Path) -> None:
    made = onward.partition(onnx.parser.parse_model(SCALED), "openvino", tmp_path / "split")
    assert [part.side for part in made.parts] == [TARGET]
    assert set(made.written) == {"b"} and made.taken == made.taken_as_written == 1.0
    assert made.result is not None and made.result.status == "same"
    assert "b" in json.loads((tmp_path / "split" / "plan.json").read_text())["written"]
    assert "Scaler" in (tmp_path / "split" / "report.html").read_text()
    assert onward.verify(onnx.parser.parse_model(SCALED), tmp_path / "split").status == "same"


def test_simpler_ops_that_the_target_refuses_as_well_leave_the_node_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two nodes can be written out; of the other, the target lacks an op that it is made of."""

    def prepare(model: Model, mode: str) -> Run:
        if lacking := {node.op_type for node in model.ir.graph} & {"Scaler", "Gelu", "Erf"}:
            raise OnwardError(f"picky: no {lacking}")
        return runners.prepare("onnxruntime", model)

    runner = runners.Runner("picky", "lacks a few ops", "onnxruntime", prepare, {})
    monkeypatch.setitem(runners.RUNNERS._user, "picky", runner)
    made = divide(onnx.parser.parse_model(SCALED.replace("Sigmoid", "Gelu")), "picky")
    assert set(made.written) == {"b"} and list(made.refused) == ["y"]
    assert [node.op_type for node in made.parts[-1].nodes] == ["Gelu"]
    assert made.taken == 2 / 3 < made.taken_as_written < 1
    assert made.result is not None and made.result.status == "same"


LSTM = """<ir_version: 10, opset_import: ["" : 21]> g (float[t, n, 2] x) => (float[t, 1, n, 2] y)
<float[1, 8, 2] w = {%s}, float[1, 8, 2] r = {%s}, float[1, 6] p = {0.5, -0.4, 0.3, 0.2, -0.1, 0.6}> {
    y, h, c = LSTM <hidden_size = 2, activations = ["HardSigmoid", "Tanh", "Tanh"]> (x, w, r, , , , , p)
}""" % ((", ".join(f"{(7 * i % 11 - 5) / 8}" for i in range(16)),) * 2)


def test_an_lstm_that_openvino_lacks_runs_there_step_by_step() -> None:
    """It refuses HardSigmoid, and leaves peepholes out without a word."""
    made = divide(onnx.parser.parse_model(LSTM), "openvino")
    assert [part.side for part in made.parts] == [TARGET] and len(made.written) == 1
    assert "Scan" in {node.op_type for node in made.parts[0].nodes}
    assert made.result is not None and made.result.status == "same"


def test_a_squeeze_of_any_rank_is_put_off() -> None:
    """Its rank depends on the batch, which OpenVINO does not take; what follows it is the same."""
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[n, 1] x) => (float[] y)
    <float four = {4}, float[1] row = {1}> {
        a = Squeeze(x)
        b = Sigmoid(a)
        c = Sub(four, b)
        y = Add(c, row)
    }"""
    model = onward.load(onnx.parser.parse_model(text))
    late = ready(model)
    assert [node.op_type for node in late.ir.graph] == ["Sigmoid", "Sub", "Squeeze", "Add"]
    for batch in (1, 3):
        feeds = {"x": np.full((batch, 1), 0.5, np.float32)}
        wanted, found = (runners.prepare("onnxruntime", one)(feeds)["y"] for one in (model, late))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> str:
    """A runtime that takes everything, and computes Tanh wrong."""

    def prepare(model: Model, mode: str) -> Run:
        graph = model.ir.clone()
        for node in graph.graph:
            if node.op_type == "Tanh":
                node.op_type = "Sin"
        return runners.prepare("onnxruntime", Model(graph))

    runner = runners.Runner("faulty", "wrong on purpose", "onnxruntime", prepare, {})
    monkeypatch.setitem(runners.RUNNERS._user, "faulty", runner)
    return "faulty"


def test_a_node_that_is_computed_wrong_is_found_and_runs_elsewhere(faulty: str) -> None:
    made = divide(mixed(), faulty)
    assert [node.op_type for part in made.parts if part.side == FALLBACK for node in part.nodes] == ["Tanh"]
    assert "something else" in next(iter(made.refused.values()))
    assert made.result is not None and made.result.status == "same"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> str:
    """A runtime that compiles everything, and fails when Sigmoid and MatMul run together."""

    def prepare(model: Model, mode: str) -> Run:
        run = runners.prepare("onnxruntime", model)
        ops = {node.op_type for node in model.ir.graph}

        def fails(inputs: Inputs) -> Outputs:
            if {"Sigmoid", "MatMul"} <= ops:
                raise RuntimeError("no memory on the device")
            return run(inputs)

        return fails

    runner = runners.Runner("failing", "fails on purpose", "onnxruntime", prepare, {})
    monkeypatch.setitem(runners.RUNNERS._user, "failing", runner)
    return "failing"


def test_nodes_that_fail_only_together_are_taken_apart(failing: str) -> None:
    made = divide(mixed(), failing)
    assert made.result is not None and made.result.status == "same"
    assert 0 < made.taken < 1
    assert any("only together" in why for why in made.refused.values())


def test_a_table_of_ops_stands_for_a_runtime_that_is_not_here(tmp_path: Path) -> None:
    table = tmp_path / "trt.csv"
    table.write_text("op,refused\nMatMul,\nSigmoid,\nTanh,only in half precision\n")
    made = divide(mixed(), "tensorrt", table=table)
    assert made.result is None
    assert sorted(made.refused.values()) == ["Det is not in trt.csv", "Neg is not in trt.csv", "only in half precision"]
    table.write_text("name\nMatMul\n")
    with pytest.raises(OnwardError, match="no column 'op'"):
        divide(mixed(), "tensorrt", table=table)


def test_a_folder_of_parts_is_verified_as_one_model(tmp_path: Path) -> None:
    onward.partition(mixed(), "openvino", tmp_path / "split")
    names = sorted(path.name for path in (tmp_path / "split").iterdir())
    assert names == ["0_openvino.onnx", "1_onnxruntime.onnx", "2_openvino.onnx", "plan.json", "report.html"]
    report = onward.verify(mixed(), tmp_path / "split")
    assert report.status == "same"
    page = (tmp_path / "split" / "report.html").read_text()
    assert ("Det" in page and "splitting does not pay" in page) or "times as fast" in page
    other = onnx.parser.parse_model(MIXED.replace("Sigmoid", "Tanh"))
    assert onward.verify(other, tmp_path / "split").status == "different"


def test_parts_of_an_earlier_division_do_not_stay(tmp_path: Path) -> None:
    onward.partition(mixed(), "openvino", tmp_path / "split")
    onward.partition(mixed(), "onnxruntime", tmp_path / "split")
    assert sorted(path.name for path in (tmp_path / "split").glob("*.onnx")) == ["0_onnxruntime.onnx"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"links": [{"file": "../secret.onnx", "runner": "onnxruntime", "inputs": [], "outputs": []}]},
            "beside the plan",
        ),
        ({"links": [{"file": "/etc/passwd", "runner": "onnxruntime", "inputs": [], "outputs": []}]}, "beside the plan"),
        ({"links": 3}, "damaged"),
        ({"inputs": None}, "damaged"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    onward.partition(mixed(), "onnxruntime", tmp_path / "split")
    plan = tmp_path / "split" / "plan.json"
    plan.write_text(json.dumps({**json.loads(plan.read_text()), **change}))
    with pytest.raises(InvalidModelError, match=words):
        read_chain(tmp_path / "split")


def test_a_model_of_an_old_opset_is_raised_first() -> None:
    text = """<ir_version: 7, opset_import: ["" : 11]> g (float[n, 3, 4] x) => (float[n, 3, 1] y) {
        a = ReduceL1 <axes = [2]> (x)
        b = ReduceLogSumExp <axes = [2]> (x)
        y = Add(a, b)
    }"""
    made = divide(onnx.parser.parse_model(text), "openvino")
    assert made.model.opset[""] == 21
    assert made.result is not None and made.result.status == "same"


def test_inputs_of_the_user_are_run_on() -> None:
    data = {"x": np.ones((3, 2, 2), np.float32)}
    made = divide(mixed(), "openvino", inputs=data)
    assert made.sample["x"].shape == (3, 2, 2)
