"""A compiled Keras model trains on ONNX Runtime as it does in Keras: the same losses, the same weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import onnxruntime  # noqa: E402
from keras_steps import BATCH, CLASSES, DRAWS, STEPS, batches, check_steps, classes, floats, keras_losses, tiny  # noqa: E402

import onward  # noqa: E402
from onward.cli import main  # noqa: E402
from onward.errors import OnwardError, UnsupportedError  # noqa: E402
from onward.training import load, to_torch_package  # noqa: E402
from onward.training.autodiff.stops import stops  # noqa: E402
from onward.training.recipe.losses import CrossEntropy, Huber, MeanSquaredError, Term  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402

L = keras.layers
Input, Sequential = keras.Input, keras.Sequential
OF_LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.fixture(autouse=True)
def start() -> None:
    keras.utils.set_random_seed(1)


def convolutional() -> Any:
    return Sequential(
        [
            Input((8, 8, 3)),
            L.Conv2D(4, 3, padding="same", kernel_regularizer="l2"),
            L.BatchNormalization(momentum=0.9),
            L.ReLU(),
            L.MaxPooling2D(),
            L.SeparableConv2D(5, 3),
            L.Flatten(),
            L.Dense(CLASSES),
        ]
    )


def frozen() -> Any:
    """One batch normalisation is of the batch, the other has its running statistics, and a dense layer stays."""
    model = Sequential(
        [
            Input((8, 8, 3)),
            L.Conv2DTranspose(4, 3, strides=2),
            L.BatchNormalization(),
            L.DepthwiseConv2D(3),
            L.BatchNormalization(axis=-1, scale=False, center=False),
            L.GlobalAveragePooling2D(),
            L.Dense(4, trainable=False),
            L.Dense(CLASSES),
        ]
    )
    model.layers[1].trainable = False
    return model


def recurrent(kind: str) -> Callable[[], Any]:
    def made() -> Any:
        layer = getattr(L, kind)
        return Sequential([Input((5, 4)), layer(3, return_sequences=True), L.Bidirectional(layer(2)), L.Dense(CLASSES)])

    return made


NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "dense": (tiny, (5,)),
    "convolutional": (convolutional, (8, 8, 3)),
    "frozen": (frozen, (8, 8, 3)),
    **{kind: (recurrent(kind), (5, 4)) for kind in ("LSTM", "GRU", "SimpleRNN")},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    make, shape = NETWORKS[name]
    model = make()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.5), OF_LOGITS)
    check_steps(model, [floats(*shape)], [classes()])


def test_only_what_is_frozen_stays() -> None:
    model = frozen()
    model.compile("sgd", OF_LOGITS)
    trainer = Trainer(onward.from_keras(model, training=True), kernels=False)
    first, second, *_ = (layer for layer in model.layers if isinstance(layer, L.BatchNormalization))
    assert trainer.buffers.keys() == {v.value.name.split(":")[0] for v in second.non_trainable_variables}
    assert not any(first.name + "/" in name for name in trainer.parameters)


def attentive() -> Any:
    tokens = Input((6,), dtype="int32")
    h = L.Embedding(20, 8)(tokens)
    h = L.LayerNormalization()(h + L.MultiHeadAttention(2, 4)(h, h))
    h = L.LayerNormalization()(h + L.Dense(8)(L.Dense(16, activation="gelu")(h)))
    return keras.Model(tokens, L.Dense(CLASSES)(L.GlobalAveragePooling1D()(h)))


def test_a_transformer() -> None:
    model = attentive()
    model.compile(keras.optimizers.AdamW(1e-2), OF_LOGITS)
    tokens = DRAWS.integers(0, 20, (STEPS, BATCH, 6)).astype(np.int32)
    check_steps(model, [tokens], [classes()], dense=True)


def test_masked_words() -> None:
    model = Sequential([Input((6,), dtype="int32"), L.Embedding(20, 4, mask_zero=True), L.LSTM(3), L.Dense(CLASSES)])
    model.compile("sgd", OF_LOGITS)
    tokens = DRAWS.integers(-10, 20, (STEPS, BATCH, 6)).clip(0).astype(np.int32)
    check_steps(model, [tokens], [classes()])


def test_several_outputs_with_weights_and_penalties() -> None:
    x = Input((5,))
    h = L.Dense(6, activation="tanh", activity_regularizer="l2", kernel_regularizer=keras.regularizers.L1L2())(x)
    outputs = [L.Dense(CLASSES, name="class")(h), L.Dense(1, name="size", bias_regularizer="l1")(h)]
    model = keras.Model(x, outputs)
    model.compile("rmsprop", loss={"class": OF_LOGITS, "size": "mse"}, loss_weights={"class": 0.3, "size": 2.0})
    trainable = onward.from_keras(model, training=True)
    assert trainable.labels == ["labels_class", "labels_size"] and trainable.loss is None
    check_steps(model, [floats(5)], [classes(), floats(1)])


K = keras.losses
LOSSES: dict[str, tuple[Any, str | None, str]] = {
    "mse": (K.MeanSquaredError(), None, "positive"),
    "mse-sum": (K.MeanSquaredError(reduction="sum"), None, "positive"),
    "mape": ("mape", None, "positive"),
    "msle": ("msle", "relu", "positive"),
    "binary": ("binary_crossentropy", "sigmoid", "binary"),
    "binary-logits": (K.BinaryCrossentropy(from_logits=True, label_smoothing=0.1), None, "binary"),
    "categorical": ("categorical_crossentropy", "softmax", "one-hot"),
    "categorical-logits": (K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), None, "one-hot"),
    "sparse": ("sparse_categorical_crossentropy", "softmax", "classes"),
    "sparse-ignored": (K.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1), None, "classes"),
    "huber": (K.Huber(0.5), None, "positive"),
    "log-cosh": (K.LogCosh(), None, "positive"),
    "kl": (K.KLDivergence(), "softmax", "probabilities"),
    "poisson": (K.Poisson(), "softplus", "positive"),
    "squared-hinge": (K.SquaredHinge(), None, "signs"),
    "categorical-hinge": (K.CategoricalHinge(), None, "one-hot"),
    "cosine": (K.CosineSimilarity(), None, "positive"),
    "binary-focal": (K.BinaryFocalCrossentropy(apply_class_balancing=True), "sigmoid", "binary"),
    "categorical-focal": (K.CategoricalFocalCrossentropy(), "softmax", "one-hot"),
    "dice": (K.Dice(), "sigmoid", "binary"),
    "tversky": (K.Tversky(), "sigmoid", "binary"),
    "circle": (K.Circle(gamma=2.0), None, "classes"),
    "generalized": (K.CategoricalGeneralizedCrossEntropy(), "softmax", "classes"),
    "own": (lambda y, p: keras.ops.mean(keras.ops.abs(y - p) ** 1.5, -1), None, "positive"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    loss, activation, kind = LOSSES[name]
    positive = np.abs(floats(CLASSES)) + 0.1
    targets = {
        "positive": positive,
        "probabilities": positive / positive.sum(-1, keepdims=True),
        "binary": (positive > 0.7).astype(np.float32),
        "signs": np.sign(floats(CLASSES)),
        "classes": classes(),
        "one-hot": np.eye(CLASSES, dtype=np.float32)[classes()],
    }
    model = Sequential([Input((5,)), L.Dense(CLASSES, activation=activation)])
    model.compile(keras.optimizers.SGD(2e-3), loss)
    check_steps(model, [floats(5)], [targets[kind]])


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (OF_LOGITS, CrossEntropy()),
        ("mse", MeanSquaredError()),
        (K.Huber(0.5), Huber(0.5)),
        (K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), CrossEntropy(0.1, soft=True)),
        ("sparse_categorical_crossentropy", None),
        (K.MeanSquaredError(reduction="sum"), None),
    ],
    ids=["cross-entropy", "mse", "huber", "soft", "probabilities", "sum"],
)
def test_losses_in_words(loss: Any, said: Any) -> None:
    """Only what is the same formula is said in Onward's words, by which other frameworks go on."""
    model = tiny()
    model.compile("sgd", loss)
    trainable = onward.from_keras(model, training=True)
    output = trainable.original.ir.graph.outputs[0].name
    assert trainable.loss == (None if said is None else [Term(said, 1.0, output)])


def test_dropout_is_drawn_in_training_only() -> None:
    model = Sequential([Input((6, 5)), L.Dropout(0.5), L.SpatialDropout1D(0.3), L.Flatten(), L.Dense(CLASSES)])
    model.compile(keras.optimizers.SGD(0.0), OF_LOGITS)
    trainable = onward.from_keras(model, training=True)
    trainer = Trainer(trainable, kernels=False)
    x, y = floats(6, 5)[0], classes()[0]
    data = {trainer.inputs[0]: x, "labels": y}
    assert len({trainer.step(data) for _ in range(4)}) == 4
    assert trainer.evaluate(data)["loss"] == pytest.approx(model.evaluate(x, y, verbose=0), rel=1e-5)
    assert not [node for node in trainable.original.ir.graph if node.op_type == "Dropout"]


def test_noise_is_drawn_and_cannot_be_left_out() -> None:
    model = Sequential([Input((5,)), L.GaussianNoise(0.5), L.Dense(CLASSES)])
    model.compile(keras.optimizers.SGD(0.0), OF_LOGITS)
    trainer = Trainer(onward.from_keras(model, training=True), kernels=False)
    data = {trainer.inputs[0]: floats(5)[0], "labels": classes()[0]}
    assert len({trainer.step(data) for _ in range(4)}) == 4
    with pytest.raises(UnsupportedError, match="RandomNormalLike"):
        trainer.evaluate(data)


def test_evaluation_uses_running_statistics() -> None:
    model = convolutional()
    model.compile("sgd", OF_LOGITS)
    x, y = floats(8, 8, 3), classes()
    trainer = check_steps(model, [x], [y])
    found = trainer.evaluate({trainer.inputs[0]: x[0], "labels": y[0]})
    assert found["loss"] == pytest.approx(model.evaluate(x[0], y[0], verbose=0), rel=1e-5)
    assert found["accuracy"] == (model.predict(x[0], verbose=0).argmax(-1) == y[0]).mean()


def test_a_file_goes_on_where_keras_stopped(tmp_path: Path) -> None:
    """From .keras, state included, through an ONNX file, to a model for inference."""
    model = convolutional()
    model.compile("adam", OF_LOGITS)
    x, y = floats(8, 8, 3), classes()
    for index in range(3):
        model.train_on_batch(x[index], y[index])
    model.save(tmp_path / "net.keras")
    onward.from_keras(tmp_path / "net.keras", training=True).save(tmp_path / "trainable.onnx")
    trainable = load(tmp_path / "trainable.onnx")
    assert trainable.step == 3
    trainer = Trainer(trainable, kernels=False)
    ours = [trainer.step(batch) for batch in batches(trainable, [x], [y])]
    np.testing.assert_allclose(ours, keras_losses(model, [x], [y]), rtol=1e-5)
    trainer.save(tmp_path / "tuned.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "tuned.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x[0]})
    np.testing.assert_allclose(found, model.predict(x[0], verbose=0), rtol=1e-4, atol=1e-5)


def test_training_goes_on_in_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    model = tiny()
    model.compile(keras.optimizers.SGD(0.1), OF_LOGITS)
    x, y = floats(5), classes()
    to_torch_package(onward.from_keras(model, training=True), tmp_path / "keras_in_torch")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    train = importlib.import_module("keras_in_torch.train")
    net = train.load()
    fed = [{next(iter(train.INPUTS)): torch.from_numpy(x[i]), "labels": torch.from_numpy(y[i])} for i in range(STEPS)]
    theirs = train.train(net, train.load_optimizer(net), fed)
    np.testing.assert_allclose(theirs, keras_losses(model, [x], [y]), rtol=1e-5)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = convolutional()
    model.compile("sgd", OF_LOGITS)
    model.save(tmp_path / "net.keras")
    out = tmp_path / "trainable.onnx"
    assert main(["train", "prepare", str(tmp_path / "net.keras"), "--out", str(out)]) == 0
    assert "are trained; labels: labels" in capsys.readouterr().out
    assert load(out).loss is None and len(load(out).buffers) == 2
    assert main(["train", "prepare", str(tmp_path / "net.keras"), "--lr", "1", "--out", str(out)]) == 2
    assert "--lr is for .onnx files" in capsys.readouterr().err


class OwnStep(keras.Model):  # type: ignore[misc]
    def train_step(self, data: Any) -> Any:
        return {}


def of(*layers: Any, **options: Any) -> Any:
    model = Sequential([Input((5,)), *layers, L.Dense(CLASSES)])
    model.compile(**{"optimizer": "sgd", "loss": OF_LOGITS, **options})
    return model


def own_step() -> Any:
    x = Input((5,))
    model = OwnStep(x, L.Dense(CLASSES)(x))
    model.compile("sgd", OF_LOGITS)
    return model


def twice() -> Any:
    x, layer = Input((5,)), L.BatchNormalization()
    model = keras.Model(x, L.Dense(CLASSES)(layer(layer(x))))
    model.compile("sgd", OF_LOGITS)
    return model


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "not-compiled": (tiny, "not compiled"),
    "own-step": (own_step, "train_step of its own"),
    "used-twice": (twice, "batch_normalization.*used twice"),
    "mixed": (lambda: of(L.Dense(4, dtype="mixed_float16")), "mixed precision"),
    "spectral": (lambda: of(L.SpectralNormalization(L.Dense(4))), "kernel.* changes while"),
    "schedule-free": (lambda: of(optimizer=keras.optimizers.ScheduleFreeAdamW()), "ScheduleFreeAdamW"),
    "guessed": (lambda: of(loss="crossentropy"), "labels="),
    "overwriting": (
        lambda: of(optimizer=keras.optimizers.Adam(use_ema=True, ema_overwrite_frequency=2)),
        "ema_overwrite_frequency",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    make, reason = REFUSED[name]
    with pytest.raises(OnwardError, match=reason):
        onward.from_keras(make(), training=True)


def test_options_of_training_without_training() -> None:
    with pytest.raises(OnwardError, match="training=True"):
        onward.from_keras(tiny(), dense_gradients=True)  # type: ignore[call-overload]


def test_gradients_stop_where_keras_says_so(tmp_path: Path) -> None:
    """In memory, and after a file; other frameworks go on by the graphs, which stop as well."""

    def loss(y: Any, predicted: Any) -> Any:
        return keras.ops.mean((keras.ops.stop_gradient(keras.ops.tanh(predicted)) + predicted - y) ** 2, -1)

    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    net.compile(keras.optimizers.SGD(0.3), loss)
    onward.from_keras(net, training=True).save(tmp_path / "net.onnx")
    made = load(tmp_path / "net.onnx")
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((8, 4), np.float32), draw.standard_normal((8, 3), np.float32)
    trainer = Trainer(made)
    found = [trainer.step(dict(zip(trainer.inputs, (x, y), strict=True))) for _ in range(4)]
    np.testing.assert_allclose(found, [net.train_on_batch(x, y) for _ in range(4)], rtol=1e-5)
    assert (to_torch_package(made, tmp_path / "net") / "step.py").exists()


def test_the_mean_of_a_variance_stops_nothing() -> None:
    net = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4), keras.layers.LayerNormalization()])
    net.compile("sgd", "mse")
    made = onward.from_keras(net, training=True)
    assert not any(map(stops, made.gradients.graph))


def test_a_gradient_of_the_users_own_is_refused() -> None:
    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def halved(x: Any) -> Any:
        return tf.identity(x), lambda upstream: 0.5 * upstream

    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation=halved), keras.layers.Dense(2, "silu")])
    net.compile("sgd", "mse")
    with pytest.raises(UnsupportedError, match="a gradient of its own"):
        onward.from_keras(net, training=True)
