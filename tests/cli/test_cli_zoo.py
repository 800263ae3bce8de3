"""`onward zoo`: a table of verdicts, results in a folder, and an exit code."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onward.cli import main


def net(path: Path, op: str) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def endless(path: Path) -> None:
    """A loop of a billion rounds."""
    text = """g (float[2] x) => (float[2] y) {
        rounds = Constant <value_int: int = 1000000000> ()
        y = Loop (rounds, , x) <body = b (int64 i, bool go, float[2] v) => (bool on, float[2] w) {
            on = Identity(go) w = Sin(v) }>
    }"""
    proto = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)])
    proto.graph.CopyFrom(onnx.parser.parse_graph(text))
    onnx.save(proto, path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    net(tmp_path / "models/a.onnx", "Relu")
    net(tmp_path / "models/b.onnx", "Tanh")
    return tmp_path


RUN = ["zoo", "run", "models", "--to", "onnx", "--jobs", "1", "--out", "zoo"]


def test_a_table_and_results(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    said = capsys.readouterr()
    assert "2 models" in said.out and "same" in said.out and "zoo/results.jsonl (2 new)" in said.err
    assert main(RUN) == 0
    assert "(0 new, 2 from before)" in capsys.readouterr().err


def test_what_is_wrong_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models/bad.onnx").write_bytes(b"\x08\x08" * 40)
    assert main(RUN) == 0  # it is refused in words
    endless(folder / "models/endless.onnx")
    assert main([*RUN, "--timeout", "1"]) == 1
    said = capsys.readouterr().out
    assert "endless.onnx to onnx: timeout: timed out after 1 s" in said and "bad.onnx" not in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--to", "tortch"], "there is no target 'tortch'"),
        (["--on", "moon"], "'moon' says no place"),
        (["--memory", "much"], "--memory much: write it as a number and a unit"),
        (["nowhere"], "nowhere: there is no such file or folder"),
    ],
)
def test_bad_input(folder: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str) -> None:
    assert main([*RUN, *more]) == 2
    assert said in capsys.readouterr().err


def cells(out: Path) -> list[str]:
    lines = (out / "results.jsonl").read_text().splitlines() if (out / "results.jsonl").exists() else []
    return [record["model"] for line in lines if (record := json.loads(line))["kind"] == "cell"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on(folder: Path, number: int) -> None:
    for i in range(12):
        net(folder / f"models/more{i}.onnx", "Neg")
    command = [sys.executable, "-m", "onward", *RUN, "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until = time.monotonic() + 60
    while not cells(folder / "zoo") and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(process.pid, number)
    said = process.communicate(timeout=30)[1]
    done = cells(folder / "zoo")
    assert 0 < len(done) < 14 and process.returncode in (130, -signal.SIGKILL)
    assert ("interrupted" in said) == (number == signal.SIGINT)
    time.sleep(1.5)  # what was killed from outside notices that, and lets the results go
    assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    assert sorted(cells(folder / "zoo")) == sorted(
        {*done} | {"a.onnx", "b.onnx", *(f"more{i}.onnx" for i in range(12))}
    )
