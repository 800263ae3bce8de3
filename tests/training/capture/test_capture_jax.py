"""Steps that optax makes of a loss are made on ONNX Runtime: all that changes, changes alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402

import onward  # noqa: E402
from onward.errors import OnwardError, UnsupportedError  # noqa: E402
from onward.training import load  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402

STEPS, BATCH = 50, 6
X = jax.ShapeDtypeStruct(("b", 12), jnp.float32)
Y = jax.ShapeDtypeStruct(("b",), jnp.int32)
Params = dict[str, Any]


def data() -> list[tuple[Any, Any]]:
    draw = np.random.default_rng(0)
    return [
        (draw.standard_normal((BATCH, 12)).astype(np.float32), draw.integers(0, 4, BATCH).astype(np.int32))
        for _ in range(STEPS)
    ]


def new_params() -> Params:
    draw = np.random.default_rng(1)
    sizes = {"first": (12, 16), "second": (16, 4)}
    return {
        name: {"kernel": jnp.array(draw.standard_normal(size) * 0.3, jnp.float32), "bias": jnp.zeros(size[1])}
        for name, size in sizes.items()
    }


def apply(params: Params, x: Any) -> Any:
    h = jax.nn.gelu(x @ params["first"]["kernel"] + params["first"]["bias"])
    return h @ params["second"]["kernel"] + params["second"]["bias"]


def loss(params: Params, x: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), labels).mean()


def steps(loss: Callable[..., Any], optimizer: Any, params: Any, state: Any, batches: list[Any]) -> Any:
    """As a user of optax makes them."""

    @jax.jit
    def step(params: Any, state: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        moves, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, moves), state, value

    losses = []
    for batch in batches:
        params, state, value = step(params, state, *batch)
        losses.append(float(value))
    return params, state, losses


def run(trainer: Trainer, batches: list[Any]) -> list[float]:
    return [trainer.step({"x": x, "labels": y}) for x, y in batches]


OPTIMIZERS = {
    "adamw": lambda: optax.adamw(optax.cosine_decay_schedule(1e-2, 40)),
    "nesterov": lambda: optax.sgd(0.05, momentum=0.9, nesterov=True),
    "lion": lambda: optax.lion(1e-3),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2)),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=2),
    "muon": lambda: optax.contrib.muon(1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_curves_are_the_same(name: str) -> None:
    optimizer, params = OPTIMIZERS[name](), new_params()
    made = onward.from_jax(loss, X, Y, params=params, optimizer=optimizer, inference=apply)
    after, _, wanted = steps(loss, optimizer, params, optimizer.init(params), data())
    trainer = Trainer(made, kernels=False)
    np.testing.assert_allclose(run(trainer, data()), wanted, rtol=1e-4)
    assert wanted[0] != wanted[-1]
    np.testing.assert_allclose(trainer.buffers["first.kernel"], after["first"]["kernel"], rtol=1e-4, atol=1e-6)


def test_it_goes_on_where_it_was_and_in_a_file(tmp_path: Path) -> None:
    optimizer, params, batches = optax.adam(1e-2), new_params(), data()
    half = steps(loss, optimizer, params, optimizer.init(params), batches[:25])
    whole = steps(loss, optimizer, half[0], half[1], batches[25:])
    made = onward.from_jax(loss, X, Y, params=half[0], optimizer=optimizer, state=half[1], inference=apply)
    made.save(tmp_path / "step.onnx")
    trainer = Trainer(load(tmp_path / "step.onnx"), kernels=False)
    np.testing.assert_allclose(run(trainer, batches[25:]), whole[2], rtol=1e-4)
    assert trainer.buffers["state.0.count"] == STEPS
    trainer.save(tmp_path / "tuned.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "tuned.onnx")
    found = session.run(None, {"x": batches[0][0]})[0]
    np.testing.assert_allclose(found, apply(whole[0], batches[0][0]), rtol=1e-4, atol=1e-5)


def test_a_weight_in_two_places_is_one() -> None:
    """A matrix that is used as it is and transposed stays one weight: a copy would not follow the training."""
    params = {"table": new_params()["first"]["kernel"]}

    def tied(params: Params, x: Any, labels: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ params["table"]) @ params["table"].T - x) ** 2) + 0 * labels.sum()

    optimizer = optax.sgd(0.1)
    made = onward.from_jax(tied, X, Y, params=params, optimizer=optimizer)
    _, _, wanted = steps(tied, optimizer, params, optimizer.init(params), data())
    np.testing.assert_allclose(run(Trainer(made, kernels=False), data()), wanted, rtol=1e-4)


def test_what_is_no_training() -> None:
    with pytest.raises(OnwardError, match="give one of optax"):
        onward.from_jax(loss, X, Y, params=new_params(), optimizer="adam")
    with pytest.raises(OnwardError, match="give an optimizer as well"):
        onward.from_jax(apply, X, params=new_params(), inference=apply)  # type: ignore[call-overload]
    with pytest.raises((OnwardError, UnsupportedError, TypeError), match="scalar"):
        onward.from_jax(lambda p, x: apply(p, x), X, params=new_params(), optimizer=optax.sgd(0.1))
