"""Layers of Keras with their options: each case is a small model, and what it is tried on.

A case is named after the class that it is about, and after what is special about it; `all_cases` has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

L = keras.layers
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


ROW = floats(3, 6)
SERIES = floats(2, 8, 6)
OTHER = floats(2, 8, 6)
SHORT = floats(2, 5, 6)
IMAGE = floats(2, 8, 9, 4)
VOLUME = floats(1, 5, 6, 7, 2)
FILM = floats(2, 3, 4, 5, 4, 2)
"""A series of volumes."""
WORDS = np.array([[1, 2, 0, 3, 0, 0, 8, 0], [0, 0, 1, 2, 3, 4, 0, 0]], np.int32)
"""Where zeros are masked, they are so before, between and behind the others."""
PHOTO = RNG.uniform(0, 255, (2, 12, 10, 3)).astype(np.float32)


@dataclass(frozen=True)
class Case:
    make: Callable[[], Any]
    """Gives a layer, or a function of as many tensors as there are data."""
    data: tuple[Any, ...]
    open: bool = False
    """Whether all axes but the last are of unknown size."""
    rtol: float = 2e-5

    def model(self) -> Any:
        """With weights that are all different: what starts as zeros or ones shows no mistake."""
        keras.utils.set_random_seed(0)
        inputs = [
            keras.Input(
                (None,) * (x.ndim - 2) + x.shape[-1:] if self.open else x.shape[1:],
                dtype="string" if x.dtype.kind == "U" else str(x.dtype),
            )
            for x in self.data
        ]
        model = keras.Model(inputs if len(inputs) > 1 else inputs[0], self.make()(*inputs))
        rng = np.random.default_rng(1)
        for weight in model.weights:
            statistic = weight.name.startswith("moving_")
            if statistic or (weight.trainable and str(weight.dtype).startswith(("float", "bfloat"))):
                low, high = (0.5, 1.5) if statistic else (-0.7, 0.7)
                weight.assign(rng.uniform(low, high, weight.shape))
        return model


def case(make: Callable[[], Any], *data: Any, **options: Any) -> Case:
    return Case(make, data, **options)


@keras.saving.register_keras_serializable(package="tests")
class Inside(L.Layer):
    """A layer of one's own, which calls another."""

    def __init__(self, layer: Any, **options: Any) -> None:
        super().__init__(**options)
        self.layer = layer

    def call(self, x: Any, training: bool = False) -> Any:
        return self.layer(x, **({"training": training} if self.layer._call_has_training_arg else {}))


def joined(layer: Any) -> Any:
    """A layer that takes a list, as a function of several tensors."""
    return lambda *tensors: layer(list(tensors))
