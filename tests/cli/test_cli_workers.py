"""`onward train run` in several processes: the same curve, also if one is killed, and under torchrun and mpirun."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from training_models import model

from onward.advice.extras import is_installed
from onward.cli import main
from onward.training.recipe.optimizers import AdamW
from onward.training.trainable import prepare

RNG = np.random.default_rng(4)
RUN = ["train", "run", "trainable.onnx", "--data", "data.npz", "--batch", "8"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=RNG.standard_normal((27, 4)).astype(np.float32), labels=RNG.integers(0, 3, 27))
    prepare(model(), optimizer=AdamW(lr=1e-2), clip_norm=1.0).save("trainable.onnx")
    return tmp_path


def curve(path: str) -> list[float]:
    with Path(path).open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def weights(path: str) -> dict[str, np.ndarray]:
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def descendants(process: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in path.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def workers_of(process: int) -> list[int]:
    def words(pid: int) -> bytes:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""

    return sorted(pid for pid in descendants(process) if b"spawn_main" in words(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_worker_is_killed_and_the_run_goes_on_to_the_same_curve(folder: Path) -> None:
    epochs = ["--epochs", "150", "--quiet"]
    assert main([*RUN, *epochs, "--out", "alone.onnx"]) == 0
    command = [sys.executable, "-m", "onward", *RUN, *epochs, "--workers", "2", "--every", "7", "--out", "tuned.onnx"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        try:
            until = time.monotonic() + 120
            while not Path("tuned.checkpoint").exists() and run.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            os.kill(workers_of(run.pid)[-1], signal.SIGKILL)
            out, errors = run.communicate(timeout=120)
        finally:
            run.kill()
    assert run.returncode == 0 and out.startswith("tuned.onnx: 600 batches; "), errors
    assert errors == "onward: worker 1 was killed by SIGKILL; all workers start anew (1 of at most 3 times)\n"
    np.testing.assert_allclose(curve("tuned.csv"), curve("alone.csv"), atol=2e-5)
    for name, array in weights("alone.onnx").items():
        np.testing.assert_allclose(weights("tuned.onnx")[name], array, atol=1e-4)


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
LAUNCHERS = {
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    "mpirun": [MPIRUN or "mpirun", "-n", "2", sys.executable],
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_processes_of_others_train_together(folder: Path, launcher: str) -> None:
    """By the real torchrun and mpirun; both processes run the same command, and worker 0 alone writes and says."""
    if launcher == "mpirun" and (MPIRUN is None or not is_installed("mpi4py")):
        pytest.skip("no MPI: pip install 'onward[mpi]'")
    options = [*RUN, "--val", "data.npz", "--epochs", "3"]
    assert main([*options, "--out", "alone.onnx"]) == 0
    command = [*LAUNCHERS[launcher], "-m", "onward", *options, "--out", "tuned.onnx"]
    run = subprocess.run(command, env={**os.environ, **AS_ROOT}, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("\n") == 1 and run.stdout.startswith("tuned.onnx: 12 batches; ")
    np.testing.assert_allclose(curve("tuned.csv"), curve("alone.csv"), atol=5e-6)
    for name, array in weights("alone.onnx").items():
        np.testing.assert_allclose(weights("tuned.onnx")[name], array, atol=1e-5)


def test_one_line_says_what_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = dict(np.load("data.npz"))
    data["x"][20] = np.inf
    np.savez("data.npz", **data)
    assert main([*RUN, "--out", "tuned.onnx", "--workers", "2", "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "the loss is nan at step" in error and "of 'x' in the batch are not finite" in error
    assert error.count("\n") == 1
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert main([*RUN, "--out", "tuned.onnx"]) == 2
    assert "mpi4py is not installed: pip install 'onward[mpi]'" in capsys.readouterr().err
