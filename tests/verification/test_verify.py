"""Verdicts on whole models, and the doubts that a report has about them."""

from pathlib import Path

import numpy as np
import pytest
from graphs import model

from onward.errors import UnsupportedError
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Run
from onward.verification.noise.spread import Noise
from onward.verification.sides import Side
from onward.verification.verify import verify

SCALED = "t (float[N,4] x) => (float[N,4] y) { y = Mul(x, w) }"
TWO = "t (float[N,4] x) => (float[N,4] {0}, float[N,4] {1}) {{ y = Mul(x, w) z = Add(x, w) }}"
SHADOW = """t (float[9] x) => (float[9] y) {
    i = Constant <value_ints=[4]> () huge = Constant <value_floats=[1e9]> () y = ScatterElements(x, i, huge) }"""
W = np.array([1, 2, 3, 4], np.float32)


def notes(text: str, **options) -> str:
    made = model(text, w=W)
    return " ".join(verify(made, made, **options).notes)


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("t (float[2,4] x) => (float[2,4] y) { n = RandomNormalLike(x) y = Add(n, w) }", "RandomNormalLike"),
        ("t (float[2,4] x) => (float[2,4] y) { z = Sub(x, x) y = Div(z, z) }", "'y' has no finite number"),
        ("t (float[2,4] x) => (float[2,4] y) { y = Sub(x, x) }", "'y' is zero"),
        (SHADOW, "'y' has a few elements next to which"),
    ],
)
def test_agreement_that_says_little_is_not_passed_over_in_silence(text: str, doubt: str) -> None:
    assert doubt in notes(text)


def test_empty_outputs_are_not_taken_for_a_proof() -> None:
    assert "'y' is empty" in notes(SCALED, dims={"N": 0})
    assert notes(SCALED) == ""


def test_a_runner_comes_before_a_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reference").mkdir()
    assert verify(model(SCALED, w=W), "reference").ok
    assert "folder" in verify(model(SCALED, w=W), Path("reference")).sides[0].failure


def test_a_file_that_is_not_there_is_said_to_be_so() -> None:
    assert "neither a file nor a runner 'gone.onnx'" in verify(model(SCALED, w=W), "gone.onnx").sides[0].failure


@pytest.mark.parametrize(
    ("runner", "problem"),
    [("onnxruntime:Fast", "has no execution provider 'Fast'"), ("torch:fast", "has no mode 'fast'")],
)
def test_a_runner_that_does_not_start_is_the_result_of_its_side(runner: str, problem: str) -> None:
    report = verify(model(SCALED, w=W), [runner, "onnxruntime"])
    assert problem in report.sides[0].failure
    assert report.sides[1].status == "same"


def test_a_smaller_model_that_cannot_be_written_leaves_the_verdict(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = verify(model(SCALED, w=W), model(SCALED, w=W + 1), reduce_to=tmp_path / "file")
    assert report.status == "different" and report.sides[0].culprit is not None
    assert "no smaller model was written" in " ".join(report.notes)


def test_outputs_in_another_order_are_remarked_upon() -> None:
    report = verify(model(TWO.format("y", "z"), w=W), model(TWO.format("z", "y"), w=W))
    assert report.ok and report.worst.reason == "the other side has it as output 2, not 1"


def test_noise_is_measured_in_processes_of_their_own_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []

    def record(runner: str, made: Model, **limits: object) -> Run:
        prepared.append(runner)
        return prepare(runner, made)

    monkeypatch.setattr("onward.verification.sides.isolated", record)
    assert verify(model(SCALED, w=W), model(SCALED, w=W + 1), isolate=True).status == "different"
    assert "onnxruntime:unoptimized" in prepared


def test_why_no_sizes_fit_is_said() -> None:
    never = model("t (float[N] x) => (float[M] y) { i = Constant <value_ints=[-999999]> () y = Gather(x, i) }")
    with pytest.raises(UnsupportedError, match=r"no sizes found .* The last attempt: .*Gather"):
        verify(never, "onnxruntime")


def test_noise_is_not_measured_where_the_usual_size_of_an_output_settles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On zeros the output is so small that rounding shows; measuring takes many more runs than the check itself."""

    def measured(*_: object, **__: object) -> Noise:
        raise AssertionError("noise is measured")

    monkeypatch.setattr("onward.verification.truth.measure_noise", measured)
    source = model("g (float[2, 8] x) => (float[2, 8] y) <float[1] b = {1e-5}> { y = Add(x, b) }")
    run = prepare("onnxruntime", source)
    rounded = Side("rounded", lambda inputs: {"y": run(inputs)["y"] + np.float32(3e-9)})
    assert verify(source, rounded).status == "same"
    assert verify(source, "onnxruntime:unoptimized", all_nodes=True).sides[0].profile
    wrong = Side("wrong", lambda inputs: {"y": run(inputs)["y"] + np.float32(1e-3)})
    with pytest.raises(AssertionError, match="noise is measured"):
        verify(source, wrong)
