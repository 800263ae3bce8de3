"""Training that began on ONNX Runtime goes on in the generated JAX package as if nothing had happened."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from small_networks import NETWORKS, batches, network, onnx_of

from onward.cli import main
from onward.errors import UnsupportedError
from onward.training.export import to_jax_package
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
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

STEPS = 25


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(f"{folder.name}.train")


def feeds(name: str, count: int) -> list[dict[str, Any]]:
    return [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches(name, count)]


def check_curves(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> ModuleType:
    """The last 25 of 50 steps on ONNX Runtime, and the same 25 in JAX."""
    made = prepare(onnx_of(network(name), NETWORKS[name].data(4)), **options)
    trainer = Trainer(made)
    data = feeds(name, 2 * STEPS * made.accumulate)
    for batch in data[: len(data) // 2]:
        trainer.step(batch)
    to_jax_package(trainer, folder)
    rest = data[len(data) // 2 :]
    expected = [trainer.step(batch) for batch in rest]
    module: Any = imported(folder, monkeypatch)
    params = module.load()
    more = [module.load_constants()] if trainer.buffers else []
    more += [module.load_average(params)] if "average" in options else []
    state = module.load_optimizer(params, module.load_progress()[0])
    params, state, *more, found = module.train(params, state, *more, rest)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(set(expected)) > 1
    for key, tensor in module.flat(params).items():
        np.testing.assert_allclose(tensor, trainer.parameters[key], rtol=1e-3, atol=1e-4, err_msg=key)
    module.save(params, state, *more, step=trainer.steps, epoch=0)
    assert module.load_progress() == (trainer.steps, 0)
    again = module.load_optimizer(module.load(), trainer.steps)
    for left, right in zip(module.jax.tree.leaves(again), module.jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    for key, array in trainer.buffers.items():
        np.testing.assert_allclose(module.flat(module.load_constants())[key], array, rtol=1e-3, atol=1e-4, err_msg=key)
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", str(folder)], check=True)
    return module


OPTIMIZERS: dict[str, Any] = {
    "sgd": SGD(lr=0.05),
    "nesterov": SGD(lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "dampening": SGD(lr=0.02, momentum=0.8, dampening=0.3),
    "adagrad": Adagrad(lr=0.02, lr_decay=0.01),
    "rmsprop": RMSprop(lr=2e-3, momentum=0.5, centered=True),
    "adam": Adam(lr=3e-3, betas=(0.8, 0.99), weight_decay=1e-3),
    "adamw": AdamW(lr=3e-3, eps=1e-7),
    "lamb": LAMB(lr=1e-2, betas=(0.8, 0.99)),
    "onnx_adam": OnnxAdam(lr=3e-3, first=0, weight_decay=1e-3, norm_coefficient_post=1e-4),
    "onnx_adagrad": OnnxAdagrad(lr=0.02, decay_factor=0.01, weight_decay=1e-3),
    "onnx_momentum": OnnxMomentum(lr=0.02, beta=0.7, mode="nesterov"),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_losses_go_on(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = CrossEntropy(label_smoothing=0.1, weight=(1.0, 2.0, 0.5, 1.5))
    check_curves("mlp", tmp_path / "net", monkeypatch, loss=loss, optimizer=OPTIMIZERS[optimizer])


OPTIONS: dict[str, dict[str, Any]] = {
    "clipping": {"optimizer": Adam(lr=3e-3), "clip_norm": 0.5, "clip_value": 0.05},
    "groups": {
        "optimizer": AdamW(lr=3e-3),
        "groups": [Group("*bias", lr=2.0, weight_decay=0.0), Group("0.weight", lr=0.5)],
    },
    "accumulation": {"optimizer": Adam(lr=3e-3), "accumulate": 2},
    "average": {"optimizer": SGD(lr=0.05, momentum=0.9), "average": 0.9},
    "penalties": {"optimizer": SGD(lr=0.05), "penalties": [Penalty(1e-3, 1), Penalty(1e-2, 2, "*weight")]},
    "steps": {"optimizer": SGD(lr=0.05), "schedule": Steps(10, 0.5)},
    "cosine": {"optimizer": Adam(lr=3e-3), "schedule": Warmup(10, Cosine(30, 0.1))},
    "linear": {"optimizer": AdamW(lr=3e-3), "schedule": Linear(40, 0.2)},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_go_on(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_curves("mlp", tmp_path / "net", monkeypatch, **OPTIONS[option])


@pytest.mark.parametrize("name", ["cnn", "lstm"])
def test_other_networks_go_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch normalisation follows the batches; recurrent layers keep the gates of the file."""
    check_curves(name, tmp_path / "net", monkeypatch, optimizer=Adam(lr=3e-3))


def test_inference_mode_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_curves("cnn", tmp_path / "net", monkeypatch, optimizer="adam", train_mode=False)


def test_a_part_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"optimizer": SGD(lr=0.05, momentum=0.9), "trainable": ["3.*"]}
    module: Any = check_curves("mlp", tmp_path / "net", monkeypatch, **options)
    assert module.flat(module.load()).keys() == {"3.weight", "3.bias"}


LOSSES: dict[str, Any] = {
    "mse": MeanSquaredError("sum"),
    "l1": L1(),
    "huber": Huber(0.7),
    "bce": BinaryCrossEntropy(),
    "weighted bce": BinaryCrossEntropy(2.5),
    "kl": KLDivergence(),
    "soft": CrossEntropy(soft=True, label_smoothing=0.1, weight=(1.0, 2.0, 0.5, 1.5)),
    "plain soft": CrossEntropy(soft=True),
    "ignored": CrossEntropy(ignore_index=2, label_smoothing=0.1),
    "sum": CrossEntropy(reduction="sum"),
    "nll": NegativeLogLikelihood(ignore_index=1),
    "several": [Term(CrossEntropy(), 0.3), Term(CrossEntropy(label_smoothing=0.2), 2.0)],
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepare(onnx_of(network("mlp"), NETWORKS["mlp"].data(4)), LOSSES[name], SGD(lr=0.01))
    batch = feeds("mlp", 1)[0]
    labels = next(value for value in made.gradients.graph.inputs if value.name == "labels")
    if labels.shape is not None and len(labels.shape) == 2:
        draw = np.random.default_rng(0).random((len(batch["x"]), 4)).astype(np.float32)
        batch["labels"] = draw / draw.sum(1, keepdims=True)
    module: Any = imported(to_jax_package(made, tmp_path / "net"), monkeypatch)
    found = module.loss_of(module.load(), {key: module.jnp.asarray(array) for key, array in batch.items()})
    np.testing.assert_allclose(found, Trainer(made).step(batch), rtol=1e-5)


def test_what_is_refused(tmp_path: Path) -> None:
    model = onnx_of(network("dropout"), NETWORKS["dropout"].data(4), training=True)
    with pytest.raises(UnsupportedError, match="prepare with train_mode=False"):
        to_jax_package(prepare(model), tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_the_loop_of_a_user(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    prepared = prepare(onnx_of(network("cnn"), NETWORKS["cnn"].data(4)), optimizer=Adam(lr=1e-2))
    prepared.save(tmp_path / "trainable.onnx")
    main(["train", "export", str(tmp_path / "trainable.onnx"), "--to", "jax", "--out", str(folder)])
    x, y = batches("cnn", 1, 64)[0]
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=y.numpy())
    command = [sys.executable, "-m", "net.train", "data.npz", "--epochs", "3"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    losses = [float(line.rpartition(" ")[2]) for line in done.stdout.splitlines()]
    assert len(losses) == 3 and losses[-1] < losses[0]
    assert json.loads((folder / "progress.json").read_text())["step"] == 6
