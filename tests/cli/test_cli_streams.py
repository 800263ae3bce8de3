"""The streams of a command may be full, closed, or no longer read: one line at most, and an exit code that is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
ONWARD = f"{sys.executable} -m onward"
FULL = "onward: what is printed cannot be written: No space left on device\n"
CLOSED = "onward: what is printed cannot be written: Bad file descriptor\n"


def run(command: str) -> tuple[int, str, str]:
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("options", ["", "--json"])
@pytest.mark.parametrize("stream, problem", [("> /dev/full", FULL), (">&-", CLOSED)])
def test_output_that_cannot_be_written(options: str, stream: str, problem: str) -> None:
    assert run(f"{ONWARD} inspect {DIGITS} {options} {stream}") == (2, "", problem)


def test_messages_that_cannot_be_written_are_dropped(tmp_path: Path) -> None:
    code, printed, _ = run(f"{ONWARD} inspect {DIGITS} --json 2>&-")
    assert code == 0 and printed.startswith("{")
    for stream in ("2>&-", "2> /dev/full", "2>&1 | true"):
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        assert run(f"{ONWARD} layout {DIGITS} --to nhwc --no-verify --out {out}.onnx {stream}") == (0, "", "")
        onnx.checker.check_model(onnx.load(f"{out}.onnx"))
    assert run(f"{ONWARD} inspect {tmp_path}/none.onnx 2> /dev/full")[0] == 2


def test_a_verdict_that_is_not_read_to_its_end_stays_the_verdict(tmp_path: Path) -> None:
    model = onnx.load(DIGITS)
    for tensor in model.graph.initializer:
        if tensor.name.endswith("bias"):
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) + 1, tensor.name))
    onnx.save(model, tmp_path / "other.onnx")
    for options in ("--json", "--verbose"):
        code, _, problem = run(f"{ONWARD} verify {DIGITS} {tmp_path}/other.onnx {options} | true")
        assert code == 1 and "Traceback" not in problem
    code, _, problem = run(f"{ONWARD} verify {DIGITS} {tmp_path}/other.onnx --json > /dev/full")
    assert code == 2 and problem.endswith(FULL)


def test_what_libraries_print_past_python_is_dropped() -> None:
    code = (
        "import os, sys; from onward.cli.streams import unheard\n"
        "with unheard(): os.write(2, b'a remark in C++'); print('a message', file=sys.stderr)\n"
        "os.write(2, b'the end')"
    )
    assert run(f'{sys.executable} -c "{code}"') == (0, "", "a message\nthe end")


def test_tensorflow_is_not_heard_and_loads_nothing_that_is_not_used(tmp_path: Path) -> None:
    """Neither its remarks, nor Keras beside it."""
    pytest.importorskip("tensorflow")
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\n"
        "atexit.register(lambda: print([name for name in ('tensorflow', 'keras', 'pandas') if name in sys.modules]))"
    )
    out = tmp_path / "digits.tflite"
    code, printed, said = run(f"PYTHONPATH={tmp_path} {ONWARD} convert {DIGITS} --to tflite --quick --out {out}")
    assert code == 0
    assert printed.splitlines()[0] == "['tensorflow']"
    lines = [line.partition(":")[0] for line in said.splitlines()]
    assert [line for line in lines if not line.startswith("step ")] == ["verified", "done"]
