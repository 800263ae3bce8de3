"""Samples and classes weigh in the loss of a Keras model as they do in its `fit`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from keras_steps import BATCH, CLASSES, DRAWS, STEPS, classes, floats, tiny  # noqa: E402

import onward  # noqa: E402
from onward.cli import main  # noqa: E402
from onward.errors import OnwardError  # noqa: E402
from onward.training import load, to_torch_package  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402
from onward.training.trainable import Trainable  # noqa: E402

L, K = keras.layers, keras.losses
OF_LOGITS = K.SparseCategoricalCrossentropy(from_logits=True)
CLASS_WEIGHT = {0: 0.3, 2: 2.5}
"""Those of class 1 are not named: it is 1."""


@pytest.fixture(autouse=True)
def start() -> None:
    keras.utils.set_random_seed(1)


def shares() -> np.ndarray[Any, np.dtype[Any]]:
    return DRAWS.uniform(0, 2, (STEPS, BATCH)).astype(np.float32)


def check(model: Any, trainable: Trainable, x: Any, y: Any, weights: Any = None, **options: Any) -> None:
    """The losses that `train_on_batch` gives, which makes the steps of `fit`."""
    trainer = Trainer(trainable, kernels=False)
    name = trainable.original.ir.graph.inputs[0].name or ""
    ours, theirs = [], []
    for i in range(STEPS):
        more = {} if weights is None else {"sample_weight": weights[i]}
        ours.append(trainer.step({name: x[i], "labels": y[i], **more}))
        model.reset_metrics()
        theirs.append(model.train_on_batch(x[i], y[i], **more, **options))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_weights_of_samples(tmp_path: Path) -> None:
    model = tiny()
    model.compile(keras.optimizers.Adam(0.1), OF_LOGITS)
    onward.from_keras(model, training=True, sample_weight=True).save(tmp_path / "a.onnx")
    trainable = load(tmp_path / "a.onnx")
    assert trainable.labels == ["labels", "sample_weight"] and trainable.loss is None
    check(model, trainable, floats(5), classes(), shares())


def test_weights_beside_masks() -> None:
    """A mask takes steps out, and changes what the mean is over."""
    layers = [L.Embedding(9, 4, mask_zero=True), L.LSTM(3, return_sequences=True), L.Dense(CLASSES)]
    model = keras.Sequential([keras.Input((6,), dtype="int32"), *layers])
    model.compile(keras.optimizers.SGD(0.5), OF_LOGITS)
    words = DRAWS.integers(-4, 9, (STEPS, BATCH, 6)).clip(0).astype(np.int32)
    check(model, onward.from_keras(model, training=True, sample_weight=True), words, classes(6), shares())


@pytest.mark.parametrize("kind", ["classes", "one-hot", "column"])
def test_weights_of_classes(kind: str) -> None:
    column = kind == "column"
    model = keras.Sequential([keras.Input((5,)), L.Dense(1, activation="sigmoid")]) if column else tiny()
    losses = {"classes": OF_LOGITS, "one-hot": K.CategoricalCrossentropy(from_logits=True), "column": "mse"}
    model.compile(keras.optimizers.SGD(0.5), losses[kind])
    y = classes()
    wanted = {"classes": y, "one-hot": np.eye(CLASSES)[y], "column": y[..., None].astype(np.float32)}[kind]
    trainable = onward.from_keras(model, training=True, class_weight=CLASS_WEIGHT)
    check(model, trainable, floats(5), wanted, class_weight=CLASS_WEIGHT)


def test_a_weighted_loss_goes_on_in_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    model = tiny()
    model.compile(keras.optimizers.SGD(0.1), OF_LOGITS)
    trainable = onward.from_keras(model, training=True, sample_weight=True)
    to_torch_package(trainable, tmp_path / "weighted_in_torch")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    train = importlib.import_module("weighted_in_torch.train")
    name = trainable.original.ir.graph.inputs[0].name or ""
    batches = [
        {name: x, "labels": y, "sample_weight": w} for x, y, w in zip(floats(5), classes(), shares(), strict=True)
    ]
    net = train.load()
    fed = [{key: torch.from_numpy(array) for key, array in batch.items()} for batch in batches]
    theirs = train.train(net, train.load_optimizer(net), fed)
    trainer = Trainer(trainable, kernels=False)
    np.testing.assert_allclose(theirs, [trainer.step(batch) for batch in batches], rtol=1e-5)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny()
    model.compile("sgd", OF_LOGITS)
    model.save(tmp_path / "net.keras")
    prepare = ["train", "prepare", str(tmp_path / "net.keras"), "--out", str(tmp_path / "out.onnx")]
    assert main([*prepare, "--sample-weight"]) == 0
    assert "labels: labels, sample_weight" in capsys.readouterr().out
    assert main([*prepare, "--class-weight", "1=5.0"]) == 0
    assert main([*prepare, "--class-weight", "cat=5.0"]) == 2
    assert "write it as CLASS=WEIGHT" in capsys.readouterr().err


def test_what_is_refused() -> None:
    model = tiny()
    model.compile("sgd", OF_LOGITS)
    with pytest.raises(OnwardError, match="samples or of classes"):
        onward.from_keras(model, training=True, sample_weight=True, class_weight=CLASS_WEIGHT)
