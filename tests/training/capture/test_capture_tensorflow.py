"""A step that TensorFlow makes with a GradientTape is made on ONNX Runtime: all that changes, changes alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import onnxruntime  # noqa: E402
from keras_steps import BATCH, CLASSES, DRAWS, STEPS, classes, floats  # noqa: E402

import onward  # noqa: E402
from onward.errors import OnwardError, UnsupportedError  # noqa: E402
from onward.training import from_tensorflow, load  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402

L = keras.layers
X = tf.TensorSpec([None, 5], name="x")
Y = tf.TensorSpec([None], tf.int64, name="y")


class Descent(tf.Module):  # type: ignore[misc]
    """A linear model, with a momentum and a count of steps that it keeps itself."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(DRAWS.standard_normal((5, CLASSES)).astype(np.float32), name="w")
        self.b = tf.Variable(np.zeros(CLASSES, np.float32), name="b")
        self.moved = tf.Variable(np.zeros((5, CLASSES), np.float32), name="moved", trainable=False)
        self.count = tf.Variable(0, dtype=tf.int64, name="count", trainable=False)

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b

    def step(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, self(x)))
        w, b = tape.gradient(loss, [self.w, self.b])
        self.count.assign_add(1)
        self.moved.assign(0.9 * self.moved + w)
        self.w.assign_sub(0.3 * self.moved / tf.cast(self.count, tf.float32))
        self.b.assign_sub(0.3 * b)
        return loss


def test_a_step_and_its_file(tmp_path: Path) -> None:
    net = Descent()
    made = from_tensorflow(tf.function(net.step), [X, Y], inference=tf.function(net.__call__), inference_signature=[X])
    made.save(tmp_path / "step.onnx")
    again = load(tmp_path / "step.onnx")
    x, y = floats(5), classes()
    assert again.labels == ["y"] and again.buffers.keys() == {"w", "b", "moved", "count"}
    curves = []
    for trainable in (made, again):
        trainer = Trainer(trainable, kernels=False)
        curves.append([trainer.step({"x": x[i], "y": y[i]}) for i in range(STEPS)])
    assert curves[0] == curves[1]
    np.testing.assert_allclose(curves[0], [float(net.step(x[i], y[i])) for i in range(STEPS)], rtol=1e-6)
    assert trainer.buffers["count"] == STEPS
    trainer.save(tmp_path / "tuned.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "tuned.onnx")
    np.testing.assert_allclose(session.run(None, {"x": x[0]})[0], net(x[0]), rtol=1e-5, atol=1e-6)
    assert not {"moved", "count"} & {
        weight.name for weight in onward.load(tmp_path / "tuned.onnx").to_proto().graph.initializer
    }


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    net = Descent()
    x, y = floats(5), classes()
    first = Trainer(from_tensorflow(net.step, [X, Y]), kernels=False)
    whole = [first.step({"x": x[i], "y": y[i]}) for i in range(STEPS)]
    half = Trainer(from_tensorflow(net.step, [X, Y]), kernels=False)
    for i in range(2):
        half.step({"x": x[i], "y": y[i]})
    half.continued().save(tmp_path / "later.onnx")
    rest = Trainer(load(tmp_path / "later.onnx"), kernels=False)
    assert [rest.step({"x": x[i], "y": y[i]}) for i in range(2, STEPS)] == whole[2:]


def convolutional() -> Any:
    layers: list[Any] = [keras.Input((8, 8, 3)), L.Conv2D(4, 3, padding="same", use_bias=False)]
    layers += [L.BatchNormalization(), L.ReLU()]
    return keras.Sequential([*layers, L.MaxPooling2D(), L.Conv2D(4, 3), L.Flatten(), L.Dense(CLASSES)])


def words() -> Any:
    layers = [keras.Input((6,), dtype="int32"), L.Embedding(20, 4), L.LayerNormalization(), L.Flatten()]
    return keras.Sequential([*layers, L.Dense(CLASSES)])


@pytest.mark.parametrize(
    ("make", "optimizer", "shape"),
    [(convolutional, "adamw", (8, 8, 3)), (words, "adam", (6,)), (words, "adafactor", (6,))],
    ids=["convolutional", "rows", "adafactor"],
)
def test_steps_of_keras(make: Any, optimizer: str, shape: tuple[int, ...]) -> None:
    """With any optimizer, and as Keras treats the gradients of rows."""
    keras.utils.set_random_seed(1)
    model, how = make(), keras.optimizers.get(optimizer)
    how.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        variables = [variable.value for variable in model.trainable_variables]
        how.apply(tape.gradient(loss, variables), model.trainable_variables)
        return {"loss": loss, "and": y}

    is_words = make is words
    x = DRAWS.integers(0, 9, (STEPS, BATCH, *shape)).astype(np.int32) if is_words else floats(*shape)
    y = classes()
    spec = tf.TensorSpec([None, *shape], tf.int32 if is_words else tf.float32, name="x")
    function = tf.function(step, autograph=False)
    trainer = Trainer(from_tensorflow(function, [spec, Y]), kernels=False)
    ours = [trainer.step({"x": x[i], "y": y[i]}) for i in range(STEPS)]
    theirs = [float(function(x[i], y[i])["loss"]) for i in range(STEPS)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for variable in model.variables:
        here = trainer.buffers[variable.value.name.split(":")[0]]
        np.testing.assert_allclose(np.sort(here, None), np.sort(np.asarray(variable), None), rtol=1e-4, atol=1e-5)


RATES = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3, "rho": 0.9, "momentum": 0.5}
POWERS = {"beta1_power": 0.81, "beta2_power": 0.98}
OPS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "ResourceApplyMomentum": (["accum"], {"use_nesterov": True}),
    "ResourceApplyKerasMomentum": (["accum"], {"use_nesterov": True}),
    "ResourceApplyAdam": (["m", "v"], {}),
    "ResourceApplyAdaMax": (["m", "v"], {}),
    "ResourceApplyAdagrad": (["accum"], {}),
    "ResourceApplyAdagradV2": (["accum"], {}),
    "ResourceApplyRMSProp": (["ms", "mom"], {}),
    "ResourceApplyCenteredRMSProp": (["mg", "ms", "mom"], {}),
    "ResourceApplyAdadelta": (["accum", "accum_update"], {}),
}


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
@pytest.mark.parametrize("name", OPS)
def test_ops_of_optimizers(name: str, nested: bool) -> None:
    """The ops that earlier versions of TensorFlow make steps with, in a function or in one that it calls."""
    slots, options = OPS[name]
    raw = getattr(tf.raw_ops, name)
    arguments = set(raw.__code__.co_varnames) if hasattr(raw, "__code__") else set()
    arguments |= set(raw.__signature__.parameters) if hasattr(raw, "__signature__") else set()
    variables = {slot: tf.Variable(np.linspace(0.5, 1, 6, dtype=np.float32), name=slot) for slot in ["var", *slots]}

    def change(g: Any) -> Any:
        handles = {slot: variable.handle for slot, variable in variables.items()}
        raw(**handles, grad=g, **{k: n for k, n in {**RATES, **POWERS}.items() if k in arguments}, **options)
        return tf.reduce_sum(g)

    inner = tf.function(change) if nested else change
    step = tf.function(lambda g: inner(g))
    g = DRAWS.standard_normal((3, 6)).astype(np.float32)
    trainer = Trainer(from_tensorflow(step, [tf.TensorSpec([6], name="g")]), kernels=False)
    for row in g:
        trainer.step({"g": row})
        step(row)
    ours, theirs = (
        [list(v) for v in values] for values in (trainer.buffers.values(), map(np.asarray, variables.values()))
    )
    np.testing.assert_allclose(sorted(ours), sorted(theirs), rtol=1e-5, atol=1e-6)


def test_rows_that_are_changed() -> None:
    table = tf.Variable(np.zeros((4, 2), np.float32), name="table")

    def step(rows: Any, by: Any) -> Any:
        table.scatter_add(tf.IndexedSlices(by, rows))
        table.scatter_sub(tf.IndexedSlices(by * 0.25, rows))
        table.scatter_update(tf.IndexedSlices(by[:1], [3]))
        return tf.reduce_sum(by)

    specs = [tf.TensorSpec([3], tf.int64, name="rows"), tf.TensorSpec([3, 2], name="by")]
    trainer = Trainer(from_tensorflow(step, specs), kernels=False)
    rows, by = np.array([0, 2, 0]), np.arange(6, dtype=np.float32).reshape(3, 2)
    trainer.step({"rows": rows, "by": by})
    step(tf.constant(rows), tf.constant(by))
    np.testing.assert_allclose(trainer.buffers["table"], table.numpy())


def test_what_is_refused() -> None:
    net = Descent()
    with pytest.raises(UnsupportedError, match=r"AssignSubVariableOp.*onward\.training\.from_tensorflow"):
        onward.from_tensorflow(net.step, [X, Y])
    with pytest.raises(OnwardError, match="changes no variable"):
        from_tensorflow(net.__call__, [X])

    def branching(x: Any, y: Any) -> Any:
        tf.cond(tf.reduce_sum(x) > 0, lambda: net.b.assign_add(net.b), lambda: net.b.assign(net.b))
        return tf.reduce_sum(x)

    with pytest.raises(UnsupportedError, match="'b' is changed inside a branch"):
        from_tensorflow(branching, [X, Y])

    def several(x: Any, y: Any) -> Any:
        net.b.assign_add(net.b)
        return x

    with pytest.raises(UnsupportedError, match="not a single number"):
        from_tensorflow(several, [X, Y])


LOOPS: dict[str, Any] = {
    "LSTM": lambda: L.LSTM(3, use_cudnn=False),
    "both directions": lambda: L.Bidirectional(L.LSTM(3, use_cudnn=False, return_sequences=True)),
    "GRU": lambda: L.GRU(3, use_cudnn=False),
    "GRU, reset before": lambda: L.GRU(3, use_cudnn=False, reset_after=False, return_sequences=True),
    "SimpleRNN": lambda: L.SimpleRNN(3),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_loop_over_time_and_its_gradient(kind: str) -> None:
    """Layers of Keras as a `While` of TensorFlow, whose gradient is another one that reads lists backwards."""
    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.Input((5, 4)), LOOPS[kind](), L.Flatten(), L.Dense(3)])
    variables = [variable.value for variable in net.trainable_variables]

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, net(x, training=True))
            loss = tf.reduce_mean(losses)
        for variable, slope in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.5 * slope)
        return loss

    specs = [tf.TensorSpec([None, 5, 4], tf.float32, name="x"), tf.TensorSpec([None], tf.int64, name="labels")]
    function = tf.function(step, autograph=False).get_concrete_function(*specs)
    assert {"While", "StatelessWhile"} & {op.type for op in function.graph.get_operations()}
    trainer = Trainer(from_tensorflow(function), kernels=False)
    draw = np.random.default_rng(0)
    for size in (6, 4, 6, 1, 6, 6, 3, 6, 6, 6):
        x, y = draw.standard_normal((size, 5, 4)).astype(np.float32), draw.integers(0, 3, size)
        assert trainer.step({"x": x, "labels": y}) == pytest.approx(float(function(x, y)), rel=1e-5)
    for variable in variables:
        np.testing.assert_allclose(trainer.buffers[variable.name.split(":")[0]], variable, rtol=1e-4, atol=1e-6)
