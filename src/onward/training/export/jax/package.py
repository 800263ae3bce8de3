"""Training goes on in JAX: a package of model, loss, optax optimizer with its state, a jitted step and a loop."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onward.backends.backend import Options, backend
from onward.backends.emit.helpers import load_runtime
from onward.backends.emit.package import Source
from onward.backends.jax.convert import RUNTIME
from onward.errors import UnsupportedError
from onward.model import Model
from onward.training.export.jax.script import TRAINING, Script
from onward.training.export.jax.words import FIELDS
from onward.training.export.plan import planned, weighted, write
from onward.training.recipe.modes import training_mode

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable

ABOUT = "Functions that JAX itself does not have."


def to_jax_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    As `to_torch_package`, for JAX and optax: the loss, an optimizer with its state, a jitted step and a loop. Where
    batch normalisation behaves differently in training, the model as it is then stands in in_training.py.
    """
    source, script, files = planned(trainable, backend("jax"), list(FIELDS), Script)
    if script.adapters:
        raise UnsupportedError("adapters are not written as JAX source: merge them first, or train all of the weights")
    script = replace(script, has_constants=bool(source.constants))
    more = {}
    if script.trains:
        model = weighted(trainable)
        if any(node.op_type == "Dropout" for node in model.ir.graph.all_nodes()):
            raise UnsupportedError("dropout in training is not written as JAX source: prepare with train_mode=False")
        statistics = training_mode(model.ir)
        if statistics:
            inside = _in_training(model, source, statistics)
            script = replace(script, statistics=list(statistics))
            text = inside.model
            more[f"{TRAINING}.py"] = lambda file: file.write(text.encode())
            helpers = {name for one in (source.model, text) for name in re.findall(r"(?<=\bops\.)\w+", one)}
            source = replace(source, ops=load_runtime(RUNTIME).source(helpers, ABOUT))
    return write(source, script, script.text(), files, out, more, force=force)


def _in_training(model: Model, source: Source, statistics: Mapping[str, str]) -> Source:
    """The source of the model as it is while it is trained, which has the weights of the one for inference."""
    trained = [name for name in source.tensors if name not in source.constants]
    inside = backend("jax").generate(model, Options(trainable=trained))
    own = {name: tuple(tensor.shape) for name, tensor in source.tensors.items()}
    for name, tensor in inside.tensors.items():
        if own.get(name) != tuple(tensor.shape):
            raise UnsupportedError(f"in training the model has the weight {name}, which it does not have otherwise")
    if lost := [name for name in statistics if name not in own]:
        raise UnsupportedError(f"the JAX source does not have the running statistic {lost[0]!r} under its name")
    return inside
