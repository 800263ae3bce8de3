"""What a command says of its steps: to a terminal, and to a file."""

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx.parser
import pytest
from rich.console import Console

from conftest import Run
from onward.backends.torch.backend import Torch
from onward.cli.steps import Steps
from onward.conversion.convert import converted
from onward.conversion.progress import Progress
from onward.conversion.request import Request
from onward.errors import OnwardError

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
TIME = r"\d+ ms|\d+\.\d s"


def test_a_file_gets_one_plain_line_a_step(tmp_path: Path) -> None:
    command = ["convert", str(DIGITS), "--to", "torch", "--out", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-m", "onward", *command], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stderr and "\r" not in done.stderr
    steps = [line for line in done.stderr.splitlines() if line.startswith("step ")]
    names = ["reading", "generating source", "verifying", "writing"]
    wanted = [rf"step {number} of 4: {name}: ({TIME})" for number, name in enumerate(names, 1)]
    assert len(steps) == 4 and all(map(re.fullmatch, wanted, steps)), steps


class Noting(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.at: list[int] = []
        self.begun: list[int] = []

    @contextmanager
    def step(self, number: int, seconds: float | None = None, what: str = "") -> Iterator[None]:
        self.begun.append(number)
        self.at.append(number)
        yield
        self.at.pop()


def test_the_framework_is_loaded_in_a_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It takes longer than all the rest: a user is told what is waited for."""
    load, noting = Torch.load, Noting()
    during: list[list[int]] = []
    monkeypatch.setattr(Torch, "load", lambda *args: (during.append(list(noting.at)), load(*args))[1])
    converted(Request(source=str(DIGITS), to="torch", out=tmp_path / "out", quick=True), noting)
    assert during == [[3]]


def test_steps_are_told_in_their_order(tmp_path: Path) -> None:
    """Of a format as well whose file is what is run."""
    pytest.importorskip("jax")
    text = '<ir_version: 9, opset_import: ["" : 18]> g (float[3] x) => (float[3] y) { y = Neg(x) }'
    noting = Noting()
    request = Request(source=onnx.parser.parse_model(text), to="stablehlo", out=tmp_path / "net.mlir", quick=True)
    converted(request, noting)
    assert noting.begun == [1, 2, 3, 4] and request.out.exists()


def test_verify_tells_its_steps(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "onward", "verify", str(DIGITS), "--on", "onnxruntime,onnxruntime:unoptimized"]
    first, second = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    assert re.fullmatch(rf"running .*digits\.onnx on onnxruntime: ({TIME})", first)
    assert re.fullmatch(rf"running onnxruntime:unoptimized: ({TIME})", second)


def test_a_file_gets_whole_lines(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that `grep` finds what belongs together; `COLUMNS` asks for others."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    for op in ("Neg", "Abs"):
        text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[3,2] x) => (float[3,2] y) {{ y = {op}(x) }}'
        onnx.save(onnx.parser.parse_model(text), f"{op}.onnx")
    words = ["verify", "Neg.onnx", "Abs.onnx"]
    rows = [line for line in run(*words)[1].splitlines() if "instead of" in line]
    assert rows and all(re.search(r"\S+ instead of \S+ at \[\d+, \d+\]", row) for row in rows)
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run(*words)[1].splitlines()[1:])) <= 60


def shown(is_terminal: bool) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=is_terminal, width=60), file


LEFT = "\x1b[2m"
"""How a line begins that stays on a terminal: it is dim."""


def test_a_terminal_shows_the_step_that_runs() -> None:
    console, file = shown(is_terminal=True)
    with Steps(console) as begin:
        begin("looking for \x1b[31mred")
        begin("going on")
    running, *lines = file.getvalue().split(LEFT)
    assert re.search(rf"⠋\S* looking for �\[31mred: ({TIME})", running)
    assert lines[0].startswith("looking for �[31mred: ") and re.match(rf"going on: ({TIME})", lines[1])


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_step_that_fails_leaves_no_line(is_terminal: bool) -> None:
    console, file = shown(is_terminal)
    with pytest.raises(OnwardError), Steps(console) as begin:
        begin("first")
        begin("second")
        raise OnwardError("no")
    text = file.getvalue()
    assert f"{LEFT if is_terminal else ''}first: " in text
    assert f"{LEFT}second" not in text and ("second" in text) == is_terminal
