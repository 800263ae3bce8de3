"""Losses and optimizers that are graphs go on in other frameworks: they are converted as the model is."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import ModelProto, parser
from small_networks import NETWORKS, batches, network, onnx_of

import onward
from onward.training import to_jax_package, to_keras_package, to_tensorflow_package, to_torch_package
from onward.training.recipe.groups import Group
from onward.training.recipe.losses import Penalty
from onward.training.recipe.schedules import Cosine
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare
from onward.training.verification.jax import JaxPackage

WRITE: dict[str, Callable[..., Path]] = {
    "torch": to_torch_package,
    "tensorflow": to_tensorflow_package,
    "keras": to_keras_package,
    "jax": to_jax_package,
}


def model_of(text: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> agraph {text}')


SIGN = model_of("(float[N] w, float[N] g, float lr) => (float[N] y) { s = Sign (g) m = Mul (s, lr) y = Sub (w, m) }")
ROOTS = model_of(
    """(float[N] w, float[N] g, float lr, int64 step, float decay, float[N] v, float[N] u)
    => (float[N] y, float[N] v2, float[N] u2) {
    half = Constant <value = float {0.5}> () d = Mul (w, decay) h = Add (g, d) a = Mul (v, half) v2 = Add (a, h)
    square = Mul (h, h) u2 = Add (u, square) root = Sqrt (u2) t = Cast <to = 1> (step) slower = Mul (root, t)
    q = Div (v2, slower) m = Mul (q, lr) y = Sub (w, m) }"""
)
WEIGHED = model_of(
    """(float[N, 4] prediction, float[N, 4] labels) => (float[N, 4] l) {
    w = Constant <value = float[4] {1.0, 2.0, 3.0, 0.5}> () d = Sub (prediction, labels)
    s = Mul (d, d) l = Mul (s, w) }"""
)
"""What of a class counts how much, with a mean over all."""


@cache
def file_of(name: str) -> Any:
    return onnx_of(network(name), NETWORKS[name].data(4))


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(f"{folder.name}.train")


def trained(module: Any, framework: str, part: list[dict[str, Any]], step: int) -> list[float]:
    """The losses of some steps, after which it is saved."""
    net, (made, _) = module.load(), module.load_progress()
    if framework == "jax":
        package = JaxPackage(Path(module.__file__).parent, [])
        losses = [package.step([batch])[0] for batch in part]
        package.called(module.save, step=step, epoch=0)
        return losses
    if framework == "keras":
        module.prepare(net, made)
        given = [net]
    elif framework == "tensorflow":
        weights = module.trained_in(net)
        given = [net, weights, module.load_state(weights, made)]
    else:
        part = [{name: torch.from_numpy(array) for name, array in batch.items()} for batch in part]
        given = [net, module.load_optimizer(net)]
    found: list[float] = module.train(*given, part)
    module.save(*given, step=step, epoch=0)
    return found


def check(
    framework: str, made: Trainable, data: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Steps on ONNX Runtime, then in the package, and there again after its own checkpoint."""
    trainer = Trainer(made)
    third = len(data) // 3
    for batch in data[:third]:
        trainer.step(batch)
    module: Any = imported(WRITE[framework](trainer, folder), monkeypatch)
    for part in (data[third : 2 * third], data[2 * third :]):
        expected = [trainer.step(batch) for batch in part]
        np.testing.assert_allclose(trained(module, framework, part, trainer.steps), expected, rtol=5e-6)
        assert len(set(expected)) > 1
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", str(folder)], check=True)
    return module, trainer


CASES: dict[str, dict[str, Any]] = {
    "optimizer": {"optimizer": OnnxOptimizer(ROOTS, lr=1e-2, weight_decay=0.1, initial={"u": 0.3})},
    "both": {"optimizer": OnnxOptimizer(ROOTS, lr=1e-2), "loss": WEIGHED, "penalties": [Penalty(1e-2)]},
}


@pytest.mark.parametrize("framework", WRITE)
@pytest.mark.parametrize("case", CASES)
def test_graphs_go_on(framework: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches("mlp", 9)]
    if case == "both":
        draw = np.random.default_rng(1)
        data = [{"x": one["x"], "labels": draw.standard_normal((len(one["x"]), 4), np.float32)} for one in data]
    check(framework, prepare(file_of("mlp"), **CASES[case]), data, tmp_path / "net", monkeypatch)
    assert (tmp_path / "net" / "loss.py").exists() is (case == "both")
    assert not (tmp_path / "net" / "step.py").exists()
    how = "def apply(" if framework == "jax" else "class Model"
    assert how in (tmp_path / "net" / "optimizer.py").read_text()


def test_an_optimizer_without_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches("mlp", 6)]
    check("torch", prepare(file_of("mlp"), optimizer=SIGN), data, tmp_path / "net", monkeypatch)


def test_groups_and_schedules_beside_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer of optax knows neither the learning rate of a weight nor its decay: the graph is given both."""
    data = [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches("mlp", 18)]
    how = OnnxOptimizer(ROOTS, lr=1e-2, weight_decay=0.1)
    options: dict[str, Any] = {"schedule": Cosine(9), "groups": [Group("3.*", lr=0.3)], "no_decay": "vectors"}
    made = prepare(file_of("mlp"), optimizer=how, accumulate=2, clip_norm=0.5, **options)
    trainer, folder = Trainer(made), tmp_path / "net"
    for batch in data[:6]:
        trainer.step(batch)
    module: Any = imported(to_jax_package(trainer, folder), monkeypatch)
    expected = [trainer.step(batch) for batch in data[6:]]
    package = JaxPackage(folder, [])
    found = [loss for i in range(6, 18, 2) for loss in package.step(data[i : i + 2])]
    np.testing.assert_allclose(found, expected, rtol=5e-6)
    assert "by_file()" in Path(module.__file__).read_text()


IN = {"torch": ["Adam", "Lion", "Nadam", "Ftrl"], "jax": ["Adam", "Lion", "Nadam", "Ftrl"]}


@pytest.mark.parametrize(("framework", "kind"), [(name, kind) for name, kinds in IN.items() for kind in kinds])
def test_optimizers_of_keras_go_on(framework: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Keras's clipping and, in PyTorch, its batch normalisation, whose running variance is the biased one."""
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    first = keras.layers.Dense(5, use_bias=False)  # the gradient of a bias would be nothing but rounding
    middle = [keras.layers.BatchNormalization()] if framework == "torch" else []
    model = keras.Sequential([keras.Input((6,)), first, *middle, keras.layers.Dense(3)])
    how = getattr(keras.optimizers, kind)(0.01, global_clipnorm=0.1)
    model.compile(how, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    made = onward.from_keras(model, training=True)
    draw, (name, *_) = np.random.default_rng(0), [value.name for value in made.original.ir.graph.inputs]
    data = [{name: draw.standard_normal((4, 6), np.float32), "labels": draw.integers(0, 3, 4)} for _ in range(6)]
    module, trainer = check(framework, made, data, tmp_path / "net", monkeypatch)
    if framework == "jax":
        assert "by_file()" in Path(module.__file__).read_text()
        return
    held = [tensor.numpy() for tensor in module.load().state_dict().values()]
    for key, array in trainer.buffers.items():
        assert any(own.shape == array.shape and np.allclose(own, array, rtol=1e-5) for own in held), key
