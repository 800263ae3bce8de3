"""Training goes on in TensorFlow: a package of model, loss, optimizer with its state, and a loop with its gradients."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onward.training.export.plan import STATE, planned, write
from onward.training.export.state import NotInWords
from onward.training.export.tensorflow.script import Script
from onward.training.export.tensorflow.updates import KNOWN
from onward.training.export.tensorflow.whole_step import target
from onward.training.export.whole_step import write_whole_step

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_tensorflow_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    As `to_torch_package`, for TensorFlow: a loop with `tf.GradientTape` under `tf.function`; how the optimizer changes
    a weight is a function of its own.
    """
    to = target()
    try:
        source, script, files = planned(trainable, to.model, list(KNOWN), Script, to.graphs)
        source = script.modules.with_helpers(source, to.runtime, to.about)
        script = replace(script, draws=script.trains and ("dropout" in source.model or "random" in source.model))
        text = script.text()
    except NotInWords as why:
        return write_whole_step(trainable, to, str(why), out, force=force)
    state = {key: array for key, array in files[STATE].items() if not key.endswith(".step")}
    return write(source, script, text, {**files, STATE: state}, out, force=force)
