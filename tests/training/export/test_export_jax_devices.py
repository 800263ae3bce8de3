"""The generated JAX package trains on several devices as on one: batches are divided by rows, results are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from small_networks import NETWORKS, batches, network, onnx_of

from onward.training.export import to_jax_package
from onward.training.recipe.optimizers import SGD
from onward.training.trainable import prepare

TWO = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


SCRIPT = """
import sys, numpy
from {name}.train import main, spread
sys.argv[1:] = ["data.npz", "--batch", "8"]
main()
print(spread(numpy.zeros((8, 3))).addressable_shards[0].data.shape)
"""


def run(folder: Path, **variables: str) -> list[str]:
    """What the package says, and the size of the first device's part of a batch."""
    command = [sys.executable, "-c", SCRIPT.format(name=folder.name)]
    given = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder.parent, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_two_devices_train_as_one(tmp_path: Path) -> None:
    """Batch normalisation too: its statistics are of the whole batch. The last batch, of 3, cannot be divided."""
    made = prepare(onnx_of(network("cnn"), NETWORKS["cnn"].data(4), training=True), optimizer=SGD(lr=0.02))
    x, y = (np.concatenate([array.numpy() for array in part]) for part in zip(*batches("cnn", 3), strict=True))
    np.savez(tmp_path / "data.npz", x=x[:19], labels=y[:19])
    one, two = (to_jax_package(made, tmp_path / name) for name in ("one", "two"))
    alone, together = run(one), run(two, **TWO)
    assert alone[0].startswith("epoch 1: loss ") and (alone[1], together[1]) == ("(8, 3)", "(4, 3)")
    for path in one.glob("*.safetensors"):
        found = load_file(two / path.name)
        for name, array in load_file(path).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
