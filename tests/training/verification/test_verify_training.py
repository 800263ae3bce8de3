"""A training that is exported rightly is found to be the same, and of one that is not, the part that differs is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_networks import NETWORKS, network, onnx_of

from onward.errors import OnwardError
from onward.training.export.state import Place
from onward.training.recipe.adapters import lora
from onward.training.recipe.losses import Penalty
from onward.training.recipe.optimizers import SGD, Adam
from onward.training.recipe.schedules import Steps
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare
from onward.training.verification import targets
from onward.training.verification.chance import without_chance
from onward.training.verification.data import made_up
from onward.training.verification.noise import Band, Noise
from onward.training.verification.results import verdict
from onward.training.verification.source import Source, nudged, one_bit_off
from onward.training.verification.verify import verify


@cache
def onnx(name: str) -> bytes:
    return onnx_of(network(name), NETWORKS[name].data(4), training=name in ("cnn", "dropout"))


def made(name: str = "mlp", **options: Any) -> Trainable:
    return prepare(onnx(name), **{"optimizer": Adam(lr=3e-3), **options})


@pytest.mark.parametrize("target", ["torch", "jax"])
def test_the_same_training(target: str) -> None:
    trainable = made("cnn", average=0.9, accumulate=2, clip_norm=1.0, penalties=[Penalty(1e-3)])
    trainer = Trainer(trainable)
    for batch in made_up(trainer, 4, 5):
        trainer.step(batch)
    report = verify(trainer, ["onnxruntime", target], steps=4)
    side = report.sides[0]
    assert (report.status, report.chaos, side.failure) == ("same", None, ""), verdict(side, report)
    assert len(report.losses) == len(side.losses) == 4
    np.testing.assert_allclose(side.losses, report.losses, rtol=1e-4)
    parts = {check.part for check in side.checks}
    assert parts == {"forward", "statistics", "loss", "gradient", "state", "update"}
    first = {check.tensor for check in side.checks if check.step == 3}  # two steps were made before
    assert {"y", "1.running_mean", "0.weight", "0.weight.exp_avg", "8.bias.average"} <= first
    assert report.to_json()["sides"][0]["status"] == "same"


def test_adapters_and_dropout() -> None:
    report = verify(made("dropout", lora=lora(rank=2)), "torch", steps=2)
    assert report.status == "same", verdict(report.sides[0], report)
    assert "dropout is off" in report.notes[0]
    assert {check.tensor for check in report.sides[0].checks if check.part == "gradient"} == {
        f"{layer}.weight.lora_{part}" for layer in (0, 3, 5) for part in "ab"
    }


def spoiled(monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str) -> None:
    """Packages that are written from now on have another text in one of their files."""
    write = targets._named

    def named(place: str) -> Any:
        found = write(place)
        if not place.endswith("_package"):
            return found

        def writing(trainable: Trainable, out: Path) -> Path:
            folder: Path = found(trainable, out)
            text = (folder / file).read_text()
            assert old in text
            (folder / file).write_text(text.replace(old, new))
            return folder

        return writing

    monkeypatch.setattr(targets, "_named", named)


SPOILED: dict[str, tuple[str, str, str, tuple[str, str]]] = {
    "another activation": ("model.py", "F.gelu(", "1.001 * F.gelu(", ("forward", "y")),
    "another loss": ("train.py", "return F.cross_entropy(", "return 1.0005 * F.cross_entropy(", ("loss", "loss")),
    "a gradient": ("model.py", "self._3(", "(lambda f, x: f(x + 0.001 * (x - x.detach())))(self._3, ", ("gradient", "")),
    "the optimizer's memory": ("train.py", "(0.9, 0.999)", "(0.9, 0.9991)", ("state", "0.weight.exp_avg_sq")),
    "the learning rate": ("train.py", "lr=0.003", "lr=0.003001", ("update", "0.weight")),
}


@pytest.mark.parametrize("what", SPOILED)
def test_the_part_that_differs_is_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new, expected = SPOILED[what]
    spoiled(monkeypatch, file, old, new)
    report = verify(made(), "torch", steps=2)
    found = report.sides[0].difference
    assert report.status == "different" and found is not None, verdict(report.sides[0], report)
    assert (found.part, found.step) == (expected[0], 1)
    assert expected[1] in (found.tensor, ""), found
    assert found.tensor in verdict(report.sides[0], report)
