"""`onward verify` on the command line: verdicts, exit codes, reports, and what it refuses."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from messages import problem
from onnx import numpy_helper
from test_cli import DIGITS, Run

import onward


@pytest.fixture
def changed(tmp_path: Path) -> tuple[Path, str]:
    """The digits model with one weight tensor off by 2 %, and the name of the node that uses it."""
    model = onnx.load(DIGITS)
    node = [n for n in model.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")][1]
    weight = next(w for w in model.graph.initializer if w.name == node.input[1])
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.02), weight.name))
    path = tmp_path / "changed.onnx"
    onnx.save(model, path)
    return path, node.name


def test_a_model_on_several_runners(run: Run) -> None:
    code, printed, _ = run("verify", DIGITS, "--on", "onnxruntime,torch,reference")
    assert code == 0 and printed.startswith("Same: torch and reference agree with")


def test_without_options_it_is_pytorch_against_onnx_runtime(run: Run) -> None:
    code, printed, _ = run("verify", DIGITS, "--json")
    found = json.loads(printed)
    assert code == 0 and found["status"] == "same" and found["source"] == "onnxruntime"
    assert [side["name"] for side in found["sides"]] == ["torch"]
    assert len(found["sides"][0]["trials"]) >= 3, "two sizes of the batch, and zeros"


def test_a_package_that_was_converted(run: Run, tmp_path: Path) -> None:
    run("convert", DIGITS, "--to", "torch", "--out", tmp_path / "net", "--no-verify")
    code, printed, _ = run("verify", DIGITS, tmp_path / "net")
    assert code == 0 and "agrees with" in printed


def test_the_node_at_which_two_files_part(run: Run, changed: tuple[Path, str], tmp_path: Path) -> None:
    path, node = changed
    code, printed, _ = run(
        "verify", DIGITS, path, "--bisect", "--reduce", tmp_path / "small", "--html", tmp_path / "page.html"
    )
    assert code == 1 and printed.startswith("Different")
    assert node in printed
    assert list((tmp_path / "small").glob("*.onnx")), "the reduced models"
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html") and node in page


def test_tolerances_that_are_given(run: Run, changed: tuple[Path, str]) -> None:
    path, _ = changed
    assert run("verify", DIGITS, path)[0] == 1
    assert run("verify", DIGITS, path, "--atol", "100")[0] == 0


def test_inputs_that_are_given(run: Run, tmp_path: Path) -> None:
    name = onnx.load(DIGITS).graph.input[0].name
    np.savez(tmp_path / "x.npz", **{name: np.zeros((3, 1, 8, 8), np.float32)})
    code, printed, _ = run("verify", DIGITS, "--inputs", tmp_path / "x.npz", "--json")
    assert code == 0 and len(json.loads(printed)["data"]) == 1
    np.savez(tmp_path / "y.npz", **{name: np.zeros((3, 1, 9, 8), np.float32)})
    code, _, errors = run("verify", DIGITS, "--inputs", tmp_path / "y.npz")
    assert code == 2 and errors.startswith("onward: ") and "9" in errors and errors.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.onnx"], "missing.onnx"),
        ([DIGITS, "--on", "onnxruntime"], "nothing to compare with"),
        ([DIGITS, "--on", "abacus,torch"], "there is no runner 'abacus'"),
        ([DIGITS, "--dim", "batch"], "--dim batch: write it as NAME=SIZE"),
        ([DIGITS, "--dim", "rows=3"], "rows"),
        ([DIGITS, "--memory", "lots"], "--memory lots: write it as a number and a unit"),
        ([DIGITS, "--inputs", "nowhere.npz"], "nowhere.npz"),
        ([DIGITS, "--html", "/proc/onward/x.html"], "cannot be written"),
        ([DIGITS, "--on", "onnxruntime,"], "with commas between"),
        ([DIGITS, "--inputs", ""], "the path of the inputs is empty"),
        ([DIGITS, "--dim", "batch=²"], "write it as NAME=SIZE"),
        ([DIGITS, "--dim", "batch=99999999999999999999"], "cannot be made"),
        ([DIGITS, "--dim", "batch=99999999999999"], "cannot be made"),
        ([DIGITS, "--memory", "infGB"], "write it as a number and a unit"),
        ([DIGITS, "--memory", "0GB"], "memory cannot be 0"),
        ([DIGITS, "--timeout", "nan"], "timeout cannot be nan"),
        ([DIGITS, "--seed=-1"], "seed cannot be -1"),
        ([DIGITS, "--atol", "nan"], "atol cannot be nan"),
        ([DIGITS, "--rtol=-1"], "rtol cannot be -1"),
    ],
)
def test_refusals(run: Run, arguments: list[object], words: str) -> None:
    code, _, errors = run("verify", *arguments)
    assert code == 2 and words in problem(errors)


def test_a_side_that_cannot_be_opened_is_a_verdict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "nothing.onnx").write_bytes(b"nothing")
    code, printed, _ = run("verify", DIGITS, tmp_path / "nothing.onnx", "--on", "onnxruntime,torch")
    assert code == 2 and "nothing.onnx" in printed


def test_a_runner_that_nobody_knows(run: Run) -> None:
    code, printed, errors = run("verify", DIGITS, "--on", "onnxruntime,pytorch")
    assert code == 2 and not printed and "did you mean torch?" in errors


def test_a_runner_that_is_not_installed_is_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a word, where another one is compared; where it is the only one, that is an error."""
    monkeypatch.setitem(sys.modules, "openvino", None)
    code, printed, _ = run("verify", DIGITS, "--quick", "--on", "onnxruntime,openvino,onnxruntime:unoptimized")
    words = " ".join(printed.split())
    assert code == 0 and words.startswith("Same") and "openvino is left out: openvino is not installed" in words
    code, _, errors = run("verify", DIGITS, "--quick", "--on", "onnxruntime,openvino")
    assert code == 2 and "pip install 'onward[openvino]'" in errors


def test_a_process_of_its_own(run: Run) -> None:
    code, printed, _ = run("verify", DIGITS, "--on", "onnxruntime,onnxruntime:unoptimized", "--isolate")
    assert code == 0 and printed.startswith("Same")


def test_list_of_runners(run: Run) -> None:
    code, printed, _ = run("verify", "--list")
    assert code == 0 and all(name in printed for name in ("onnxruntime", "reference", "torch:compile", "openvino"))


def test_in_python(changed: tuple[Path, str]) -> None:
    report = onward.verify(DIGITS, against=["torch", "reference"])
    assert report.ok and report.worst is not None and report.worst.metrics.worst < 1e-5
    report = onward.verify(DIGITS, against=changed[0])
    assert not report.ok and report.worst is not None and report.worst.status == "different"
