"""Training that began on ONNX Runtime goes on in TensorFlow and Keras packages as if nothing had happened."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from small_networks import NETWORKS, batches, network, onnx_of
from torch import nn

from onward.cli import main
from onward.training import to_keras_package, to_tensorflow_package
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.adapters import lora
from onward.training.recipe.ctc import CTC
from onward.training.recipe.groups import Group
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
    Penalty,
    Term,
)
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop
from onward.training.recipe.schedules import Cosine, Linear, Steps, Warmup
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare

WRITE: dict[str, Callable[..., Path]] = {"tensorflow": to_tensorflow_package, "keras": to_keras_package}
FRAMEWORKS = pytest.mark.parametrize("framework", WRITE)
STEPS = 4


@cache
def file_of(name: str) -> Any:
    return onnx_of(network(name), NETWORKS[name].data(4), training=name == "dropout")


def feeds(name: str, count: int) -> list[dict[str, Any]]:
    return [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches(name, count)]


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(f"{folder.name}.train")


def loaded(module: Any) -> list[Any]:
    """What `train` takes before the batches."""
    net, (made, _) = module.load(), module.load_progress()
    if hasattr(module, "prepare"):
        module.prepare(net, made)
        return [net]
    weights = module.trained_in(net)
    return [net, weights, module.load_state(*([net] if hasattr(module, "ADAPTERS") else []), weights, made)]


def check_curves(
    framework: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[ModuleType, Trainer]:
    """Steps on ONNX Runtime, then in the package, and there again after its own checkpoint."""
    made = prepare(file_of(name), **options)
    trainer = Trainer(made)
    data = feeds(name, 3 * STEPS * made.accumulate)
    third = len(data) // 3
    for batch in data[:third]:
        trainer.step(batch)
    module: Any = imported(WRITE[framework](trainer, folder), monkeypatch)
    for part in (data[third : 2 * third], data[2 * third :]):
        expected = [trainer.step(batch) for batch in part]
        given = loaded(module)
        np.testing.assert_allclose(module.train(*given, part), expected, rtol=2e-6)
        assert len(set(expected)) > 1
        module.save(*given, step=trainer.steps, epoch=0)
        assert module.load_progress() == (trainer.steps, 0)
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", str(folder)], check=True)
    return module, trainer


CASES: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": SGD(lr=0.05, weight_decay=1e-2), "clip_value": 0.05, "schedule": Steps(3, 0.5)},
    "momentum": {"optimizer": SGD(lr=0.02, momentum=0.9, nesterov=True), "accumulate": 2},
    "dampening": {
        "optimizer": SGD(lr=0.02, momentum=0.8, dampening=0.3, weight_decay=1e-3),
        "schedule": Linear(40, 0.2),
        "average": 0.9,
    },
    "adagrad": {"optimizer": Adagrad(lr=0.02, lr_decay=0.1), "schedule": Cosine(30, 0.1)},
    "rmsprop": {"optimizer": RMSprop(lr=2e-3, momentum=0.5, centered=True), "penalties": [Penalty(1e-2, 1)]},
    "adam": {
        "optimizer": Adam(lr=3e-3, betas=(0.8, 0.99), weight_decay=1e-3),
        "loss": CrossEntropy(label_smoothing=0.1, weight=(1.0, 2.0, 0.5, 1.5)),
        "clip_norm": 0.5,
        "clip_value": 0.05,
        "average": 0.9,
    },
    "adamw": {
        "optimizer": AdamW(lr=3e-3, eps=1e-7),
        "groups": [Group("*bias", lr=2.0, weight_decay=0.0), Group("0.weight", lr=0.5)],
        "penalties": [Penalty(1e-2, 2, "*weight")],
        "schedule": Warmup(10, Cosine(30, 0.1)),
        "accumulate": 2,
    },
    "lamb": {"optimizer": LAMB(lr=1e-2, betas=(0.8, 0.99))},
    "onnx_adam": {"optimizer": OnnxAdam(lr=3e-3, first=0, weight_decay=1e-3, norm_coefficient_post=1e-4)},
    "onnx_adagrad": {"optimizer": OnnxAdagrad(lr=0.02, decay_factor=0.01, weight_decay=1e-3)},
    "onnx_momentum": {"optimizer": OnnxMomentum(lr=0.02, beta=0.7, mode="nesterov"), "trainable": ["3.weight"]},
}


@pytest.mark.parametrize("case", CASES)
def test_tensorflow_goes_on(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_curves("tensorflow", "mlp", tmp_path / "net", monkeypatch, **CASES[case])


@pytest.mark.parametrize("case", ["sgd", "momentum", "dampening", "adam", "adamw", "onnx_momentum"])
def test_keras_goes_on(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_curves("keras", "mlp", tmp_path / "net", monkeypatch, **CASES[case])
    text = (tmp_path / "net" / "train.py").read_text()
    assert ("keras.optimizers.SGD(" in text) is (case in ("sgd", "momentum"))
    assert ("keras.losses.SparseCategoricalCrossentropy(" in text) is (case not in ("adam", "adamw"))
    assert ("schedules.ExponentialDecay(" in text) is (case == "sgd")


@FRAMEWORKS
@pytest.mark.parametrize("name", ["cnn", "lstm", "inference"])
def test_other_networks_go_on(framework: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The running variance is the unbiased one; both biases of a recurrent layer stay; batch norm may be as it was."""
    options: dict[str, Any] = {"optimizer": Adam(lr=3e-3)}
    options |= {"train_mode": False, "trainable": ["*.bias"]} if name == "inference" else {}
    own = "cnn" if name == "inference" else name
    module, trainer = check_curves(framework, own, tmp_path / "net", monkeypatch, **options)
    held = [variable.numpy() for variable in module.variables_of(module.load()).values()]
    for key, array in trainer.buffers.items():
        assert any(own.shape == array.shape and np.allclose(own, array, rtol=1e-5) for own in held), key
    assert bool(trainer.buffers) is (name == "cnn")


def test_adapters_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how: dict[str, Any] = {"optimizer": AdamW(lr=1e-2), "lora": lora(2, alpha=3.0), "penalties": [Penalty(1e-2)]}
    module, trainer = check_curves("tensorflow", "mlp", tmp_path / "net", monkeypatch, **how)
    merged = trainer.trainable.weights(trainer.parameters)
    for name, variable in module.variables_of(module.load()).items():
        if name in merged:
            held = merged[name] if merged[name].shape == variable.shape else merged[name].T
            np.testing.assert_allclose(variable, held, rtol=1e-4, atol=1e-6, err_msg=name)


LOSSES: dict[str, Any] = {
    "sum": MeanSquaredError("sum"),
    "mse": MeanSquaredError(),
    "l1": L1(),
    "huber": Huber(0.7),
    "bce": BinaryCrossEntropy(),
    "weighted bce": BinaryCrossEntropy(2.5),
    "kl": KLDivergence(),
    "soft": CrossEntropy(soft=True, label_smoothing=0.1, weight=(1.0, 2.0, 0.5, 1.5)),
    "plain soft": CrossEntropy(soft=True, label_smoothing=0.1),
    "ignored": CrossEntropy(ignore_index=2, label_smoothing=0.1),
    "class sum": CrossEntropy(reduction="sum"),
    "nll": NegativeLogLikelihood(ignore_index=1),
    "several": [Term(CrossEntropy(), 0.3), Term(CrossEntropy(label_smoothing=0.2), 2.0)],
}
OF_KERAS = ("mse", "l1", "huber", "bce", "class sum")


@FRAMEWORKS
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_the_same(framework: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepare(file_of("mlp"), LOSSES[name], SGD(lr=0.05))
    batch = feeds("mlp", 1)[0]
    labels = next(value for value in made.gradients.graph.inputs if value.name == "labels")
    if labels.shape is not None and len(labels.shape) == 2:
        draw = np.random.default_rng(0).random((len(batch["x"]), 4)).astype(np.float32)
        batch["labels"] = draw / draw.sum(1, keepdims=True)
        batch["labels"][0] = 0  # of which TensorFlow's own cross entropy has another gradient
    module: Any = imported(WRITE[framework](made, tmp_path / "net"), monkeypatch)
    trainer = Trainer(made)
    expected = [trainer.step(batch) for _ in range(3)]
    np.testing.assert_allclose(module.train(*loaded(module), [batch] * 3), expected, rtol=1e-5)
    assert len(set(expected)) == 3
    if framework == "keras":
        assert hasattr(module, "loss_of") is (name not in OF_KERAS)


CTC_LOSSES: dict[str, CTC] = {
    "logits": CTC(logits=True, batch_first=True),
    "blank": CTC(blank=2, logits=True, batch_first=True, reduction="sum", zero_infinity=True),
    "raw": CTC(batch_first=True, input_lengths=None, zero_infinity=True),
}


@pytest.mark.parametrize("name", CTC_LOSSES)
def test_ctc(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal labels in a row, none at all, more than fit; a prediction that is not normalised; and the gradient."""
    loss, draw = CTC_LOSSES[name], np.random.default_rng(3)
    made = prepare(onnx_of(nn.Linear(6, 5), torch.randn(4, 7, 6)), loss, SGD(lr=0.1))
    batch = {"x": draw.standard_normal((4, 7, 6), np.float32), "labels": np.full((4, 5), 1)}
    batch["labels"][0, :4], batch["labels"][1] = (3, 3, 1, 4), (1, 3, 4, 3, 1)
    batch["target_lengths"] = np.array([4, 3, 0, 5 if loss.zero_infinity else 2])
    if loss.input_lengths is not None:
        batch["input_lengths"] = np.array([7, 5, 6, 7])
    module: Any = imported(to_tensorflow_package(made, tmp_path / "net"), monkeypatch)
    trainer, given = Trainer(made), loaded(module)
    expected = [trainer.step(batch) for _ in range(2)]
    np.testing.assert_allclose(module.train(*given, [batch, batch]), expected, rtol=1e-5)
    assert np.isfinite(expected).all() and expected[0] != expected[1]


@FRAMEWORKS
def test_two_runs_are_one_of_twice_the_length(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps at the same learning rates, on the same batches, with the same masks of dropout."""
    x, y = batches("dropout", 1, 250)[0]
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=y.numpy())
    found = []
    for folder, runs in {"parts": [1, 1], "whole": [2]}.items():
        how = prepare(file_of("dropout"), optimizer=Adam(lr=1e-2), schedule=Steps(1, 0.5), accumulate=3)
        WRITE[framework](how, tmp_path / folder)
        for epochs in runs:  # as the command line does, in this process
            module: Any = imported(tmp_path / folder, monkeypatch)
            monkeypatch.setattr(sys, "argv", ["train", str(tmp_path / "data.npz"), "--epochs", str(epochs)])
            module.main()
        assert module.load_progress() == (4, 2)
        found.append({name: v.numpy() for name, v in module.variables_of(module.load()).items()})
    parts, whole = found
    assert whole.keys() == parts.keys()
    for name, array in whole.items():
        np.testing.assert_array_equal(array, parts[name], err_msg=name)


@FRAMEWORKS
def test_the_loop_of_a_user(framework: str, tmp_path: Path) -> None:
    prepare(file_of("mlp"), optimizer=Adam(lr=1e-2)).save(tmp_path / "trainable.onnx")
    main(["train", "export", str(tmp_path / "trainable.onnx"), "--to", framework, "--out", str(tmp_path / "net")])
    x, y = batches("mlp", 1, 64)[0]
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=y.numpy())
    command = [sys.executable, "-m", "net.train", "data.npz", "--epochs", "3"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    losses = [float(line.rpartition(" ")[2]) for line in done.stdout.splitlines()]
    assert len(losses) == 3 and losses[-1] < losses[0]
    assert json.loads((tmp_path / "net" / "progress.json").read_text())["step"] == 6
