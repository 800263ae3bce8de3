"""A backend that is installed beside Onward: every command takes it up, and nothing else has to change.

`toy/` is on the path as the folder of an installed package is: a package, and beside it the entry point.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import onward
from onward.cli import main

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy"
DIGITS = ROOT / "examples/digits/digits.onnx"
OPS = {
    *("Add", "Sub", "Mul", "Div", "Relu", "Sigmoid", "MatMul", "Gemm", "Reshape", "Flatten", "Transpose"),
    *("ReduceMean", "Conv", "BatchNormalization"),
}
CASES = (
    r"^test_(add|sub|mul|div|relu|sigmoid|matmul_|gemm|reshape|flatten|transpose|reduce_mean|basic_conv|conv_|Conv\d"
    r"|BatchNorm|batchnorm_(?!.*training)|Linear)(?!.*(expanded|transpose))"
)
"""Of ONNX's suite those that have only these ops."""

Done = subprocess.CompletedProcess[str]


def python(*arguments: str | Path, code: int = 0) -> Done:
    """Run Python with the toy on its path."""
    path = os.pathsep.join([str(Path(onward.__file__).parents[1]), str(TOY)])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def command(*arguments: str | Path, code: int = 0) -> Done:
    return python("-m", "onward", *arguments, code=code)


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    out = tmp_path_factory.mktemp("made") / "digits"
    return out, command("convert", DIGITS, "--to", "numpy", "--out", out)


@pytest.fixture
def tanh(tmp_path: Path) -> Path:
    """A model with an op that the toy has no rule for."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [helper.make_node("Add", ["x", "x"], ["z"]), helper.make_node("Tanh", ["z"], ["y"], "squash")]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, tmp_path / "tanh.onnx")
    return tmp_path / "tanh.onnx"


def test_it_is_unknown_where_it_is_not_installed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["convert", str(DIGITS), "--to", "numpy", "--out", str(tmp_path / "digits")])
    assert "there is no 'numpy'" in capsys.readouterr().err


def test_convert_verifies_and_writes_a_package(converted: tuple[Path, Done]) -> None:
    out, done = converted
    assert "verified: " in done.stderr and "trainable" not in done.stderr
    assert {path.name for path in out.iterdir()} == {"model.py", "ops.py", "weights.safetensors", "onward.json"}
    text = (out / "model.py").read_text()
    assert text.startswith('"""digits: a NumPy model."""\n') and "\nclass Model:\n" in text
    assert 'self.weights["layer1.0.conv1.weight"]' in text and "integer_divide" not in (out / "ops.py").read_text()


def test_the_package_runs_by_itself(converted: tuple[Path, Done]) -> None:
    program = """
import sys
import numpy as np
from digits.model import load

assert load()(np.zeros((3, 1, 8, 8), np.float32)).shape == (3, 10)
print(sorted({"onward", "onnx", "onnxruntime", "torch", "tensorflow", "ml_dtypes"} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=converted[0].parent, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_verify_takes_its_packages(converted: tuple[Path, Done]) -> None:
    assert "(generated NumPy package) agrees with" in command("verify", DIGITS, converted[0]).stdout


def test_verify_runs_it(converted: tuple[Path, Done]) -> None:
    assert "numpy agrees with" in command("verify", DIGITS, "--on", "onnxruntime,numpy").stdout


def test_packages_of_several_backends_are_told_apart(converted: tuple[Path, Done], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text('"""net: a PyTorch model."""\n\nimport numpy as np\nimport torch\n')
    (tmp_path / "weights.safetensors").touch()
    program = """
import sys
from pathlib import Path
from onward.backends.backend import backends
from onward.formats.package import recognise

for folder in map(Path, sys.argv[1:]):
    print([one.name for one in backends() if one.writes_packages and recognise(folder, one)])
"""
    assert python("-c", program, converted[0], tmp_path).stdout == "['numpy']\n['torch']\n"


def test_inspect_shows_what_it_supports(tanh: Path) -> None:
    found = json.loads(command("inspect", tanh, "--json").stdout)
    support = {row["op"]: row["support"]["numpy"]["status"] for row in found["ops"]}
    assert support == {"Add": "exact", "Tanh": "unsupported"}
    assert found["backends"]["numpy"]["unsupported"] == ["Tanh"]
    shown = command("inspect", tanh).stdout
    assert "torch: every op is supported\n" in shown and "numpy: no rule for Tanh; " in shown


def test_an_op_without_a_rule_is_refused_by_name(tanh: Path) -> None:
    done = command("convert", tanh, "--to", "numpy", "--out", tanh.parent / "out", code=2)
    assert "Tanh 'squash': numpy has no rule for Tanh" in done.stderr and not (tanh.parent / "out").exists()


def test_an_option_that_it_does_not_take_is_refused(tanh: Path) -> None:
    options = ["--trainable", "*", "--out", tanh.parent / "out"]
    done = command("convert", DIGITS, "--to", "numpy", *options, code=2)
    assert "--trainable is for --to " in done.stderr and "numpy" not in done.stderr


def test_the_coverage_page_has_its_column(tmp_path: Path) -> None:
    python("-m", "onward.report.coverage", tmp_path / "coverage.md")
    page = (tmp_path / "coverage.md").read_text()
    table = page.partition("\n## ai.onnx\n")[2].partition("\n## ")[0].strip().splitlines()
    column = table[0].split(" | ").index("numpy |")
    cells = {row.split(" | ")[0].strip("| `"): row.split(" | ")[column].strip("| ") for row in table[2:]}
    assert {op for op, cell in cells.items() if cell.startswith(("exact", "partial"))} == OPS | {"Constant"}
    assert cells["BatchNormalization"] == "partial (not in training mode)" and cells["Tanh"] == "unsupported (no rule)"
    assert "\n## Summary: numpy\n" in page


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["shapes", "unknown"])
def test_the_cases_of_its_ops_pass(options: list[str]) -> None:
    cases = CASES.replace("conv_", "conv_(?!.*autopad)") if options else CASES
    passed, _, count = python("-m", "onward.scoreboard.suite", "numpy", "-k", cases, *options).stdout.split()[:3]
    assert passed == count and int(count) > 100


def test_convert_in_python(tmp_path: Path) -> None:
    program = "import onward, sys; print(onward.convert(sys.argv[1], to='numpy', out=sys.argv[2]))"
    done = python("-c", program, DIGITS, tmp_path / "digits")
    assert "verified: " in done.stdout and (tmp_path / "digits/model.py").exists()


def test_a_backend_that_does_not_load_is_left_out_with_a_warning(tmp_path: Path) -> None:
    info = tmp_path / "onward_broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onward-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[onward.backends]\nbroken = onward_broken.backend:BACKEND\n")
    program = "from onward.backends.backend import backends; print(*[one.name for one in backends()])"
    path = os.pathsep.join([str(Path(onward.__file__).parents[1]), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split()) == ["jax", "keras", "matlab", "tensorflow", "torch"]
    assert "the backend 'broken' of another package is left out" in done.stderr and "onward_broken" in done.stderr
