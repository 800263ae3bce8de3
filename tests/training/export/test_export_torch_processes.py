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
from onnx import parser
from safetensors.torch import load_file
from training_models import model

import onward
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


FROM_THE_MEAN = parser.parse_model(
    """<ir_version: 10, opset_import: ["" : 21]> agraph (float[N, 3] prediction, int64[N] labels) => (float[N, 3] l) {
    rows = Constant <value_ints = [0]> () mean = ReduceMean (prediction, rows) far = Sub (prediction, mean)
    last = Constant <value_ints = [1]> () column = Unsqueeze (labels, last) wanted = Cast <to = 1> (column)
    d = Sub (far, wanted) l = Mul (d, d) }"""
)
"""A loss that no mean over processes gives: each row is compared with the mean of all."""
CASES: dict[str, dict[str, Any]] = {
    "a graph": {"optimizer": AdamW(lr=1e-2), "loss": FROM_THE_MEAN, "penalties": [Penalty(1e-2)], "accumulate": 2},
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


SAME_ROWS = """
import torch
from torch.nn.parallel import DistributedDataParallel
from PACKAGE import train

rank, count = train.start_processes("cpu")
net = train.load()
draw = torch.Generator().manual_seed(0)
batches = [{"x": torch.randn(4, 4, generator=draw), "labels": torch.arange(4) % 3} for _ in range(3)]
batches = [{name: torch.cat([tensor] * (2 // count)) for name, tensor in batch.items()} for batch in batches]
optimizer = train.load_optimizer(net)
losses = train.train(DistributedDataParallel(net) if count > 1 else net, optimizer, batches)
if rank == 0:
    train.save(net, step=3, epoch=1)
    print(*losses)
"""
"""Two processes have the same four rows, one process has them twice: the biased variance is the same, and only that."""


def test_biased_variances_in_two_processes(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    layers = [keras.layers.Dense(5, use_bias=False), keras.layers.BatchNormalization(), keras.layers.Dense(3)]
    net = keras.Sequential([keras.Input((4,), name="x"), *layers])
    net.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    found = []
    for name, launcher in (("one", []), ("two", TORCHRUN)):
        folder = to_torch_package(onward.from_keras(net, training=True), tmp_path / name)
        (tmp_path / f"of_{name}.py").write_text(SAME_ROWS.replace("PACKAGE", name))
        command = [sys.executable, *launcher, f"of_{name}.py"]
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True, timeout=240)
        found.append((np.array(done.stdout.split(), float), load_file(folder / "weights.safetensors")))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-5, atol=1e-6)
    assert len(set(found[0][0])) == 3 and any("running_var" in name for name in found[0][1])


def test_what_cannot_be_trained_together_is_not_trained_apart(tmp_path: Path) -> None:
    """A sum over samples, and processes of mpirun, which do not find each other."""
    folder = exported(tmp_path / "net", loss=CrossEntropy(reduction="sum"))
    done = run(folder, WORLD_SIZE="2", RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == "WORLD_SIZE=2: each process would train its own copy: start one, by python\n"
    folder = exported(tmp_path / "other")
    done = run(folder, OMPI_COMM_WORLD_SIZE="2")
    assert done.stderr == "mpirun would train a copy in each process: start several by torchrun\n"
