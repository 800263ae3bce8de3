"""`load(initialize=True)` of a training from Keras starts the optimizer as Keras starts a new one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from keras_steps import batches, classes, floats, keras_losses  # noqa: E402

import onward  # noqa: E402
from onward.training.info.read import load  # noqa: E402
from onward.training.runtime.trainer import Trainer  # noqa: E402

L, OPT = keras.layers, keras.optimizers
OPTIMIZERS: dict[str, Any] = {
    "adam": lambda: OPT.Adam(0.05, amsgrad=True),
    "adagrad": lambda: OPT.Adagrad(0.1, initial_accumulator_value=0.3),
    "ftrl": lambda: OPT.Ftrl(0.1),
    "nadam": lambda: OPT.Nadam(0.05),
    "average": lambda: OPT.Adagrad(0.1, use_ema=True),
}


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_as_a_new_one(name: str, together: bool, tmp_path: Path) -> None:
    """With a constraint, what Keras does to all variables is one graph."""
    keras.utils.set_random_seed(1)
    bound = keras.constraints.MaxNorm(9.0) if together else None
    model = keras.Sequential([keras.Input((5,)), L.Dense(4, activation="tanh", kernel_constraint=bound), L.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(OPTIMIZERS[name](), loss)
    x, y = [floats(5)], [classes()]
    keras_losses(model, x, y)
    onward.from_keras(model, training=True).save(tmp_path / "a.onnx")
    trainable = load(tmp_path / "a.onnx", initialize=True)
    assert trainable.step == 0
    assert load(tmp_path / "a.onnx").step > 0
    trainer = Trainer(trainable, kernels=False)
    ours = [trainer.step(batch) for batch in batches(trainable, x, y)]
    model.compile(OPTIMIZERS[name](), loss)
    np.testing.assert_allclose(ours, keras_losses(model, x, y), rtol=1e-5)
