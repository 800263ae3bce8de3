"""Loops that are recurrent layers become one node each; those that are nearly so stay loops."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from test_battery import check, expected, run  # noqa: E402

from onward.exporters import from_tensorflow  # noqa: E402

L = keras.layers
KINDS = {"LSTM": "LSTM", "GRU": "GRU", "SimpleRNN": "RNN"}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 7, 5)).astype(np.float32)
X[0, 2] = X[0, 5:] = X[1, :3] = 0
X[2] = 0
"""Where zeros are masked, they are so between, behind and before the others, and in one row there is nothing else."""
OPTIONS: dict[str, dict[str, Any]] = {
    "last": {},
    "all": {"return_sequences": True},
    "backwards": {"return_sequences": True, "return_state": True, "go_backwards": True},
    "without bias": {"use_bias": False},
    "relu": {"activation": "relu"},
}


def randomised(model: Any) -> Any:
    for weight in model.trainable_variables:
        weight.assign(np.random.default_rng(1).uniform(-0.7, 0.7, weight.shape))
    return model


def converted(function: Any, *data: Any, time: int | None = None) -> list[str]:
    """The ops of the ONNX model of a function, once it is seen to compute the same."""
    specs = [tf.TensorSpec([None, time, *x.shape[2:]] if x.ndim == 3 else [None, *x.shape[1:]]) for x in data]
    concrete = tf.function(function).get_concrete_function(*specs)
    model = from_tensorflow(concrete, check=False)
    for one, other in zip(run(model, data), expected(concrete, data), strict=True):
        check(one, other)
    return [node.op_type for node in model.ir.graph]


CASES = [(kind, options, masked, None) for kind in KINDS for options in OPTIONS for masked in (False, True)]
CASES += [(kind, "all", masked, 7) for kind in KINDS for masked in (False, True)]


@pytest.mark.parametrize(
    ("kind", "options", "masked", "time"),
    CASES,
    ids=[f"{k}-{o}-{'masked' if m else 'whole'}-{t or 'open'}" for k, o, m, t in CASES],
)
def test_a_layer_without_its_object(kind: str, options: str, masked: bool, time: int | None) -> None:
    x = keras.Input((time, 5))
    layer = getattr(L, kind)(4, **OPTIONS[options])
    model = randomised(keras.Model(x, layer(L.Masking(0.0)(x) if masked else x)))
    kinds = converted(lambda x: model(x, training=False), X, time=time)
    assert kinds.count(KINDS[kind]) == 1
    assert "Loop" not in kinds


@pytest.mark.parametrize("options", ["last", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_are_one_node(kind: str, options: str) -> None:
    x = keras.Input((None, 5))
    model = randomised(keras.Model(x, L.Bidirectional(getattr(L, kind)(4, **OPTIONS[options]))(x)))
    kinds = converted(lambda x: model(x, training=False), X)
    assert kinds.count(KINDS[kind]) == 1
    assert "Slice" not in kinds


@pytest.mark.parametrize("turned", [False, True])
def test_two_layers_in_one_direction_stay_two(turned: bool) -> None:
    x = keras.Input((None, 5))
    layers = [L.LSTM(4, return_sequences=turned)(x) for _ in range(2)]
    if turned:
        layers[1] = L.Lambda(lambda y: y[:, ::-1])(layers[1])
    model = randomised(keras.Model(x, L.Concatenate()(layers)))
    assert converted(lambda x: model(x, training=False), X).count("LSTM") == 2


def test_a_reset_before_the_product() -> None:
    x = keras.Input((None, 5))
    model = randomised(keras.Model(x, L.GRU(4, reset_after=False)(x)))
    assert converted(lambda x: model(x, training=False), X).count("GRU") == 1


def test_initial_states() -> None:
    x, h, c = keras.Input((None, 5)), keras.Input((4,)), keras.Input((4,))
    model = randomised(keras.Model([x, h, c], L.LSTM(4, return_state=True)(x, initial_state=[h, c])))
    states = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    assert converted(lambda x, h, c: model([x, h, c], training=False), X, *states).count("LSTM") == 1


def test_a_saved_model(tmp_path: Path) -> None:
    x = keras.Input((None, 5), name="x")
    model = randomised(keras.Model(x, L.Bidirectional(L.LSTM(4, return_sequences=True))(L.Masking(0.0)(x))))
    model.export(tmp_path / "saved", verbose=False)
    made = from_tensorflow(tmp_path / "saved")
    check(run(made, (X,))[0], np.asarray(model(X)))
    kinds = [node.op_type for node in made.ir.graph]
    assert kinds.count("LSTM") == 2
    assert "Loop" not in kinds


def looped(step: Any, x: Any, *states: Any, rounds: Any = None) -> Any:
    """What a cell gives at each step of a series, by a loop as one would write it."""
    series = tf.transpose(x, [1, 0, 2])
    count = tf.shape(series)[0] if rounds is None else rounds
    taken = tf.TensorArray(tf.float32, count).unstack(series) if rounds is None else None
    given = tf.TensorArray(tf.float32, count)

    def body(time: Any, given: Any, *states: Any) -> Any:
        now = taken.read(time) if taken is not None else tf.gather(series, time)
        output, *new = step(now, *states)
        return time + 1, given.write(time, output), *new

    _, given, *last = tf.while_loop(lambda time, *_: time < count, body, (0, given, *states))
    return tf.transpose(given.stack(), [1, 0, 2]), *last


WEIGHTS = RNG.uniform(-0.7, 0.7, (9, 16)).astype(np.float32)
BIAS = RNG.uniform(-0.7, 0.7, 16).astype(np.float32)


def zeros(x: Any) -> Any:
    return tf.zeros([tf.shape(x)[0], 4])


def old_lstm(x: Any, h: Any, c: Any) -> Any:
    """As TensorFlow 1 has it: one matrix, the gates in another order, and more to remember at the start."""
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), WEIGHTS) + BIAS, 4, axis=1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    h = tf.tanh(c) * tf.sigmoid(o)
    return h, h, c


def old_gru(x: Any, h: Any) -> Any:
    r, u = tf.split(tf.sigmoid(tf.matmul(tf.concat([x, h], 1), WEIGHTS[:, :8]) + BIAS[:8]), 2, axis=1)
    new = tf.tanh(tf.matmul(tf.concat([x, r * h], 1), WEIGHTS[:, 8:12]) + BIAS[8:12])
    h = u * h + (1 - u) * new
    return h, h


def test_cells_of_tensorflow_1() -> None:
    kinds = converted(lambda x: looped(old_lstm, x, zeros(x), zeros(x)), X)
    assert kinds.count("LSTM") == 1 and "Loop" not in kinds
    kinds = converted(lambda x: looped(old_gru, x, zeros(x)), X)
    assert kinds.count("GRU") == 1 and "Loop" not in kinds


def clipped(x: Any, h: Any, c: Any) -> Any:
    h, _, c = old_lstm(x, h, tf.clip_by_value(c, -0.1, 0.1))
    return h, h, c


def other_gate(x: Any, h: Any, c: Any) -> Any:
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), WEIGHTS) + BIAS, 4, axis=1)
    c = c * tf.tanh(f) + tf.sigmoid(i) * tf.tanh(j)
    h = tf.tanh(c) * tf.sigmoid(o)
    return h, h, c


def with_time(x: Any, h: Any, c: Any) -> Any:
    h, _, c = old_lstm(x, h, c)
    return h + 1, h, c


NEARLY: dict[str, Any] = {
    "clipped": lambda x: looped(clipped, x, zeros(x), zeros(x)),
    "another gate": lambda x: looped(other_gate, x, zeros(x), zeros(x)),
    "another output": lambda x: looped(with_time, x, zeros(x), zeros(x)),
    "fewer rounds": lambda x: looped(old_lstm, x, zeros(x), zeros(x), rounds=3),
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_a_layer_stays_a_loop(name: str) -> None:
    kinds = converted(NEARLY[name], X)
    assert "Loop" in kinds
    assert not set(kinds) & {"LSTM", "GRU", "RNN"}


def test_weights_keep_their_names() -> None:
    x = keras.Input((None, 5))
    model = keras.Model(x, L.GRU(4, bias_initializer="ones", name="recall")(x))
    graph = from_tensorflow(lambda x: model(x, training=False), [tf.TensorSpec([None, None, 5])]).ir.graph
    (node,) = [node for node in graph if node.op_type == "GRU"]
    names = [value.name for value in node.inputs[1:4] if value is not None]
    assert [str(name).rpartition("/")[2] for name in names] == ["kernel", "recurrent_kernel", "bias"]
