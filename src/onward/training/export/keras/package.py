"""Training goes on in Keras: a package of a compiled model, its loss, optimizer with state and schedule."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from onward.backends.backend import backend
from onward.backends.tensorflow.convert import RUNTIME
from onward.errors import UnsupportedError
from onward.training.export.keras.script import Script
from onward.training.export.keras.words import own_optimizer
from onward.training.export.plan import STATE, planned, write
from onward.training.export.tensorflow.updates import KNOWN

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_keras_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a Keras model as `onward convert` does, with a `train.py` that goes on where the training is.

    As `to_torch_package`, for Keras: model.py makes the model, model.keras has its weights, and train.py compiles it
    with loss, optimizer and schedule, which are Keras's own where those mean exactly the same.
    """
    source, script, files = planned(trainable, backend("keras"), list(KNOWN), Script, backend("tensorflow"))
    source = script.modules.with_helpers(source, RUNTIME, "Functions that TensorFlow itself does not have.")
    if script.adapters:
        raise UnsupportedError("adapters are not written in Keras: use --to tensorflow, torch or jax")
    script = replace(script, draws="layers.Dropout(" in source.model)
    state = {key: array for key, array in files[STATE].items() if not key.endswith(".step")}
    if own_optimizer(script) is not None:  # whose momentum is a move: the other way, and with the learning rate in it
        state = {key: (-script.lr * array).astype(array.dtype) for key, array in state.items()}
    more = {"weights.safetensors": None, "model.keras": lambda file: _write_model(source, file)}
    return write(source, script, script.text(), {**files, STATE: state}, out, more, force=force)


def _write_model(source: Any, file: BinaryIO) -> None:
    """Keras writes to a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        source.net.save(path)
        file.write(path.read_bytes())
