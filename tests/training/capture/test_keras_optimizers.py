"""An optimizer of Keras makes on ONNX Runtime the steps that it makes in Keras."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from keras_steps import check_steps, classes, floats, tiny  # noqa: E402

import onward  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402
from onward.training.capture.keras_optimizers import adds_up, taken  # noqa: E402
from onward.training.info.read import load  # noqa: E402
from onward.training.recipe.optimizers import SGD, Clipped  # noqa: E402
from onward.training.runtime.session import open_session  # noqa: E402
from onward.training.step_graphs import LEARNING_RATE, STEP, first_state, updates  # noqa: E402

OPT, S = keras.optimizers, keras.optimizers.schedules
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: OPT.SGD(0.1),
    "sgd-decay": lambda: OPT.SGD(0.1, weight_decay=0.1),
    "momentum": lambda: OPT.SGD(0.1, momentum=0.9),
    "nesterov": lambda: OPT.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda: OPT.Adam(0.1),
    "adam-epsilon": lambda: OPT.Adam(0.1, epsilon=0.1),
    "amsgrad": lambda: OPT.Adam(0.1, amsgrad=True),
    "adamw": lambda: OPT.AdamW(0.1, weight_decay=0.1),
    "rmsprop": lambda: OPT.RMSprop(0.1, momentum=0.5, centered=True),
    "adagrad": lambda: OPT.Adagrad(0.1),
    "adadelta": lambda: OPT.Adadelta(0.1),
    "adamax": lambda: OPT.Adamax(0.1),
    "nadam": lambda: OPT.Nadam(0.1),
    "ftrl": lambda: OPT.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01),
    "lion": lambda: OPT.Lion(0.1),
    "lamb": lambda: OPT.Lamb(0.1),
    "clipnorm": lambda: OPT.Adam(0.1, clipnorm=0.1),
    "clipvalue": lambda: OPT.SGD(0.1, clipvalue=0.01),
    "ema": lambda: OPT.Adam(0.1, use_ema=True),
    "exponential": lambda: OPT.Adam(S.ExponentialDecay(0.1, 2, 0.5)),
    "cosine": lambda: OPT.SGD(S.CosineDecay(0.1, 4, warmup_target=0.3, warmup_steps=2), momentum=0.5),
    "restarts": lambda: OPT.SGD(S.CosineDecayRestarts(0.1, 2)),
    "pieces": lambda: OPT.AdamW(S.PiecewiseConstantDecay([2, 4], [0.1, 0.05, 0.01])),
    "polynomial": lambda: OPT.SGD(S.PolynomialDecay(0.1, 4)),
    "inverse": lambda: OPT.SGD(S.InverseTimeDecay(0.1, 2, 0.5)),
}
START = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
GRADIENTS = np.random.default_rng(0).standard_normal((5, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps(name: str) -> None:
    """Of a matrix: what is traced, of a vector, holds for any shape."""
    variable = keras.Variable(START, name="weight")
    theirs = OPTIMIZERS[name]()
    how = taken(theirs, [variable]).optimizer
    graph, _ = updates({"w": START}, how)
    session = open_session(graph, 1)
    w, state = START, first_state("w", START, how)
    wanted = {value.name for value in session.get_inputs()}
    theirs.build([variable])
    for number, g in enumerate(GRADIENTS, 1):
        rate, step = np.asarray(how.lr, np.float32), np.asarray(number, np.int64)
        given = {"w": w, "w.grad": g, LEARNING_RATE: rate, STEP: step, **state}
        names = [value.name for value in session.get_outputs()]
        after = dict(zip(names, session.run(None, {k: v for k, v in given.items() if k in wanted}), strict=True))
        w, state = after["w.next"], {key: after[f"{key}.next"] for key in state}
        theirs.apply([keras.ops.convert_to_tensor(g)], [variable])
        np.testing.assert_allclose(w, np.asarray(variable), rtol=2e-6, atol=1e-6)
    if name == "ema":
        np.testing.assert_allclose(state["w.average"], np.asarray(theirs.variables[2]), rtol=1e-5)


def test_what_goes_element_by_element() -> None:
    """Only that can be computed chunk by chunk."""
    variable = keras.Variable(START)
    whole = {name for name, make in OPTIMIZERS.items() if not taken(make(), [variable]).optimizer.by_element}
    assert whole == {"lamb", "clipnorm"}


def test_plain_descent_is_said_in_words() -> None:
    variable = keras.Variable(START)
    assert taken(OPT.SGD(0.5, weight_decay=0.25), [variable]).optimizer == SGD(0.5, weight_decay=0.25)
    assert taken(OPT.SGD(0.5, clipvalue=2.0), [variable]).optimizer == Clipped(SGD(0.5), 2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OPT.SGD(0.1, global_clipnorm=1e-3),
        lambda: OPT.Adam(0.1, gradient_accumulation_steps=2),
        lambda: OPT.Nadam(0.1),
    ],
    ids=["global-norm", "accumulated", "shared-state"],
)
def test_all_variables_together(make: Any) -> None:
    model = tiny()
    model.compile(make(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    check_steps(model, [floats(5)], [classes()])


def test_some_variables_do_not_decay() -> None:
    model = tiny()
    optimizer = OPT.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    trainer = check_steps(model, [floats(5)], [classes()])
    assert {name.rpartition("/")[2]: rule.decay for name, rule in trainer.trainable.rules.items()} == {
        "kernel": 0.5,
        "bias": 0.0,
    }


def test_states_begin_where_keras_has_them(tmp_path: Any) -> None:
    """Not all from zero; so it is in memory, and when a file's initialization runs."""
    model = tiny()
    model.compile(OPT.Adagrad(0.1, initial_accumulator_value=0.25), "mse")
    made = onward.from_keras(model, training=True)
    made.save(tmp_path / "a.onnx")
    for found in (made, load(tmp_path / "a.onnx"), load(tmp_path / "a.onnx", initialize=True)):
        assert {float(n) for array in found.state.values() for n in array.reshape(-1)} == {0.25}


def test_a_step_that_is_not_made_yet() -> None:
    model = tiny()
    model.compile(OPT.Adam(0.1, gradient_accumulation_steps=2), "mse")
    model.train_on_batch(floats(5)[0], floats(3)[0])
    with pytest.raises(UnsupportedError, match="1 batches wait"):
        onward.from_keras(model, training=True)


def test_who_adds_up_rows_first() -> None:
    assert adds_up(OPT.SGD(0.1, momentum=0.9)) and adds_up(OPT.Lion(0.1))
    assert not any(
        adds_up(o) for o in (OPT.Adam(0.1), OPT.RMSprop(0.1), OPT.SGD(0.1, clipvalue=0.1), OPT.SGD(global_clipnorm=1.0))
    )
