"""What TensorFlow and Keras write themselves takes its place as a whole, too."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from onward.cli import main

pytest.importorskip("tensorflow")
DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"


@pytest.mark.parametrize("to", ["savedmodel", "keras", "tflite"])
def test_a_full_disk_leaves_what_was_there(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / ("net" if to == "savedmodel" else f"net.{to}")
    command = ["convert", str(DIGITS), "--to", to, "--out", str(out), "--no-verify"]
    assert main(command) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        code = main(command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert code == 2 and f"{out}: cannot be written: File too large" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
