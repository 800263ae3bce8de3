"""Training that began on ONNX Runtime goes on in the generated JAX package as if nothing had happened."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load as load_tensors
from small_networks import NETWORKS, batches, network, onnx_of
from torch import nn

from onward.cli import main
from onward.errors import UnsupportedError
from onward.training.export import to_jax_package
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

STEPS = 25


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(f"{folder.name}.train")


def feeds(name: str, count: int) -> list[dict[str, Any]]:
    return [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches(name, count)]


def check_curves(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, training: bool = False, **options: Any
) -> ModuleType:
    """The last 25 of 50 steps on ONNX Runtime, and the same 25 in JAX."""
    made = prepare(onnx_of(network(name), NETWORKS[name].data(4), training=training), **options)
    trainer = Trainer(made)
    data = feeds(name, 2 * STEPS * made.accumulate)
    for batch in data[: len(data) // 2]:
        trainer.step(batch)
    to_jax_package(trainer, folder)
    rest = data[len(data) // 2 :]
    expected = [trainer.step(batch) for batch in rest]
    module: Any = imported(folder, monkeypatch)
    params, *fixed = module.load_adapted() if made.adapters else [module.load()]
    more = [module.load_key()] if hasattr(module, "load_key") else []
    more += [module.load_constants()] if trainer.buffers else []
    more += [module.load_average(params)] if "average" in options else []
    state = module.load_optimizer(params, module.load_progress()[0])
    params, state, *more, found = module.train(params, state, *more, *fixed, rest)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(set(expected)) > 1
    module.save(params, state, *more, *fixed, step=trainer.steps, epoch=0)
    assert module.load_progress() == (trainer.steps, 0)
    weights = made.weights(trainer.parameters)
    for key, tensor in module.flat(module.load()).items():
        np.testing.assert_allclose(
            as_in_the_file(tensor, weights[key]), weights[key], rtol=1e-3, atol=1e-4, err_msg=key
        )
    params = module.load_adapted()[0] if made.adapters else module.load()
    again = module.load_optimizer(params, trainer.steps)
    for left, right in zip(module.jax.tree.leaves(again), module.jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    for key, array in trainer.buffers.items():
        np.testing.assert_allclose(module.flat(module.load_constants())[key], array, rtol=1e-3, atol=1e-4, err_msg=key)
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", str(folder)], check=True)
    return module


def as_in_the_file(tensor: Any, held: Any) -> Any:
    """A weight with its axes in the order of the ONNX file: JAX has filters as HWIO, and matrices as (in, out)."""
    if tensor.ndim == held.ndim == 2 and tensor.shape != held.shape:
        return tensor.T
    return tensor if tensor.shape == held.shape else tensor.transpose(3, 2, 0, 1)


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
    import jax

    found = module.loss_of(module.load(), {key: jax.numpy.asarray(array) for key, array in batch.items()})
    np.testing.assert_allclose(found, Trainer(made).step(batch), rtol=1e-5)


ADAPTED: dict[str, dict[str, Any]] = {
    "plain": {"optimizer": AdamW(lr=1e-2)},
    "others beside": {"optimizer": SGD(lr=0.05, momentum=0.9), "trainable": ["*bias"], "penalties": [Penalty(1e-2)]},
    "averaged": {"optimizer": LAMB(lr=1e-2), "average": 0.8, "clip_norm": 0.5},
}


@pytest.mark.parametrize("options", ADAPTED)
def test_adapters_go_along(options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small matrices are trained in the place of each; what is saved as the model's has them merged."""
    how = {**ADAPTED[options], "lora": lora(2, alpha=3.0)}
    module: Any = check_curves("mlp", tmp_path / "net", monkeypatch, **how)
    params, originals = module.load_adapted()
    trained = module.flat(params)
    assert {"0.weight.a", "0.weight.b"} < trained.keys() and "0.weight" not in trained
    assert ("0.bias" in trained) is (options == "others beside")
    apart = module.flat(module.merged(params, originals))
    for key, tensor in module.flat(module.load()).items():
        np.testing.assert_allclose(tensor, apart[key], rtol=1e-6, err_msg=key)


def dropping(*rates: float) -> nn.Module:
    first, second = (nn.Dropout(rate) for rate in rates)
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), first, nn.Linear(32, 32), second, nn.Linear(32, 4))


def test_dropout_that_drops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the numbers drawn do not matter, and the curve is that of ONNX Runtime."""
    monkeypatch.setitem(NETWORKS, "mlp", replace(NETWORKS["mlp"], make=lambda: dropping(1e-9, 1e-9)))
    module: Any = check_curves("mlp", tmp_path / "net", monkeypatch, training=True, optimizer=Adam(lr=3e-3))
    assert not np.array_equal(
        *(module.jax.random.key_data(key) for key in (module.load_key(), module.jax.random.key(0)))
    )


def test_dropout_follows_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its rate, with others larger; two of them on one tensor draw apart; nothing is drawn in inference."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(12))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x * self.scale
            return torch.cat([nn.functional.dropout(x, 0.4, True), nn.functional.dropout(x, 0.4, True)], 1)

    file = onnx_of(Twice(), torch.randn(4, 12), training=True)
    folder = to_jax_package(prepare(file, MeanSquaredError()), tmp_path / "net")
    module: Any = imported(folder, monkeypatch)
    params, x = module.load(), np.abs(np.random.default_rng(0).standard_normal((500, 12), np.float32)) + 1
    key = module.load_key()
    found = np.asarray(module.apply(params, x, key))
    plain = np.asarray(importlib.import_module("net.model").apply(params, x))
    np.testing.assert_array_equal(plain, np.concatenate([x, x], 1))
    np.testing.assert_allclose(found[found != 0], (plain / 0.6)[found != 0], rtol=1e-5)
    assert abs((found == 0).mean() - 0.4) < 0.03
    left, right = np.split(found == 0, 2, axis=1)
    assert abs((left & right).mean() - 0.16) < 0.03
    np.testing.assert_array_equal(found, module.apply(params, x, key))
    assert not np.array_equal(found, module.apply(params, x, module.jax.random.key(1)))


RESUMED: dict[str, dict[str, Any]] = {
    "mlp": {"optimizer": SGD(lr=0.1), "schedule": Warmup(5, Cosine(30, 0.1)), "accumulate": 3},
    "dropout": {"optimizer": Adam(lr=1e-2), "schedule": Steps(5, 0.5), "average": 0.9},
    "cnn": {"optimizer": SGD(lr=0.1, momentum=0.9), "schedule": Linear(30, 0.1)},
}


@pytest.mark.parametrize("name", RESUMED)
def test_two_runs_are_one_of_twice_the_length(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps at the same learning rates, on the same batches, with the same masks of dropout."""
    file = onnx_of(network(name), NETWORKS[name].data(4), training=name == "dropout")
    x, y = batches(name, 1, 250)[0]
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=y.numpy())
    found = {}
    for folder, runs in {"parts": [1, 1], "whole": [2]}.items():
        to_jax_package(prepare(file, **RESUMED[name]), tmp_path / folder)
        for epochs in runs:  # as the command line does, in this process
            module: Any = imported(tmp_path / folder, monkeypatch)
            monkeypatch.setattr(sys, "argv", ["train", str(tmp_path / "data.npz"), "--epochs", str(epochs)])
            module.main()
        assert module.load_progress() == (2 * (8 // RESUMED[name].get("accumulate", 1)), 2)
        found[folder] = {
            path.name: load_tensors(path.read_bytes()) for path in (tmp_path / folder).glob("*.safetensors")
        }
    assert found["whole"].keys() == found["parts"].keys() and ("key.safetensors" in found["whole"]) is (
        name == "dropout"
    )
    for file_name, tensors in found["whole"].items():
        for key, tensor in tensors.items():
            np.testing.assert_array_equal(tensor, found["parts"][file_name][key], err_msg=f"{file_name}: {key}")


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
    module: Any = imported(to_jax_package(made, tmp_path / "net"), monkeypatch)
    trainer = Trainer(made)
    expected = trainer.step(batch)
    params = module.load()
    params, _, found = module.train(params, module.load_optimizer(params, 0), [batch])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.isfinite(expected) and expected != 0
    for key, tensor in module.flat(params).items():
        expected = trainer.parameters[key]
        np.testing.assert_allclose(as_in_the_file(tensor, expected), expected, rtol=1e-4, atol=1e-6, err_msg=key)


def test_what_is_refused(tmp_path: Path) -> None:
    model = onnx_of(network("mlp"), NETWORKS["mlp"].data(4))
    with pytest.raises(UnsupportedError, match="function of your own"):
        to_jax_package(prepare(model, schedule=lambda step: 1 / step), tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_the_loop_of_a_user(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    prepared = prepare(onnx_of(network("cnn"), NETWORKS["cnn"].data(4)), optimizer=Adam(lr=1e-2))
    prepared.save(tmp_path / "trainable.onnx")
    main(["train", "export", str(tmp_path / "trainable.onnx"), "--to", "jax", "--out", str(folder), "--no-verify"])
    x, y = batches("cnn", 1, 64)[0]
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=y.numpy())
    command = [sys.executable, "-m", "net.train", "data.npz", "--epochs", "3"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    losses = [float(line.rpartition(" ")[2]) for line in done.stdout.splitlines()]
    assert len(losses) == 3 and losses[-1] < losses[0]
    assert json.loads((folder / "progress.json").read_text())["step"] == 6
