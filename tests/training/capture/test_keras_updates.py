"""A whole step of a Keras optimizer is that of `fit`: rows of embeddings, constraints, states of other shapes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from keras_steps import BATCH, CLASSES, DRAWS, STEPS, batches, check_steps, classes, floats, keras_losses  # noqa: E402

import onward  # noqa: E402
from onward.errors import OnwardError, UnsupportedError  # noqa: E402
from onward.training.info.read import load  # noqa: E402
from onward.training.recipe.by_shape import Muon  # noqa: E402
from onward.training.runtime.session import open_session  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402
from onward.training.step_graphs import LEARNING_RATE, STEP, updates  # noqa: E402
from onward.training.trainable import Trainable  # noqa: E402

L, OPT, S = keras.layers, keras.optimizers, keras.optimizers.schedules
OF_LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
LONG = 10


@pytest.fixture(autouse=True)
def start() -> None:
    keras.utils.set_random_seed(1)


def words(*shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Few of many, so that most rows repeat in a batch and some are never there."""
    return DRAWS.integers(0, 5, (STEPS, BATCH, *shape)).astype(np.int32)


def embedded(optimizer: Any, **options: Any) -> Any:
    layers = [keras.Input((6,), dtype="int32"), L.Embedding(20, 4, **options), L.Flatten(), L.Dense(CLASSES)]
    model = keras.Sequential(layers)
    model.compile(optimizer, OF_LOGITS)
    return model


ROWS: dict[str, Any] = {
    "adam": lambda: OPT.Adam(0.1),
    "adamw": lambda: OPT.AdamW(S.ExponentialDecay(0.1, 2, 0.5), weight_decay=0.1, use_ema=True),
    "rmsprop": lambda: OPT.RMSprop(0.1, momentum=0.5, centered=True),
    "nadam": lambda: OPT.Nadam(0.1),
    "clipnorm": lambda: OPT.Adam(0.1, clipnorm=0.1),
    "global-norm": lambda: OPT.SGD(0.1, momentum=0.5, global_clipnorm=0.1),
    "accumulated": lambda: OPT.Adam(0.1, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_embeddings(name: str) -> None:
    """Keras squares and clips the gradient of each row that a batch looks up by itself, and adds up then."""
    check_steps(embedded(ROWS[name]()), [words(6)], [classes()])


def test_rows_that_are_added_up_first_are_another_training() -> None:
    """The test above would see it."""
    model, x, y = embedded(OPT.Adam(0.1)), words(6), classes()
    trainable = onward.from_keras(model, training=True, dense_gradients=True)
    trainer = Trainer(trainable, kernels=False)
    ours = [trainer.step(batch) for batch in batches(trainable, [x], [y])]
    assert not np.allclose(ours, keras_losses(model, [x], [y]), rtol=1e-3)


def test_a_table_that_is_looked_up_twice() -> None:
    first, second, table = keras.Input((3,), dtype="int32"), keras.Input((2,), dtype="int32"), L.Embedding(9, 4)
    joined = L.Flatten()(L.Concatenate(axis=1)([table(first), table(second)]))
    model = keras.Model([first, second], L.Dense(CLASSES)(joined))
    model.compile(OPT.Adam(0.1), OF_LOGITS)
    check_steps(model, [words(3), words(2)], [classes()])


def test_long_curves_through_a_file(tmp_path: Path) -> None:
    """State and steps included: the first half is made before the file is written."""
    model, x, y = embedded(OPT.Adam(0.1), embeddings_constraint=keras.constraints.MaxNorm(0.3)), words(6), classes()
    keras_losses(model, [x], [y])
    onward.from_keras(model, training=True).save(tmp_path / "a.onnx")
    trainable = load(tmp_path / "a.onnx")
    assert trainable.step == STEPS and len(trainable.rows) == 1 and len(trainable.parameters) == 3
    trainer = Trainer(trainable)
    rounds = -(-LONG // STEPS)
    ours = [trainer.step(batch) for _ in range(rounds) for batch in batches(trainable, [x], [y])]
    theirs = [loss for _ in range(rounds) for loss in keras_losses(model, [x], [y])]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    trainer.continued().save(tmp_path / "b.onnx")
    again = load(tmp_path / "b.onnx")
    assert again.step == trainer.steps
    for name, array in trainer.state.items():
        np.testing.assert_array_equal(again.state[name], array)


C = keras.constraints
CONSTRAINTS: dict[str, Any] = {
    "max-norm": lambda: C.MaxNorm(0.5),
    "unit-norm": C.UnitNorm,
    "min-max-norm": lambda: C.MinMaxNorm(0.3, 0.6, rate=0.7),
    "own": lambda: lambda w: keras.ops.clip(w, -0.2, 0.2),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name: str) -> None:
    bound = CONSTRAINTS[name]
    layers = [L.Dense(8, activation="tanh", kernel_constraint=bound(), bias_constraint="non_neg"), L.Dense(CLASSES)]
    model = keras.Sequential([keras.Input((5,)), *layers])
    model.compile(OPT.Adam(0.1), OF_LOGITS)
    check_steps(model, [floats(5)], [classes()])


def test_constraints_of_filters() -> None:
    """Axes are those of Keras, though filters are stored in another order."""
    axes = C.MaxNorm(0.2, axis=[0, 1, 2])
    filters = [L.Conv2D(4, 3, kernel_constraint=axes), L.DepthwiseConv2D(2, depthwise_constraint=C.MaxNorm(0.3))]
    model = keras.Sequential([keras.Input((6, 6, 3)), *filters, L.BatchNormalization(), L.Flatten(), L.Dense(CLASSES)])
    model.compile(OPT.SGD(0.5, momentum=0.5, nesterov=True, global_clipnorm=1.0), OF_LOGITS)
    check_steps(model, [floats(6, 6, 3)], [classes()])


BY_SHAPE: dict[str, Any] = {
    "adafactor": lambda: OPT.Adafactor(0.1),
    "muon": lambda: OPT.Muon(0.1, weight_decay=0.1),
    "muon-accumulated": lambda: OPT.Muon(0.1, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("name", BY_SHAPE)
def test_steps_that_depend_on_shapes(name: str) -> None:
    """Vectors, matrices of both sides, filters, and an embedding, which is one of these or not."""
    x = keras.Input((6,), dtype="int32")
    h = L.Conv1D(5, 3, activation="tanh")(L.Embedding(9, 4)(x))
    model = keras.Model(x, L.Dense(CLASSES)(L.Dense(12, activation="tanh")(L.Flatten()(h))))
    model.compile(BY_SHAPE[name](), OF_LOGITS)
    check_steps(model, [words(6)], [classes()], within=1e-5)


@pytest.mark.parametrize("shape", [(3, 5), (6, 2)], ids=["wide", "tall"])
def test_muon_by_name_is_that_of_keras(shape: tuple[int, int]) -> None:
    """Which computes in the precision of the weights, too; its momentum is another multiple of the same."""
    start = DRAWS.standard_normal(shape).astype(np.float32)
    variable = keras.Variable(start, name="kernel")
    theirs = OPT.Muon(0.1, weight_decay=0.1)
    graph, state = updates({"w": start}, Muon(0.1, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"))
    session = open_session(graph, 1)
    now = {"w": start, **state}
    theirs.build([variable])
    for number in range(1, 6):
        g = DRAWS.standard_normal(shape).astype(np.float32)
        given = {**now, "w.grad": g, LEARNING_RATE: np.float32(0.1), STEP: np.int64(number)}
        names = [value.name for value in session.get_outputs()]
        wanted = {value.name for value in session.get_inputs()}
        after = session.run(names, {name: np.asarray(array) for name, array in given.items() if name in wanted})
        now = {name.removesuffix(".next"): array for name, array in zip(names, after, strict=True)}
        theirs.apply([keras.ops.convert_to_tensor(g)], [variable])
        np.testing.assert_allclose(now["w"], np.asarray(variable), rtol=1e-5, atol=1e-6)


def test_a_table_that_is_multiplied_as_well() -> None:
    """TensorFlow adds all up then, and so does Onward."""
    x = keras.Input((6,), dtype="int32")
    table = L.Embedding(9, 4)
    h = L.GlobalAveragePooling1D()(table(x))
    logits = L.Lambda(lambda v: keras.ops.matmul(v, keras.ops.transpose(table.embeddings)))(h)
    model = keras.Model(x, logits)
    model.compile(OPT.Adam(0.1), OF_LOGITS)
    check_steps(model, [words(6)], [classes()])


def test_workers_want_sums() -> None:
    class Two:
        rank, size = 0, 2

        def __call__(self, array: Any) -> None:
            array *= 2

    with pytest.raises(UnsupportedError, match="dense_gradients=True"):
        Trainer(onward.from_keras(embedded(OPT.Adam(0.1)), training=True), reduce=Two())


def test_other_frameworks_are_told_to_add_up(tmp_path: Path) -> None:
    made: Trainable = onward.from_keras(embedded(OPT.Adam(0.1)), training=True)
    with pytest.raises(OnwardError, match="only ONNX Runtime trains"):
        onward.training.to_torch_package(made, tmp_path / "net")
