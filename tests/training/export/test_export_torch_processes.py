"""The training loop of a PyTorch package in several processes, as torchrun starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from training_models import model

from onward.training.export import to_torch_package
from onward.training.recipe.losses import CrossEntropy, Penalty
from onward.training.recipe.optimizers import SGD, AdamW
from onward.training.recipe.schedules import Cosine, Warmup
from onward.training.trainable import prepare

TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29533"]


def exported(folder: Path, **options: Any) -> Path:
    """33 rows: in batches of 8, the last one has a row for one of two processes only."""
    to_torch_package(prepare(model(), **options), folder)
    rng = np.random.default_rng(6)
    x, labels = rng.standard_normal((33, 4), np.float32), rng.integers(0, 2, 33) * 2
    labels[:5] = 1
    np.savez(folder.parent / "data.npz", x=x, labels=labels)
    return folder


def run(folder: Path, *launcher: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *launcher, "-m", f"{folder.name}.train", "data.npz", "--batch", "8", "--epochs", "3"]
    env = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run(command, cwd=folder.parent, env=env, check=False, capture_output=True, text=True, timeout=240)


CASES: dict[str, dict[str, Any]] = {
    "accumulated": {
        "optimizer": AdamW(lr=1e-2),
        "accumulate": 2,
        "clip_norm": 0.5,
        "average": 0.9,
        "schedule": Warmup(3, Cosine(20)),
    },
    "class weights": {
        "optimizer": SGD(lr=0.1, momentum=0.9),
        "loss": CrossEntropy(weight=[1.0, 0.2, 3.0], ignore_index=1),
        "penalties": [Penalty(1e-3, patterns="*.weight")],
    },
}


@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one(case: str, tmp_path: Path) -> None:
    one, two = (exported(tmp_path / name, **CASES[case]) for name in ("one", "two"))
    alone, together = run(one), run(two, *TORCHRUN)
    assert alone.returncode == 0 and together.returncode == 0, alone.stderr + together.stderr
    losses = [[float(line.split()[-1]) for line in done.stdout.splitlines()] for done in (alone, together)]
    np.testing.assert_allclose(*losses, atol=1.5e-4)  # four digits are printed
    assert len(losses[0]) == 3 and 0 < losses[0][-1] < losses[0][0]
    assert {path.name for path in two.glob("*.*")} == {path.name for path in one.glob("*.*")}
    for path in one.glob("*.safetensors"):
        torch.testing.assert_close(load_file(two / path.name), load_file(path), rtol=0, atol=2e-6)


def test_what_cannot_be_trained_together_is_not_trained_apart(tmp_path: Path) -> None:
    """A sum over samples, and processes of mpirun, which do not find each other."""
    folder = exported(tmp_path / "net", loss=CrossEntropy(reduction="sum"))
    done = run(folder, WORLD_SIZE="2", RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == "WORLD_SIZE=2: each process would train its own copy: start one, by python\n"
    folder = exported(tmp_path / "other")
    done = run(folder, OMPI_COMM_WORLD_SIZE="2")
    assert done.stderr == "mpirun would train a copy in each process: start several by torchrun\n"
