"""Checkpoints: the same curve after a resumption, whatever happened to the process or the disk before."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from small_networks import batches, network, onnx_of

from onward.training.recipe.optimizers import SGD, AdamW
from onward.training.runtime import checkpoint
from onward.training.runtime.checkpoint import CheckpointError
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare
from onward.writing import clear_leftovers

PARTS = {name: batches(name, 6, size=16) for name in ("mlp", "cnn", "dropout")}
DATA = {
    name: dict(zip(("x", "labels"), (torch.cat(p).numpy() for p in zip(*parts, strict=True)), strict=True))
    for name, parts in PARTS.items()
}


def trainer(name: str, accumulate: int = 1) -> Trainer:
    source = onnx_of(network(name), PARTS[name][0][0], training=name == "dropout")
    return Trainer(prepare(source, optimizer=AdamW(lr=1e-2), accumulate=accumulate), threads=1)


@pytest.mark.parametrize(("name", "accumulate"), [("mlp", 1), ("cnn", 1), ("dropout", 1), ("mlp", 4)])
def test_a_resumed_curve_is_the_same_bit_for_bit(name: str, accumulate: int, tmp_path: Path) -> None:
    """From the middle of an epoch, and of an accumulation; with running statistics, dropout, and early stopping."""
    options = {"epochs": 4, "batch": 16, "seed": 5, "val": DATA[name], "patience": 9}
    whole = trainer(name, accumulate)
    expected = whole.fit(DATA[name], **options)

    class Enough(Exception):
        pass

    first = trainer(name, accumulate)
    calls = 0

    def step(batch: object, real: object = first.step) -> float:
        nonlocal calls
        calls += 1
        if calls > 10:
            raise Enough
        return real(batch)  # type: ignore[operator, no-any-return]

    first.step = step  # type: ignore[method-assign, assignment]
    with pytest.raises(Enough):
        first.fit(DATA[name], checkpoint=tmp_path / "c", every=3, **options)
    second = trainer(name, accumulate)
    assert second.fit(DATA[name], checkpoint=tmp_path / "c", resume=True, **options) == expected
    for part in ("parameters", "state", "buffers"):
        for key, array in getattr(whole, part).items():
            assert np.array_equal(array, getattr(second, part)[key]), (part, key)


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    made = trainer("cnn")
    made.fit(PARTS["cnn"])
    checkpoint.save(tmp_path / "c", made, {"note": "é"}, {"order": np.arange(3)})
    tensors = safetensors.numpy.load_file(tmp_path / "c")
    assert np.array_equal(tensors["parameters/0.weight"], made.parameters["0.weight"])
    assert np.array_equal(tensors["buffers/1.running_mean"], made.buffers["1.running_mean"])
    again = trainer("cnn")
    progress, more = checkpoint.load(tmp_path / "c", again)
    assert progress == {"note": "é"} and more["order"].tolist() == [0, 1, 2] and again.steps == 6


WRITER = """
    import sys
    import numpy as np
    from small_networks import batches, network, onnx_of
    from onward.training.runtime import checkpoint
    from onward.training.recipe.optimizers import AdamW
    from onward.training.trainable import prepare
    from onward.training.runtime.trainer import Trainer
    parts = batches("mlp", 6, size=16)
    trainer = Trainer(prepare(onnx_of(network("mlp"), parts[0][0]), optimizer=AdamW(lr=1e-2)), threads=1)
    ballast = np.zeros(4_000_000)
    print("ready", flush=True)
    for x, y in parts * 10_000:
        trainer.step({"x": x, "labels": y})
        checkpoint.save(sys.argv[1], trainer, more={"ballast": ballast + trainer.steps})
        print(trainer.steps, flush=True)
"""


def test_a_kill_in_the_middle_of_writing_leaves_the_last_whole_one(tmp_path: Path) -> None:
    path, script = tmp_path / "c", tmp_path / "writer.py"
    script.write_text(textwrap.dedent(WRITER))
    halves = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-W", "ignore", script, path],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert writer.stdout is not None
        for line in writer.stdout:
            if line.strip() == "2":
                break
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:  # until a file is partly written
            if any(0 < part.stat().st_size < 32_000_000 for part in tmp_path.glob(".c.*.part") if part.exists()):
                break
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        halves += any(tmp_path.glob(".c.*.part"))
        again = trainer("mlp")
        _, more = checkpoint.load(path, again)
        assert again.steps >= 2 and (more["ballast"] == again.steps).all()
        clear_leftovers(path)
        assert [p.name for p in tmp_path.iterdir() if "writer" not in p.name] == ["c"]
        if halves:
            break
    assert halves, "no process was killed while it wrote"


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    made, path = trainer("mlp"), tmp_path / "c"
    made.fit(PARTS["mlp"], checkpoint=path)
    before = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
        with pytest.raises(
            CheckpointError, match="step 7 cannot be written: File too large; the one written before is"
        ):
            made.fit(PARTS["mlp"], 2, checkpoint=path, every=1, resume=True)
        with pytest.raises(CheckpointError, match="make room"):
            checkpoint.save(tmp_path / "d", made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["c"]
    assert made.fit(PARTS["mlp"], 2, checkpoint=path, resume=True) == trainer("mlp").fit(PARTS["mlp"], 2)


def test_checkpoints_and_trained_models_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("mlp")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    for path, write in ((tmp_path / "c", partial(checkpoint.save, trainer=made)), (tmp_path / "net.onnx", made.save)):
        write(path)
        assert {path.stat().st_ino, tmp_path.stat().st_ino} <= set(synced)


def test_what_is_no_checkpoint_of_this_training_changes_nothing(tmp_path: Path) -> None:
    path, made = tmp_path / "c", trainer("mlp")
    checkpoint.save(path, made)
    whole = path.read_bytes()
    other = Trainer(prepare(onnx_of(network("mlp"), PARTS["mlp"][0][0]), optimizer=SGD()), threads=1)
    with pytest.raises(CheckpointError, match=r"another training: state '0\.bias\.exp_avg': the training lacks it"):
        checkpoint.load(path, other)
    with pytest.raises(CheckpointError, match="another training: parameters"):
        checkpoint.load(path, trainer("cnn"))
    with pytest.raises(CheckpointError, match="was not written by fit"):
        made.fit(PARTS["mlp"], checkpoint=path, resume=True)
    for content in (whole[:-5], whole[:5], b"", b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="this checkpoint cannot be read"):
            checkpoint.load(path, made)
    safetensors.numpy.save_file({"a": np.zeros(3)}, path)
    with pytest.raises(CheckpointError, match="this safetensors file is not a checkpoint"):
        checkpoint.load(path, made)
    with pytest.raises(CheckpointError, match="cannot be written"):
        checkpoint.save(tmp_path / "nowhere" / "c", made)


DAMAGED: dict[str, Any] = {
    "step": [-1, "1", None, 1.5, True, 1 << 70],
    "accumulated": [-1, [], "x"],
    "lr": ["fast", None, {}],
    "seed": [None, "x"],
    "progress": [
        3,
        {"epoch": 1},
        {"epoch": "1", "batch": 0, "best": None, "waited": 0, "evaluations": []},
        {"epoch": -1, "batch": 0, "best": None, "waited": 0, "evaluations": []},
        {"epoch": 1, "batch": 0, "best": None, "waited": 0, "evaluations": [{"loss": "low"}]},
    ],
}


@pytest.mark.parametrize("part", DAMAGED)
def test_what_a_checkpoint_says_is_looked_at(part: str, tmp_path: Path) -> None:
    path, made = tmp_path / "c", trainer("mlp")
    made.fit(PARTS["mlp"], checkpoint=path)
    with safetensors.safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["onward"])
    tensors = safetensors.numpy.load_file(path)
    for value in DAMAGED[part]:
        safetensors.numpy.save_file(tensors, path, {"onward": json.dumps(about | {part: value})})
        with pytest.raises(CheckpointError, match="this checkpoint is damaged"):
            made.fit(PARTS["mlp"], 2, checkpoint=path, resume=True)
    safetensors.numpy.save_file(tensors, path, {"onward": "[" * 100_000})
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(path, made)
