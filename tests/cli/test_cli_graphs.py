"""`onward diff`, `extract` and `merge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graph_samples import chain

from onward.cli import main
from onward.model import load


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    models = {"a": chain("Neg", "Relu", "Exp"), "b": chain("Neg", "Elu", "Exp")}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.onnx")
    return [str(tmp_path / f"{name}.onnx") for name in models]


def test_diff(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", files[0], files[0]]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "no difference"
    page = tmp_path / "pages" / "diff.html"
    assert main(["diff", *files, "--html", str(page)]) == 1
    out = capsys.readouterr().out
    assert "1 node changed" in out and "~ Relu 'Relu_1'  Relu → Elu" in out
    assert "v1 = Elu(v0)" in page.read_text()
    assert main(["diff", *files, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["changes"][0]["details"] == ["Relu → Elu"]
    assert main(["diff", files[0], str(page)]) == 2


def test_extract_and_merge(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, both = str(tmp_path / "first.onnx"), str(tmp_path / "both.onnx")
    assert main(["extract", files[0], "--to", "v0", "--out", first]) == 0
    assert main(["merge", first, files[1], "--join", "v0=x", "--out", both]) == 0
    assert [node.op_type for node in load(both).ir.graph] == ["Neg", "Neg", "Elu", "Exp"]
    assert "input x: float32 [n, 3]" in capsys.readouterr().err
    deeper = tmp_path / "new" / "folder" / "first.onnx"
    assert main(["extract", files[0], "--to", "v0", "--out", str(deeper)]) == 0 and deeper.exists()


def test_simplify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain("Identity", "Exp", "Identity", "Neg").save(tmp_path / "a.onnx")
    made = str(tmp_path / "small.onnx")
    assert main(["convert", str(tmp_path / "a.onnx"), "--to", "onnx", "--simplify", "--dim", "n=2", "--out", made]) == 0
    assert [node.op_type for node in load(made).ir.graph] == ["Exp", "Neg"]
    assert str(load(made).ir.graph.inputs[0].shape) == "[2,3]"
    told = capsys.readouterr().err
    assert "verified" in told and "nodes: 4 → 2" in told and "time of a run in ONNX Runtime: " in told
    assert main(["convert", made, "--to", "torch", "--simplify", "--out", str(tmp_path / "t")]) == 2
    assert main(["convert", made, "--to", "onnx", "--without", "equal", "--out", made]) == 2


def test_what_cannot_be_done(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.onnx"
    assert main(["extract", files[0], "--to", "nowhere", "--out", str(out)]) == 2
    assert main(["merge", *files, "--join", "v0", "--out", str(out)]) == 2
    assert "write VALUE=INPUT" in capsys.readouterr().err
    assert not out.exists()
