"""Commands are watched: whatever ends the process that works ends in one line and an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.cli import main
from onward.errors import RunFailure
from onward.gate.budget import OutOfTime, within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are watched on Linux")

START = """
import ctypes, os, sys, time
from onward.cli.supervise import supervised
from onward.gate import budget
def work():
    {}
    return 0
sys.exit(supervised(work))
"""
SMALL = '<ir_version: 9, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
BUSY = "ctypes.CDLL(None).sleep(60)"
"""What leaves Python, and cannot be interrupted."""


def run(work: str, **environment: str) -> tuple[int, str]:
    """The exit code and the last line of what was said."""
    done = subprocess.run(
        [sys.executable, "-c", START.format(work)],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, **environment},
    )
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


@pytest.mark.parametrize(
    ("work", "code", "said"),
    [
        ("return 1", 1, ""),
        ("sys.exit(3)", 3, ""),
        (
            "os.abort()",
            2,
            "onward: a framework crashed with SIGABRT: the file is damaged, or",
        ),
        (
            "budget.announce(doing='reading'); ctypes.string_at(0)",
            2,
            "onward: reading: a framework crashed with",
        ),
        ("budget.announce(doing='reading'); os.kill(os.getpid(), 9)", 2, "onward: reading: was killed, most likely"),
        ("import atexit; atexit.register(os.abort)", 0, ""),
        ("sys.modules['unloaded slowly'] = type('', (), {'__del__': lambda self: time.sleep(60)})()", 0, ""),
        ("import atexit; atexit.register(print, 'tidied', file=sys.stderr)", 0, "tidied"),
        ("sys.stdout.close()", 0, ""),
    ],
)
def test_how_it_ends(work: str, code: int, said: str) -> None:
    found, line = run(work)
    assert (found, line[: len(said)]) == (code, said)


def test_what_cannot_be_interrupted_is_stopped_from_outside() -> None:
    code, line = run(f"budget.GRACE = 0.1\n    with budget.within(0.2, 'it', 'reading'): {BUSY}")
    assert code == 2
    assert line.startswith("onward: reading: took longer than 0.2 s and could not be interrupted; --timeout SECONDS")


def test_memory_is_bounded() -> None:
    work = "budget.announce(doing='reading', until=None); kept = b'x' * 300_000_000; time.sleep(20)"
    code, line = run(work, ONWARD_MAX_MEMORY="200000000")
    assert code == 2
    assert line.startswith("onward: reading: needs more than the 0.2 GB of memory that are free; ONWARD_MAX_MEMORY=")


def test_a_bound_that_is_no_number() -> None:
    code, line = run("return 0", ONWARD_MAX_MEMORY="much")
    assert (code, line) == (2, "onward: ONWARD_MAX_MEMORY has to be a whole number, not 'much'")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_watcher(number: signal.Signals) -> None:
    watcher = subprocess.Popen(
        [sys.executable, "-c", START.format(f"print(os.getpid(), flush=True); {BUSY}")], stdout=subprocess.PIPE
    )
    assert watcher.stdout is not None
    process = int(watcher.stdout.readline())
    watcher.send_signal(number)
    assert watcher.wait(20) == -number
    end = time.monotonic() + 20
    while _lives(process) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _lives(process)
    watcher.stdout.close()


def _lives(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_an_interrupt_while_a_command_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is most of the time of a short one."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("onward.cli.parser", interrupted)
    assert main(["inspect", "model.onnx"]) == 130
    assert capsys.readouterr().err == "onward: interrupted\n"


def test_time_is_limited_inside() -> None:
    with pytest.raises(RunFailure, match=r"it took longer than 0\.1 s"), within(0.1, "it"):
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # no one takes it for a failure of something else
                pytest.fail("caught")
    with within(30, "it"):
        pass
    assert issubclass(OutOfTime, BaseException) and not issubclass(OutOfTime, Exception)


def test_a_limit_that_was_kept_leaves_python_as_fast_as_it_was() -> None:
    """To take back an exception that was never raised keeps Python looking for it, and hangs a profiler."""
    work = "import cProfile; profile = cProfile.Profile(); profile.enable()\n    with budget.within(30, 'it'): pass"
    assert run(f"{work}\n    profile.disable(); [abs(i) for i in range(1000)]") == (0, "")


def endless(path: Path) -> Path:
    """A loop of 2^63 - 1 trips."""
    scalar, one = (helper.make_tensor_value_info, [1])
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Neg", ["v"], ["w"])],
        "body",
        [scalar("i", TensorProto.INT64, []), scalar("go", TensorProto.BOOL, []), scalar("v", TensorProto.FLOAT, one)],
        [scalar("on", TensorProto.BOOL, []), scalar("w", TensorProto.FLOAT, one)],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
        "graph",
        [scalar("x", TensorProto.FLOAT, one)],
        [scalar("y", TensorProto.FLOAT, one)],
        [numpy_helper.from_array(np.array(2**63 - 1), "trips")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_a_check_that_takes_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is stopped in the runtime, and said; the result is there, as that of any check that cannot be made."""
    model = endless(tmp_path / "endless.onnx")
    onward.to_torch(onnx.parser.parse_model(SMALL))  # what takes time once is done before
    assert main(["convert", str(model), "--to", "torch", "--out", str(tmp_path / "out"), "--timeout", "4"]) == 3
    assert "not verified: the check took longer than 4 s; --timeout 8 gives it more time" in _line(capsys)
    assert (tmp_path / "out/model.py").is_file()


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "soon"])
def test_times_that_are_none(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["convert", "x.onnx", "--to", "torch", "--timeout", given])
    assert "--timeout" in _line(capsys)


def _line(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_a_runtime_that_aborts_is_one_line(tmp_path: Path) -> None:
    """ONNX Runtime ends the process where an LSTM gets a batch of nothing."""
    weights = {"x": np.ones((2, 0, 3)), "w": np.ones((1, 16, 3)), "r": np.ones((1, 16, 4))}
    graph = helper.make_graph(
        [
            helper.make_node("LSTM", ["x", "w", "r"], ["l"], hidden_size=4),
            helper.make_node("ReduceSum", ["l"], ["s"], keepdims=0),
            helper.make_node("Add", ["s", "given"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("given", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    command = [sys.executable, "-m", "onward", "convert", str(path), "--to", "torch", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "onward: step 3 of 4: verifying: a framework crashed with SIGABRT: the file is damaged, or the framework has a"
        " defect; nothing was written"
    )
    assert not (tmp_path / "out").exists()
