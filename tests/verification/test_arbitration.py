"""Which of two sides is alone, by the reference; and what conversions make of that."""

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onward
from onward.cli import main
from onward.errors import NotVerifiedWarning, RuntimeDiffersWarning, VerificationError
from onward.model import Model
from onward.report.verify_page import page
from onward.runners import RUNNERS, find, prepare
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification import arbitration
from onward.verification.check import prove, prove_source

TEXT = """<ir_version: 10, opset_import: ["": 20]>
g (float[n, 8] x) => (float[n, 8] y) <float two = {2.0}> {
    [scaled] s = Mul(x, two)
    [rectified] r = Relu(s)
    [squashed] y = Tanh(r)
}"""


@pytest.fixture
def proto() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def changed(model: Model, op: str, instead: str) -> Model:
    proto = model.to_proto()
    for node in proto.graph.node:
        if node.op_type == op:
            node.op_type = instead
    return onward.load(proto)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a runner take one op for another, wherever it stands."""

    def breaks(name: str, op: str = "Relu", instead: str = "Abs") -> None:
        right, _ = find(name)

        def prepare(model: Model, mode: str) -> Run:
            return right.prepare(changed(model, op, instead), mode)

        monkeypatch.setitem(RUNNERS._user, name, replace(right, prepare=prepare, start=None))

    return breaks


def test_a_runtime_that_is_alone_is_named_with_the_node(proto: onnx.ModelProto, broken: Any, tmp_path: Path) -> None:
    broken("onnxruntime")
    report = onward.verify(proto, "torch")
    found = report.sides[0].arbitration
    assert report.status == "different"
    assert found is not None
    assert found.words == "ONNX Runtime is alone: PyTorch and the reference agree"
    assert (found.alone, found.blames_runtime) == ("source", True)
    assert found.culprit is not None
    assert (found.culprit.node, found.culprit.op) == ("rectified", "Relu")
    assert json.loads(json.dumps(report.to_json()))["sides"][0]["arbitration"]["alone"] == "source"
    written = page(report)
    assert found.words in written
    assert "ONNX Runtime parts from the reference at rectified (Relu)" in written


def test_a_result_that_is_alone_is_named(proto: onnx.ModelProto, broken: Any, capsys: Any, tmp_path: Path) -> None:
    broken("torch")
    path = tmp_path / "net.onnx"
    onnx.save(proto, path)
    assert main(["verify", str(path), "--on", "onnxruntime,torch"]) == 1
    assert "PyTorch is alone: ONNX Runtime and the reference agree." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("instead", "words"),
    [("Neg", "the reference agrees with neither"), ("Erf", "the reference agrees with neither")],
)
def test_three_that_differ_leave_it_open(proto: onnx.ModelProto, broken: Any, instead: str, words: str) -> None:
    broken("onnxruntime")
    broken("torch", instead=instead)
    found = onward.verify(proto, "torch").sides[0].arbitration
    assert found is not None
    assert (found.alone, found.words) == ("", words)


def test_a_conversion_is_not_blamed_for_a_runtime(proto: onnx.ModelProto, broken: Any, tmp_path: Path) -> None:
    broken("onnxruntime")
    words = r"verified: against the reference, .*warning: ONNX Runtime gives other numbers, first at rectified \(Relu\)"
    with pytest.warns(RuntimeDiffersWarning, match=words):
        onward.to_torch(proto)
    with pytest.warns(RuntimeDiffersWarning, match=words):
        done = onward.convert(proto, to="torch", out=tmp_path / "net")
    assert (done.verdicts[0].status, done.doubt) == ("verified", "")
    assert "ONNX Runtime is alone" in done.verdicts[0].warning


def test_a_defect_of_a_conversion_is_not_hidden(proto: onnx.ModelProto, broken: Any) -> None:
    """Neither where ONNX Runtime is right, nor where it is wrong as well."""
    run = prepare("reference", onward.load(proto))

    def wrong(inputs: Inputs) -> Outputs:
        return {name: value + 1 for name, value in run(inputs).items()}

    with pytest.raises(VerificationError, match="the result is alone: ONNX Runtime and the reference agree"):
        prove(onward.load(proto), wrong)
    broken("onnxruntime")
    with pytest.raises(VerificationError, match="the result differs from onnxruntime"):
        prove(onward.load(proto), wrong)


def test_a_file_that_onnx_runtime_runs_wrong_is_not_called_verified(proto: onnx.ModelProto, broken: Any) -> None:
    broken("onnxruntime")
    model = onward.load(proto)
    words = "not verified: by the reference the ONNX model computes what PyTorch does, but ONNX Runtime gives other"
    with pytest.warns(NotVerifiedWarning, match=words):
        prove_source(model, lambda: prepare("torch", model), "PyTorch")


def test_the_reference_is_asked_only_about_what_differs(
    proto: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    monkeypatch.setattr(arbitration, "within", lambda *_, **__: pytest.fail("it was asked"))
    assert onward.verify(proto, "torch").sides[0].arbitration is None
    broken("torch")
    assert onward.verify(proto, "torch", arbitrate=False).sides[0].arbitration is None
    assert onward.verify(proto, "reference").ok
    monkeypatch.setattr(arbitration, "LARGEST", 0)
    assert onward.verify(proto, "torch").sides[0].arbitration is None


def test_a_reference_that_cannot_answer_leaves_it_open(
    proto: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    broken("torch")
    monkeypatch.setattr(arbitration, "SECONDS", 0.3)
    slow, _ = find("reference")

    def prepare(model: Model, mode: str) -> Run:
        def run(inputs: Inputs) -> Outputs:
            for _ in range(1000):
                time.sleep(0.01)
            return {}

        return run

    monkeypatch.setitem(RUNNERS._user, "reference", replace(slow, prepare=prepare))
    found = onward.verify(proto, "torch", quick=True).sides[0].arbitration
    assert found is not None
    assert found.alone == ""
    assert found.words.startswith("the reference could not be asked: the reference took longer than 0.3 s")


def test_random_numbers_are_not_judged() -> None:
    text = TEXT.replace("Tanh(r)", "Bernoulli(r)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = onward.verify(onnx.parser.parse_model(text), "torch")
    assert all(side.arbitration is None for side in found.sides)


def test_saturation_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """<ir_version: 10, opset_import: ["": 20]>
    g (uint8[2, 8] a, int8[8, 3] b) => (int32[2, 3] y) { [product] y = MatMulInteger(a, b) }"""
    right, _ = find("onnxruntime")

    def prepare(model: Model, mode: str) -> Run:
        run = right.prepare(model, mode)
        return lambda inputs: {name: np.clip(value, -1000, 1000) for name, value in run(inputs).items()}

    monkeypatch.setitem(RUNNERS._user, "onnxruntime", replace(right, prepare=prepare, start=None))
    monkeypatch.setattr("onward.runners.unsaturated.products_saturate", lambda: True)
    found = onward.verify(onnx.parser.parse_model(text), "torch").sides[0].arbitration
    assert found is not None
    assert found.blames_runtime
    assert "ONNX Runtime saturates here" in found.words
