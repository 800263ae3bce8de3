"""Packages of MATLAB source: what is written, read back by Octave, parsed as both dialects, and safe from names."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onward.advice.extras import is_installed
from onward.backends.backend import backend
from onward.backends.matlab import matfile
from onward.backends.matlab.convert import generate
from onward.backends.matlab.language import wrap
from onward.backends.matlab.package import package_name, runtime
from onward.backends.matlab.render import literal_text
from onward.cli import main
from onward.errors import OnwardError, UnsupportedError
from onward.model import load
from onward.runners import prepare

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples/digits/digits.onnx"
RUNTIME = ROOT / "src/onward/backends/matlab"
octave = pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")


def lint(folder: Path, *dialect: str) -> str:
    command = [Path(sys.executable).with_name("mh_lint"), "--single", "--brief", "--ignore-config", *dialect, folder]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False).stdout


@octave
def test_a_package_is_written_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "+net"
    assert main(["convert", str(DIGITS), "--to", "matlab", "--out", str(out)]) == 0
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {"model.m", "load.m", "params.mat", "predict_image.m", "README.md", "interface.json"} <= names
    text = (out / "model.m").read_text()
    assert {name.removesuffix(".m") for name in names if name.startswith("+ops/")} >= {
        f"+ops/{name}" for name in re.findall(r"net\.ops\.(\w+)", text)
    }
    assert "everything seems fine" in lint(out) and "everything seems fine" in lint(out, "--octave", "7.2")
    assert main(["verify", str(DIGITS), str(out)]) == 0
    assert main(["convert", str(DIGITS), "--to", "matlab", "--out", str(out)]) == 0  # over its own
    (out / "+ops" / "relu.m").write_text("function y = relu(x)\ny = -x;\nend\n")
    assert main(["verify", str(DIGITS), str(out)]) == 2
    assert "which could execute anything when it is opened" in capsys.readouterr().err
    assert main(["verify", "--trust", str(DIGITS), str(out)]) == 1
    assert main(["convert", str(DIGITS), "--to", "matlab", "--out", str(out)]) == 2
    assert "was changed since" in capsys.readouterr().err


@octave
def test_an_image_as_matlab_has_it(tmp_path: Path) -> None:
    out = tmp_path / "+net"
    assert main(["convert", str(DIGITS), "--to", "matlab", "--out", str(out)]) == 0
    program = (
        "x = single(reshape(1:64, 8, 8)); p = net.load();"
        "a = net.model(p, x); b = net.predict_image(p, x.'); printf('%d %d %d', size(a), isequal(a, b));"
    )
    done = subprocess.run(["octave-cli", "--norc", "--eval", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "10 1 1", done.stderr


def test_helpers_are_read_as_both_dialects() -> None:
    for dialect in ((), ("--octave", "7.2")):
        assert "everything seems fine" in lint(RUNTIME / "runtime", *dialect)


def test_helpers_are_one_function_each_and_call_those_that_there_are() -> None:
    for name, text in runtime().items():
        assert re.match(rf"function ([\w\[\], ]+ = )?{name}\(", text), name
        assert text.count("\nfunction ") == 0 and text.endswith("end\n"), name
        assert set(re.findall(r"\bops\.(\w+)", text)) <= runtime().keys(), name


@octave
def test_mat_files_hold_every_class(tmp_path: Path) -> None:
    values = {
        "a": np.arange(6, dtype=np.float32).reshape(1, 2, 3),
        "b": np.array([-(2**63), 2**63 - 1], np.int64),
        "c": [np.array([True, False]), "it's ü", np.array(1 + 2j, np.complex64)],
        "d": {"inner": np.zeros((0, 3), np.uint8), "x" * 60: np.array(2**64 - 1, np.uint64)},
    }
    with (tmp_path / "x.mat").open("wb") as file:
        matfile.write(file, values)
    tests = [
        "isequal(a, reshape(single(0:5), 3, 2)) && isa(a, 'single')",
        "isequal(size(b), [2 1]) && b(1) == intmin('int64') && b(2) == intmax('int64')",
        "islogical(c{1}) && isequal(c{1}, [true; false]) && c{3} == single(1 + 2i)",
        "isequal(double(c{2}), [105 116 39 115 32 195 188])",
        f"isequal(size(d.inner), [3 0]) && d.{'x' * 60} == intmax('uint64')",
    ]
    program = "load('x.mat'); " + " ".join(f"printf('%d', {test});" for test in tests)
    done = subprocess.run(["octave-cli", "--norc", "--eval", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "11111", done.stderr


def test_a_variable_of_more_than_2_gb_is_refused() -> None:
    huge = matfile.Lazy(lambda: pytest.fail("it is not read"), (2**29,), np.dtype(np.float32))
    with pytest.raises(UnsupportedError, match="2 GB"):
        matfile.write(io.BytesIO(), {"params": {"weight": huge}})


HOSTILE = "x');system('touch owned');%\n\x01\"'"


@octave
def test_names_of_a_file_stay_names(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.full((2, 3), 0.5, np.float32), f"{HOSTILE}.weight")
    nodes = [
        helper.make_node("MatMul", [HOSTILE, weight.name], ["end"], name=f"/{HOSTILE}/MatMul"),
        helper.make_node("Add", ["end", "end"], [f"{HOSTILE}2"]),
    ]
    sides = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in ((HOSTILE, ["n", 2]), (f"{HOSTILE}2", [HOSTILE, 3]))
    ]
    graph = helper.make_graph(nodes, HOSTILE, *sides, [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "evil.onnx")
    assert main(["convert", str(tmp_path / "evil.onnx"), "--to", "matlab", "--out", str(tmp_path / "+net")]) == 0
    code = [line for line in (tmp_path / "+net/model.m").read_text().splitlines() if not line.startswith("%")]
    assert not any("system" in line.replace("x_system_touch_owned", "") for line in code)
    assert not list(tmp_path.rglob("owned")) and not Path("owned").exists()


@octave
def test_nothing_beside_a_package_is_executed(tmp_path: Path) -> None:
    """Octave executes PKG_ADD of a folder that it searches, and takes files there for its own functions."""
    out, marker = tmp_path / "+net", tmp_path / "owned"
    assert main(["convert", str(DIGITS), "--to", "matlab", "--out", str(out), "--no-verify"]) == 0
    (tmp_path / "PKG_ADD").write_text(f"fclose(fopen('{marker}', 'w'));\n")
    (tmp_path / "reshape.m").write_text(f"function y = reshape(varargin)\nfclose(fopen('{marker}', 'w'));\nend\n")
    assert main(["verify", str(DIGITS), str(out)]) == 0
    assert not marker.exists()
    main(["verify", "--trust", str(DIGITS), str(out)])
    assert marker.exists()


def test_literals() -> None:
    found = {literal_text(value) for value in (True, 3, -0.0, float("inf"), float("nan"), "it's", 2**63 - 1)}
    assert found == {
        "true",
        "3",
        "-0.0",
        "Inf",
        "NaN",
        "'it''s'",
        "typecast(uint32([4294967295, 2147483647]), 'int64')",
    }
    assert literal_text("a\nü") == "native2unicode(uint8([97, 10, 195, 188]), 'UTF-8')"


def test_long_lines_go_on_after_commas() -> None:
    lines = wrap("y = f(" + ", ".join(["'a, b'"] * 40) + ");")
    assert all(len(line) <= 100 for line in lines) and all(line.endswith(", ...") for line in lines[:-1])


def test_the_folder_is_named_like_a_package() -> None:
    assert package_name(Path("build/+net")) == "net"
    for name in ("net", "+2net", "+my net", "+end", "+image", "+load", "+model"):
        with pytest.raises(OnwardError, match=r"named \+"):
            package_name(Path(name))


def test_an_unknown_rank_is_refused() -> None:
    sides = [[onnx.ValueInfoProto(name=name)] for name in ("x", "y")]
    for (side,) in sides:
        side.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", *sides)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(UnsupportedError, match="the number of dimensions of 'x' is not known"):
        generate(load(model))


@octave
def test_what_octave_says_reaches_the_user() -> None:
    from onward.backends.matlab.octave.process import process
    from onward.errors import RunFailure

    with pytest.raises(RunFailure, match="no_such_function"):
        process().do("no_such_function")
    with pytest.raises(RunFailure, match=r"did not answer within 0\.2 seconds"):
        process().do("pause", 60, seconds=0.2)
    process().do("disp", "it's there again")


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert not backend("matlab").is_installed
    with pytest.raises(OnwardError, match="GNU Octave is not installed: apt-get install octave"):
        from onward.backends.backend import require

        require(backend("matlab"))


def test_a_block_is_not_called_as_the_function_of_the_model(tmp_path: Path) -> None:
    names = [f"/{part}/{layer}/" for part in ("model", "head") for layer in ("first", "second")]
    values = ["x", *(f"{name}MatMul_output_0" for name in names)]
    nodes = [
        helper.make_node(
            "MatMul", [values[i], f"{name.strip('/').replace('/', '.')}.weight"], [values[i + 1]], f"{name}MatMul"
        )
        for i, name in enumerate(names)
    ]
    held = [numpy_helper.from_array(np.eye(3, dtype=np.float32) * i, node.input[1]) for i, node in enumerate(nodes)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in (values[0], values[-1])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    text = generate(load(path)).model
    assert len(re.findall(r"^function .*\bmodel\(", text, re.M)) == 1, text


@octave
def test_octave_ends_with_the_process_that_started_it() -> None:
    """Where that is killed with its group, as jobs that take too long are, nothing goes on computing."""
    program = (
        "import os, time\n"
        "from onward.backends.matlab.octave.process import Process\n"
        "started = Process()\n"
        "print(started._octave.pid, flush=True)\n"
        "started.do('eval', 'while true, end')\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, "Octave still runs"
        time.sleep(0.05)


@octave
def test_numbers_by_which_blocks_differ_count_as_written_numbers() -> None:
    """MATLAB computes a float less an integer in the integer's class."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(np.float32(n), name) for n, name in ((0, "low"), (255, "high"))]
    nodes, x = [], "x"
    for k, zero_point in enumerate((1, 3)):
        name = f"blocks.{k}."
        weights += [
            numpy_helper.from_array(rng.integers(0, 8, (4, 4)).astype(np.uint8), f"{name}weight"),
            numpy_helper.from_array(np.uint8(0), f"{name}x_zero_point"),
            numpy_helper.from_array(np.uint8(zero_point), f"{name}zero_point"),
        ]
        given = [f"{name}bytes", f"{name}weight", f"{name}x_zero_point", f"{name}zero_point"]
        nodes += [
            helper.make_node("Cast", [x], given[:1], f"/blocks.{k}/Cast", to=TensorProto.UINT8),
            helper.make_node("MatMulInteger", given, [f"{name}sums"], f"/blocks.{k}/MatMulInteger"),
            helper.make_node("Cast", [f"{name}sums"], [f"{name}floats"], f"/blocks.{k}/Cast_1", to=TensorProto.FLOAT),
            helper.make_node("Clip", [f"{name}floats", "low", "high"], [f"{name}y"], f"/blocks.{k}/Clip"),
        ]
        x = f"{name}y"
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "two", sides[:1], sides[1:], weights)
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    source = generate(model)
    assert "weight_zero_point" in source.model
    data = {"x": np.array([[0, 1, 2, 3], [9, 0, 2, 4]], np.float32)}
    run = backend("matlab").prepare(model)
    np.testing.assert_allclose(run(data)[x], prepare("onnxruntime", model)(data)[x], rtol=1e-5)
