"""Functions of JAX in files: converted and inspected from the command line."""

from pathlib import Path

import numpy as np
import pytest
from messages import problem

from conftest import Run

pytest.importorskip("jax")

import onward

NET = """
import jax


def apply(params, x):
    return jax.nn.relu(x @ params["dense"]["kernel"] + params["dense"]["bias"])


def scaled(x, factor):
    return x * factor


number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(NET)
    weights = {"dense.kernel": np.ones((3, 2), np.float32), "dense.bias": np.arange(2, dtype=np.float32)}
    np.savez(tmp_path / "weights.npz", **weights)  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_with_its_weights_becomes_a_file(folder: Path, run: Run) -> None:
    line = [
        "convert",
        "net.py:apply",
        "--params",
        "weights.npz",
        "--spec",
        "f32[b,3]",
        "--to",
        "onnx",
        "--out",
        "n.onnx",
    ]
    code, _, error = run(*line)
    assert code == 2
    assert "--trust" in error and not (folder / "n.onnx").exists()
    code, _, error = run(*line, "--trust")
    assert code == 0, error
    assert "verified" in error
    model = onward.load("n.onnx")
    assert [value.name for value in model.ir.graph.inputs] == ["x"]
    assert set(model.ir.graph.initializers) == {"dense.kernel", "dense.bias"}


def test_inputs_are_named_by_their_specs(folder: Path, run: Run) -> None:
    specs = ["--spec", "image:f32[b,4]", "--spec", "by:f32[]"]
    code, _, error = run("convert", "net.py:scaled", *specs, "--to", "onnx", "--out", "s.onnx", "--trust")
    assert code == 0, error
    assert [str(value.name) for value in onward.load("s.onnx").ir.graph.inputs] == ["image", "by"]


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("net.py:scaled", ["--spec", "f3[b]"], "'f3' is no dtype"),
        ("net.py:scaled", ["--spec", "f32{b}"], "is not understood"),
        ("net.py:scaled", ["--spec", "x:f32[b]", "--spec", "f32[]"], "either all inputs have a name"),
        ("net.py:scaled", ["--spec", "f32[b]"], "cannot trace it with these specs: TypeError"),
        ("net.py:number", ["--spec", "f32[b]"], "is no function"),
        ("net.py:absent", ["--spec", "f32[b]"], "has no function 'absent'"),
        ("net.py:apply", ["--spec", "f32[b,3]", "--params", "absent.npz"], "absent.npz"),
        ("net.py:apply", ["--params", "weights.npz"], "give --spec"),
        ("weights.npz", ["--spec", "f32[b]"], "is for functions of JAX"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder: Path, run: Run, source: str, options: list[str], words: str) -> None:
    code, _, error = run("convert", source, *options, "--to", "onnx", "--out", "out.onnx", "--trust")
    assert code == 2
    assert words in problem(error)
    assert not (folder / "out.onnx").exists()
