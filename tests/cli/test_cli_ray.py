"""`onward train run --on ray`: the curve of one process by a real cluster, also if a worker is killed."""

from __future__ import annotations

import csv
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from training_models import model

from onward import cluster
from onward.cli import main
from onward.training.recipe.optimizers import AdamW
from onward.training.trainable import prepare

RNG = np.random.default_rng(4)
RUN = ["train", "run", "trainable.onnx", "--data", "data.npz", "--batch", "8"]
ON_RAY = ["--out", "tuned.onnx", "--workers", "2", "--on", "ray"]


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    pytest.importorskip("ray")
    with cluster.connected("ray://local", 2):
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=RNG.standard_normal((27, 4)).astype(np.float32), labels=RNG.integers(0, 3, 27))
    prepare(model(), optimizer=AdamW(lr=1e-2), clip_norm=1.0).save("trainable.onnx", external_data=True)
    return tmp_path


def curve(path: str) -> list[float]:
    with Path(path).open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def workers_of(process: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            try:
                is_worker = b"RayTrainWorker" in Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            found += [child] if is_worker else workers_of(child)
    return sorted(found)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_worker_is_killed_and_the_run_goes_on_to_the_same_curve(
    ray: None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = ["--epochs", "12", "--quiet"]
    assert main([*RUN, *epochs, "--out", "alone.onnx"]) == 0
    killed = []

    def kill() -> None:
        until = time.monotonic() + 120
        while not list(Path("kept/tuned.ray").glob("checkpoint_*/state")) and time.monotonic() < until:
            time.sleep(0.02)
        killed.extend(workers_of(os.getpid()))
        os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    Path("kept").mkdir()
    Path("kept/mine.txt").write_text("not Ray's")
    assert main([*RUN, *epochs, *ON_RAY, "--storage", "kept", "--save-trainable", "after.onnx"]) == 0
    killer.join()
    said = capsys.readouterr()
    assert len(killed) == 2 and "was killed, or its machine is gone; all workers start anew (1 of at most 3" in said.err
    assert said.err.count("\n") == 1 and "tuned.onnx: 48 batches; mean loss of an epoch" in said.out
    np.testing.assert_allclose(curve("tuned.csv"), curve("alone.csv"), atol=5e-6)
    assert Path("after.onnx").exists() and [path.name for path in Path("kept").iterdir()] == ["mine.txt"]
    assert main([*RUN, "--epochs", "13", "--quiet", "--out", "tuned.onnx", "--resume"]) == 0
    assert len(curve("tuned.csv")) == 52, "the checkpoint came back, and one process goes on from it"


def test_data_that_cannot_be_trained_on_are_not_tried_again(
    ray: None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = dict(np.load("data.npz"))
    data["x"][20] = np.inf
    np.savez("data.npz", **data)
    assert main([*RUN, *ON_RAY, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "the loss is nan at step" in error and "of 'x' in the batch are not finite" in error
    assert error.count("\n") == 1 and not Path("tuned.onnx").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "ray://head"], "'ray://head' says no place of a Ray cluster: give 'ray'"),
        (["--on", "spark://head:1"], "'spark://head:1' says no place of a Ray cluster"),
        (["--storage", "s3://bucket/run"], "--storage is for a Ray cluster: say with --on where it is"),
    ],
)
def test_one_line_says_what_is_wrong(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--out", "tuned.onnx", "--workers", "2", *options]) == 2
    assert message in capsys.readouterr().err


def test_without_ray_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main([*RUN, *ON_RAY]) == 2
    assert "ray: Ray is not installed: pip install 'onward[ray]'" in capsys.readouterr().err
    assert main([*RUN, "--out", "tuned.onnx", "--on", "ray"]) == 2
    assert "--on ray: say with --workers how many workers train" in capsys.readouterr().err
