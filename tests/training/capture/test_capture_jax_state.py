"""What changes without a gradient, such as running statistics and keys, changes on ONNX Runtime as in JAX.

No layer in front of batch normalisation has a bias: its gradient is zero but for rounding, and Adam goes by its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import equinox as eqx  # noqa: E402
import flax.linen as nn  # noqa: E402
import haiku as hk  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from flax import nnx  # noqa: E402

import onward  # noqa: E402
from onward.errors import OnwardError  # noqa: E402
from onward.training import load  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402

STEPS, BATCH, CLASSES = 12, 8, 3
X = jax.ShapeDtypeStruct(("b", 6, 6, 3), jnp.float32)
Y = jax.ShapeDtypeStruct(("b",), jnp.int32)


@dataclass
class Case:
    loss: Callable[..., Any]
    params: Any
    state: Any
    inference: Callable[..., Any]
    running: str
    """A name of what a step changes without a gradient."""
    batch: Any = "b"
    """The size of a batch, where it cannot be open."""


def entropy(logits: Any, y: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


class Net(nn.Module):
    """Three channels and filters of three, so that an axis out of place would still fit."""

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = nn.Conv(3, (3, 3), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.8)(x))
        x = nn.Dropout(0.3, deterministic=not train)(x.reshape(x.shape[0], -1))
        return nn.Dense(CLASSES)(x)


def linen() -> Case:
    net = Net()
    variables = net.init(jax.random.key(0), jnp.zeros((2, 6, 6, 3)), False)

    def loss(params: Any, state: Any, x: Any, y: Any) -> Any:
        key, own = jax.random.split(state["key"])
        held = {"params": params, "batch_stats": state["stats"]}
        logits, after = net.apply(held, x, True, mutable=["batch_stats"], rngs={"dropout": own})
        return entropy(logits, y), {"stats": after["batch_stats"], "key": key}

    def inference(params: Any, state: Any, x: Any) -> Any:
        return net.apply({"params": params, "batch_stats": state["stats"]}, x, False)

    start = {"stats": variables["batch_stats"], "key": jax.random.key(1)}
    return Case(loss, variables["params"], start, inference, "stats.BatchNorm_0.mean")


def haiku() -> Case:
    def network(x: Any, train: bool) -> Any:
        x = hk.BatchNorm(True, True, 0.8)(hk.Conv2D(3, 3, with_bias=False)(x), train)
        return hk.Linear(CLASSES)(jax.nn.relu(x).mean((1, 2)))

    net = hk.without_apply_rng(hk.transform_with_state(network))
    params, state = net.init(jax.random.key(0), jnp.zeros((2, 6, 6, 3)), True)

    def loss(params: Any, state: Any, x: Any, y: Any) -> Any:
        logits, after = net.apply(params, state, x, True)
        return entropy(logits, y), after

    return Case(loss, params, state, lambda p, s, x: net.apply(p, s, x, False)[0], "batch_norm/~/mean_ema.average")


def equinox() -> Case:
    class Part(eqx.Module):
        linear: eqx.nn.Linear
        norm: eqx.nn.BatchNorm
        head: eqx.nn.Linear

        def __init__(self) -> None:
            self.linear = eqx.nn.Linear(108, 5, use_bias=False, key=jax.random.key(0))
            self.norm = eqx.nn.BatchNorm(5, axis_name="batch", momentum=0.8, mode="batch")
            self.head = eqx.nn.Linear(5, CLASSES, key=jax.random.key(1))

        def __call__(self, x: Any, state: Any) -> Any:
            x, state = self.norm(self.linear(x.reshape(-1)), state)
            return self.head(jax.nn.relu(x)), state

    model, start = eqx.nn.make_with_state(Part)()
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def run(model: Any, state: Any, x: Any) -> Any:
        return jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)

    def loss(params: Any, state: Any, x: Any, y: Any) -> Any:
        logits, after = run(eqx.combine(params, static), state, x)
        return entropy(logits, y), after

    def inference(params: Any, state: Any, x: Any) -> Any:
        return run(eqx.nn.inference_mode(eqx.combine(params, static)), state, x)[0]

    return Case(loss, params, start, inference, "model_state.1.0", BATCH)


def of_nnx() -> Case:
    class Part(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.value = nnx.Linear(108, 5, use_bias=False, rngs=rngs)
            self.norm = nnx.BatchNorm(5, momentum=0.8, rngs=rngs)
            self.dropout = nnx.Dropout(0.3, rngs=rngs)
            self.head = nnx.Linear(5, CLASSES, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.head(self.dropout(nnx.relu(self.norm(self.value(x.reshape(x.shape[0], -1))))))

    graph, params, rest = nnx.split(Part(nnx.Rngs(0)), nnx.Param, ...)

    def loss(params: Any, state: Any, x: Any, y: Any) -> Any:
        model = nnx.merge(graph, params, state, copy=True)
        value = entropy(model(x), y)
        return value, nnx.split(model, nnx.Param, ...)[2]

    def inference(params: Any, state: Any, x: Any) -> Any:
        model = nnx.merge(graph, params, state, copy=True)
        model.eval()
        return model(x)

    return Case(loss, params, rest, inference, "norm.mean")


CASES = {"linen": linen, "haiku": haiku, "equinox": equinox, "nnx": of_nnx}


def data() -> list[tuple[Any, Any]]:
    draw = np.random.default_rng(0)
    return [
        (draw.standard_normal((BATCH, 6, 6, 3), np.float32) + 1, draw.integers(0, CLASSES, BATCH).astype(np.int32))
        for _ in range(STEPS)
    ]


def steps(case: Case, optimizer: Any) -> Any:
    @jax.jit
    def step(params: Any, state: Any, model_state: Any, *batch: Any) -> Any:
        (value, after), gradients = jax.value_and_grad(case.loss, has_aux=True)(params, model_state, *batch)
        moves, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, moves), state, after, value

    params, model_state, state, losses = case.params, case.state, optimizer.init(case.params), []
    for batch in data():
        params, state, model_state, value = step(params, state, model_state, *batch)
        losses.append(float(value))
    return params, model_state, losses


@pytest.mark.parametrize("name", CASES)
def test_state_changes_in_each_step(name: str, tmp_path: Path) -> None:
    case, optimizer = CASES[name](), optax.adam(1e-2)
    specs = [jax.ShapeDtypeStruct((case.batch, *spec.shape[1:]), spec.dtype) for spec in (X, Y)]
    how = {"params": case.params, "model_state": case.state, "optimizer": optimizer}
    made = onward.from_jax(case.loss, *specs, **how, inference=case.inference)
    made.save(tmp_path / "step.onnx")
    trainer = Trainer(load(tmp_path / "step.onnx"), kernels=False)
    before = {key: array.copy() for key, array in trainer.buffers.items()}
    params, state, wanted = steps(case, optimizer)
    np.testing.assert_allclose([trainer.step({"x": x, "y": y}) for x, y in data()], wanted, rtol=1e-4)
    assert len(set(wanted)) == STEPS
    assert not np.allclose(before[case.running], trainer.buffers[case.running])
    trainer.save(tmp_path / "tuned.onnx")
    x = data()[0][0]
    found = onnxruntime.InferenceSession(tmp_path / "tuned.onnx").run(None, {"x": x})[0]
    np.testing.assert_allclose(found, case.inference(params, state, x), rtol=1e-3, atol=1e-4)
    start = case.inference(case.params, case.state, x)
    assert np.abs(found - np.asarray(start)).max() > 0.05


def test_a_state_of_another_form_is_refused() -> None:
    case = linen()

    def other(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, after = case.loss(params, state, x, y)
        return value, after["stats"]

    with pytest.raises(OnwardError, match="gives another model_state than it takes"):
        onward.from_jax(other, X, Y, params=case.params, model_state=case.state, optimizer=optax.sgd(0.1))


def test_a_module_as_inference_follows_the_training() -> None:
    """Its weights have other names than those of the variables that a step changes."""

    class Small(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(CLASSES)(nn.relu(nn.Conv(3, (3, 3))(x)).mean((1, 2)))

    net, optimizer = Small(), optax.sgd(0.5)
    variables = net.init(jax.random.key(0), jnp.zeros((1, 6, 6, 3)))

    def loss(variables: Any, x: Any, y: Any) -> Any:
        return entropy(net.apply(variables, x), y)

    made = onward.from_jax(loss, X, Y, params=variables, optimizer=optimizer, inference=net)
    trainer = Trainer(made, kernels=False)
    x, y = data()[0]
    trainer.step({"x": x, "y": y})
    gradients = jax.grad(loss)(variables, x, y)
    after = optax.apply_updates(variables, optimizer.update(gradients, optimizer.init(variables))[0])
    session = onnxruntime.InferenceSession(trainer.tuned().to_proto().SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": x})[0], net.apply(after, x), rtol=1e-4, atol=1e-5)
