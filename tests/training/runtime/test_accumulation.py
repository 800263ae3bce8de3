"""Gradients of several batches make one step: the same as that of one large batch."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_networks import batches, network, onnx_of

from onward.training.export import to_torch_package
from onward.training.info.read import load
from onward.training.recipe.groups import Group
from onward.training.recipe.optimizers import SGD, AdamW
from onward.training.recipe.schedules import Steps
from onward.training.runtime.checkpoint import load as load_checkpoint
from onward.training.runtime.checkpoint import save as save_checkpoint
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare

MANY, SIZE, STEPS = 4, 8, 6
LARGE = [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches("mlp", STEPS, MANY * SIZE)]
SMALL = [{k: array[i : i + SIZE] for k, array in b.items()} for b in LARGE for i in range(0, MANY * SIZE, SIZE)]
OPTIONS: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": SGD(lr=0.05, momentum=0.9)},
    "adamw": {"optimizer": AdamW(lr=1e-2)},
    "clip_norm": {"optimizer": SGD(lr=0.05), "clip_norm": 0.3},
    "clip_value": {"optimizer": SGD(lr=0.05), "clip_value": 0.02},
    "schedule and groups": {
        "optimizer": AdamW(lr=1e-2, weight_decay=0.1),
        "schedule": Steps(2, 0.5),
        "groups": [Group("0.*", lr=0.3)],
    },
}


@cache
def model() -> Any:
    return onnx_of(network("mlp"), torch.randn(4, 12))


def prepared(accumulate: int, name: str) -> Trainable:
    return prepare(model(), accumulate=accumulate, **OPTIONS[name])


@cache
def whole(name: str) -> tuple[list[float], dict[str, Any]]:
    """Losses and weights of one trainer that sees the large batches."""
    trainer = Trainer(prepared(1, name), threads=1)
    return steps_of(trainer, LARGE), trainer.parameters


def steps_of(trainer: Trainer, data: list[dict[str, Any]]) -> list[float]:
    return [trainer.step(batch) for batch in data]


def check(losses: list[float], parameters: dict[str, Any], name: str) -> None:
    expected, weights = whole(name)
    np.testing.assert_allclose(np.reshape(losses, (STEPS, MANY)).mean(1), expected, rtol=1e-5)
    for key, array in weights.items():
        np.testing.assert_allclose(parameters[key], array, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("way", ["trainer", "file", "symbolic file"])
def test_small_batches_make_the_step_of_a_large_one(way: str, name: str, tmp_path: Path) -> None:
    made = prepared(MANY, name)
    if way != "trainer":
        made.save(tmp_path / "trainable.onnx", symbolic=way == "symbolic file")
        made = load(tmp_path / "trainable.onnx")
    trainer = Trainer(made, threads=1)
    losses = steps_of(trainer, SMALL)
    assert trainer.steps == STEPS
    check(losses, trainer.parameters, name)


@pytest.mark.parametrize("name", OPTIONS)
def test_in_pytorch(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = to_torch_package(prepared(MANY, name), tmp_path / f"small_{name.replace(' ', '_')}")
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = importlib.import_module(f"{folder.name}.train")
    net = module.load()
    data = [{key: torch.from_numpy(array) for key, array in batch.items()} for batch in SMALL]
    losses = module.train(net, module.load_optimizer(net), data)
    check(losses, {key: p.detach().numpy() for key, p in net.named_parameters()}, name)
    for loaded in [key for key in sys.modules if key.startswith(folder.name)]:
        monkeypatch.delitem(sys.modules, loaded)


def test_between_two_steps_nothing_is_lost(tmp_path: Path) -> None:
    first = Trainer(prepared(MANY, "adamw"), threads=1)
    losses = steps_of(first, SMALL[:6])
    save_checkpoint(tmp_path / "checkpoint", first)
    second = Trainer(prepared(MANY, "adamw"), threads=1)
    load_checkpoint(tmp_path / "checkpoint", second)
    assert (second.steps, second.accumulated) == (1, 2)
    check(losses + steps_of(second, SMALL[6:]), second.parameters, "adamw")


def test_clipping_comes_after_the_mean() -> None:
    """What is compared above is different from what clipping each small batch would give, and from no clipping."""
    plain = Trainer(prepared(1, "sgd"), threads=1)
    norms = []
    for batch in (LARGE[0], *SMALL[:MANY]):
        plain.gradients(batch)
        norms.append(np.sqrt(sum(float((g**2).sum()) for g in plain._gradients.views.values())))
    assert norms[0] > 0.3 and abs(np.mean(norms[1:]) - norms[0]) > 0.1
