"""Steps of Keras beside those of the trainable model that it becomes."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from onward.training.capture.keras import from_keras
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable

Arrays = list[np.ndarray[Any, np.dtype[Any]]]
DRAWS = np.random.default_rng(0)
STEPS, BATCH, CLASSES = 4, 6, 3


def floats(*shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Batches of a shape."""
    return DRAWS.standard_normal((STEPS, BATCH, *shape)).astype(np.float32)


def classes(*shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    return DRAWS.integers(0, CLASSES, (STEPS, BATCH, *shape))


def keras_losses(model: Any, x: Arrays, y: Arrays, dense: bool = False) -> list[float]:
    """The losses of steps as `fit` makes them; `dense` adds up the gradients of rows first."""

    @tf.function
    def step(given: Any, wanted: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x=given, y=wanted, y_pred=model(given, training=True))
        gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
        if dense:
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        model.optimizer.apply(gradients, model.trainable_variables)
        return loss

    def one(arrays: Arrays, index: int) -> Any:
        return arrays[0][index] if len(arrays) == 1 else [array[index] for array in arrays]

    return [float(step(one(x, i), one(y, i))) for i in range(STEPS)]


def batches(trainable: Trainable, x: Arrays, y: Arrays) -> list[dict[str, Any]]:
    names = [value.name or "" for value in trainable.original.ir.graph.inputs] + trainable.labels
    return [{name: array[i] for name, array in zip(names, [*x, *y], strict=True)} for i in range(STEPS)]


def check_steps(model: Any, x: Arrays, y: Arrays, dense: bool = False, within: float = 2e-6) -> Trainer:
    """The same losses step by step, and afterwards the same model."""
    trainable = from_keras(model, dense_gradients=dense)
    trainer = Trainer(trainable, kernels=False)
    ours = [trainer.step(batch) for batch in batches(trainable, x, y)]
    np.testing.assert_allclose(ours, keras_losses(model, x, y, dense), rtol=within)
    for variable in model.variables:
        name = variable.value.name.split(":")[0]
        here = trainer.parameters.get(name, trainer.buffers.get(name))
        if here is None:
            assert not variable.trainable, name
        else:  # filters of convolutions are stored in another order
            there = np.asarray(variable)
            np.testing.assert_allclose(np.sort(here, None), np.sort(there, None), rtol=1e-4, atol=1e-5, err_msg=name)
    return trainer


def tiny() -> Any:
    return keras.Sequential([keras.Input((5,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(CLASSES)])
