"""A runtime that crashes, hangs or eats memory in a process of its own is a clear failure, and the next run works."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from onward import runners
from onward.errors import RunFailure, UnsupportedError
from onward.model import Model, load
from onward.runners import Runner, isolated
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.isolate import Isolated

TEXT = "<ir_version: 9, opset_import: ['': 18]> agraph (float[N, 2] x) => (float[N, 2] y) { y = Add(x, x) }"


def misbehave(model: Model, mode: str) -> Run:
    """Does what the mode says when it is prepared; without one, what the input says when it is run."""
    if mode:
        act(mode)

    def run(inputs: Inputs) -> Outputs:
        number = int(inputs["x"][0, 0])
        if number:
            act(list(ACTS)[number - 1])
        return {"y": inputs["x"] + os.getpid()}

    return run


ACTS = {
    "crash": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "hang": lambda: time.sleep(600),
    "hold": lambda: ctypes.PyDLL(None).sleep(600),
    "allocate": lambda: [np.ones(2**24) for _ in range(100)],
    "leave": lambda: os._exit(3),
    "raise": lambda: [][1],
}
"""`hold` keeps the interpreter's lock."""


def act(name: str) -> None:
    ACTS[name]()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    runner = Runner("misbehaving", "for tests", "onward", misbehave, dict.fromkeys(ACTS, ""))
    runners.load_all()
    monkeypatch.setitem(runners.RUNNERS._user, runner.name, runner)
    return load(onnx.parser.parse_model(TEXT.replace("'", '"')))


def feed(name: str = "") -> Inputs:
    return {"x": np.full((1, 2), list(ACTS).index(name) + 1 if name else 0, np.float32)}


FAILURES = [
    ("crash", {}, r"^crashed with signal SIGSEGV"),
    ("abort", {}, r"^crashed with signal SIGABRT"),
    ("hang", {"seconds": 8}, r"^took longer than 8 s$"),
    ("allocate", {"memory": 4 * 10**8}, r"^needs more than 0.4 GB$"),
    ("leave", {}, r"^ended with exit code 3$"),
    ("raise", {}, r"^misbehaving(:raise)?: IndexError: list index out of range$"),
]


@pytest.mark.parametrize(
    ("name", "limits", "message"), [*FAILURES, ("hold", {"seconds": 1.5}, r"^took longer than 1.5 s$")]
)
def test_failure_while_preparing(model: Model, name: str, limits: dict[str, int], message: str) -> None:
    with pytest.raises(RunFailure, match=message):
        isolated(f"misbehaving:{name}", model, **limits)


@pytest.mark.parametrize(("name", "limits", "message"), FAILURES)
def test_failure_while_running(model: Model, name: str, limits: dict[str, int], message: str) -> None:
    run = isolated("misbehaving", model, **limits)
    before = run(feed())["y"]
    assert before[0, 0] != os.getpid()
    with pytest.raises(RunFailure, match=message):
        run(feed(name))
    same_process = np.array_equal(run(feed())["y"], before)
    assert same_process == (name == "raise")
    run.close()


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime:unoptimized", "reference", "torch", "openvino"])
def test_each_runner(model: Model, name: str) -> None:
    run = isolated(name, model, seconds=120, memory=4 * 10**9)
    for rows in (1, 3):
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        np.testing.assert_array_equal(run({"x": x})["y"], 2 * x)
    with pytest.raises(RunFailure, match="the input 'x' is float, but got float64"):
        run({"x": np.zeros((1, 2))})
    run.close()
    np.testing.assert_array_equal(run({"x": x})["y"], 2 * x)
    run.close()


def test_a_file_that_is_as_it_was_loaded_is_read_again(model: Model, tmp_path: Path) -> None:
    model.save(path := tmp_path / "model.onnx")
    run = isolated("onnxruntime", load(path))
    run.close()
    path.unlink()
    with pytest.raises(Exception, match="does not exist"):
        run(feed())


def test_a_changed_model_is_run_as_it_is_in_memory(model: Model, tmp_path: Path) -> None:
    model.save(path := tmp_path / "model.onnx")
    changed = load(path)
    next(iter(changed.ir.graph)).op_type = "Sub"
    with_ones = {"x": np.ones((1, 2), np.float32)}
    for run in (runners.prepare("onnxruntime", changed), isolated("onnxruntime", changed)):
        assert not run(with_ones)["y"].any()


def test_what_is_wrong_with_a_name_is_said_before_a_process_starts(model: Model) -> None:
    with pytest.raises(UnsupportedError, match="there is no runner 'nothing'"):
        isolated("nothing", model)


def alive(process: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def gone(process: int) -> bool:
    end = time.monotonic() + 10
    while alive(process) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(process)


def own_process() -> tuple[Run, str]:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return lambda inputs: {"me": os.getpid(), "children": children.read_text()}, "facts"


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux")
def test_nothing_is_left_behind() -> None:
    run = Isolated(own_process)
    assert run.facts == "facts"
    found = run({})
    processes = [found["me"], *map(int, found["children"].split())]
    assert len(processes) == 2 and all(map(alive, processes))
    del run
    assert all(map(gone, processes))


SCRIPT = """
import numpy as np, onward
from onward.runners import isolated
run = isolated("onnxruntime", onward.load("model.onnx"))
print(run({"x": np.ones((1, 2), np.float32)})["y"].tolist())
"""


def test_a_script_needs_no_main_guard(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.onnx")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[[2.0, 2.0]]\n", "")
