"""Training goes on in TensorFlow: a package of model, loss, optimizer with its state, and a loop with its gradients."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onward.backends.backend import backend
from onward.backends.tensorflow.convert import RUNTIME
from onward.training.export.plan import STATE, planned, write
from onward.training.export.tensorflow.script import Script
from onward.training.export.tensorflow.updates import KNOWN

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_tensorflow_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    As `to_torch_package`, for TensorFlow: a loop with `tf.GradientTape` under `tf.function`; how the optimizer changes
    a weight is a function of its own.
    """
    tensorflow = backend("tensorflow")
    source, script, files = planned(trainable, tensorflow, list(KNOWN), Script, tensorflow)
    source = script.modules.with_helpers(
        source, RUNTIME, "The weights, and functions that TensorFlow itself does not have."
    )
    script = replace(script, draws=script.trains and ("dropout" in source.model or "random" in source.model))
    state = {key: array for key, array in files[STATE].items() if not key.endswith(".step")}
    return write(source, script, script.text(), {**files, STATE: state}, out, force=force)
