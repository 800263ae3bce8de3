"""`onward view` and `onward.view`: a page of any model, written where it is wanted."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import onward
from conftest import Run
from onward.conversion import view as viewing

DIGITS = "examples/digits/digits.onnx"


def data_of(text: str) -> Any:
    found = re.search(r'id="view-data">(.*?)</script>', text)
    assert found
    return json.loads(found[1])


def test_a_page_is_written_and_its_place_is_said(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("view", DIGITS, "--to", "none", "--out", tmp_path / "m.html")
    assert (code, out.strip()) == (0, str(tmp_path / "m.html"))
    assert data_of((tmp_path / "m.html").read_text())["lines"] is None


def test_without_a_place_it_is_written_here(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Path(DIGITS).resolve()
    monkeypatch.chdir(tmp_path)
    assert run("view", model, "--to", "none")[1].strip() == "digits.view.html"
    assert [path.name for path in tmp_path.iterdir()] == ["digits.view.html"]


@pytest.mark.parametrize("to", ["torch", "tensorflow", "jax", "keras"])
def test_the_source_of_a_backend_is_beside_the_nodes(run: Run, tmp_path: Path, to: str) -> None:
    assert run("view", DIGITS, "--to", to, "--out", tmp_path / "m.html")[0] == 0
    data = data_of((tmp_path / "m.html").read_text())
    convolutions = [str(number) for number, node in enumerate(data["nodes"]) if node["op"] == "Conv"]
    assert len(convolutions) == 10 and all(number in data["lines"] for number in convolutions)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.onnx"], "missing.onnx: this file or folder does not exist"),
        ([DIGITS, "--to", "pytorch"], "there is no backend 'pytorch'; there are"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(run: Run, tmp_path: Path, words: list[str], message: str) -> None:
    code, _, err = run("view", *words, "--out", tmp_path / "m.html")
    assert code == 2 and message in err and len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_browser_is_opened(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(viewing.webbrowser, "open", opened.append)
    run("view", DIGITS, "--to", "none", "--open", "--out", tmp_path / "m.html")
    assert opened == [(tmp_path / "m.html").as_uri()]


def test_other_formats_are_shown_as_what_they_become(run: Run, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="relu", name="first")])
    net.save(tmp_path / "m.keras")
    assert run("view", tmp_path / "m.keras", "--to", "none", "--out", tmp_path / "m.html")[0] == 0
    text = (tmp_path / "m.html").read_text()
    assert "Keras model, as ONNX" in text
    assert {"MatMul", "Relu"} <= {node["op"] for node in data_of(text)["nodes"]}


def test_a_package_is_shown_and_not_run(run: Run, tmp_path: Path) -> None:
    onward.convert(DIGITS, to="torch", out=tmp_path / "net", verify=False)
    with (tmp_path / "net/model.py").open("a") as file:
        file.write("\nraise SystemExit('it was run')  # <b>\n")
    code, out, err = run("view", tmp_path / "net", "--out", tmp_path / "m.html")
    assert (code, err) == (0, "") and out
    text = (tmp_path / "m.html").read_text()
    assert "nothing of it is run" in text and "it was run" in text and "# &lt;b&gt;" in text
    assert "layer1.0.conv1.weight" in text


def unsupported() -> onward.Model:
    node = helper.make_node("Mystery", ["x"], ["y"], domain="nobody")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("nobody", 1)]
    return onward.load(
        helper.make_model(helper.make_graph([node], "net", [x], [y]), opset_imports=opsets, ir_version=8)
    )


def test_what_cannot_be_converted_can_be_looked_at() -> None:
    assert "No source for PyTorch is shown: " in onward.view(unsupported()).html
    with pytest.raises(onward.OnwardError, match="Mystery"):
        onward.view(unsupported(), to="torch")


def test_a_notebook_shows_it_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    found = onward.view(DIGITS, to="none")
    shown = found._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"') and "<script" not in shown
    assert repr(found).startswith("View('digits', ")
    monkeypatch.setattr(viewing, "LARGEST_FRAME", 1000)
    assert "too large to be shown here" in found._repr_html_()


def test_weights_in_a_file_beside_are_looked_at(tmp_path: Path) -> None:
    model = onward.load(DIGITS)
    model.save(tmp_path / "m.onnx", external_data=True)
    weights = data_of(onward.view(tmp_path / "m.onnx", to="none").html)["weights"]
    head = next(weight for weight in weights if weight["name"] == "head.weight")
    value = model.ir.graph.initializers["head.weight"].const_value
    assert value is not None
    assert head["statistics"]["max"] == pytest.approx(float(np.max(value.numpy())))
