"""Runs generated source in memory: what `to_keras` returns is what `convert` writes."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

import keras

from onward.backends.emit.execute import run_in
from onward.backends.emit.safetensors import carried
from onward.errors import UnsupportedError

if TYPE_CHECKING:
    from onward.backends.keras.convert import KerasSource


LONGEST = 300
"""Characters of Keras' message that are kept."""


def run(source: KerasSource, module: str = "onward_generated") -> keras.Model:
    """Execute the source, as a module of that name, and fill in the weights."""
    if keras.backend.backend() != "tensorflow":
        raise UnsupportedError(f"Keras runs on {keras.backend.backend()} here; set KERAS_BACKEND=tensorflow")
    made = types.ModuleType(module)
    run_in(made, source.model)
    try:
        model: keras.Model = made.build()
    except (RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:LONGEST]
        raise UnsupportedError(f"Keras cannot make the layers: {reason}") from error
    for layer in model.layers:
        for variable, tensor in zip(layer.weights, source.layers.get(layer.name, []), strict=True):
            variable.assign(carried(tensor, source.dtypes))
    return model
