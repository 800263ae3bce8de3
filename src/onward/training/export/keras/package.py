"""Training goes on in Keras: a package of a compiled model, its loss, optimizer with state and schedule."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from onward.training.export.keras.script import Script
from onward.training.export.keras.whole_step import target
from onward.training.export.keras.words import own_optimizer
from onward.training.export.plan import STATE, planned, write
from onward.training.export.state import NotInWords
from onward.training.export.tensorflow.updates import KNOWN
from onward.training.export.whole_step import write_whole_step

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_keras_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a Keras model as `onward convert` does, with a `train.py` that goes on where the training is.

    As `to_torch_package`, for Keras: model.py makes the model, model.keras has its weights, and train.py compiles it
    with loss, optimizer and schedule, which are Keras's own where those mean exactly the same.
    """
    to = target()
    try:
        source, script, files = planned(trainable, to.model, list(KNOWN), Script, to.graphs)
        source = script.modules.with_helpers(source, to.runtime, to.about)
        if script.adapters:
            raise NotInWords("layers of Keras have no adapters")
        script = replace(script, draws="layers.Dropout(" in source.model)
        text = script.text()
    except NotInWords as why:
        return write_whole_step(trainable, to, str(why), out, force=force, more=_model_of)
    state = {key: array for key, array in files[STATE].items() if not key.endswith(".step")}
    if own_optimizer(script) is not None:  # whose momentum is a move: the other way, and with the learning rate in it
        state = {key: (-script.lr * array).astype(array.dtype) for key, array in state.items()}
    return write(source, script, text, {**files, STATE: state}, out, _model_of(source), force=force)


def _model_of(source: Any) -> dict[str, Callable[[BinaryIO], object] | None]:
    """The files that hold the model's weights."""
    return {"weights.safetensors": None, "model.keras": lambda file: _write_model(source, file)}


def _write_model(source: Any, file: BinaryIO) -> None:
    """Keras writes to a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        source.net.save(path)
        file.write(path.read_bytes())
