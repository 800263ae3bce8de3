"""Training goes on in JAX: a package of model, loss, optax optimizer with its state, a jitted step and a loop."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import onnx_ir as ir

from onward.backends.emit.package import Source
from onward.backends.jax.convert import generate
from onward.errors import UnsupportedError
from onward.model import Model
from onward.spec.random import RANDOM
from onward.training.export.graphs import helped
from onward.training.export.jax.script import TRAINING, Script
from onward.training.export.jax.whole_step import target
from onward.training.export.jax.words import KNOWN
from onward.training.export.plan import planned, weighted, write
from onward.training.export.state import NotInWords
from onward.training.export.whole_step import Target, write_whole_step
from onward.training.recipe.modes import training_mode

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_jax_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    As `to_torch_package`, for JAX and optax: the loss, an optimizer with its state, a jitted step and a loop. Where
    batch normalisation or dropout behaves differently in training, the model as it is then stands in in_training.py.
    What is drawn follows from a key, which key.safetensors keeps from step to step.
    """
    to = target()
    try:
        return _in_words(trainable, to, out, force)
    except NotInWords as why:
        return write_whole_step(trainable, to, str(why), out, force=force)


def _in_words(trainable: Trainable | Trainer, to: Target, out: str | os.PathLike[str], force: bool) -> Path:
    source, script, files = planned(trainable, to.model, KNOWN, Script, to.graphs)
    model = weighted(trainable)
    statistics = training_mode(model.ir, biased=script.unbiased is False, by_op=True) if script.trains else {}
    script = replace(
        script, has_constants=bool(source.constants), statistics=list(statistics), draws=_draws(model.ir.graph)
    )
    beside = [one.model for one in script.modules.sources.values()]
    more = {}
    if script.statistics or script.draws:
        text = _in_training(model, source, script)
        more[f"{TRAINING}.py"] = lambda file: file.write(text.encode())
        beside.append(text)
    source = helped(source, beside, to.runtime, to.about)
    return write(source, script, script.text(), files, out, more, force=force)


def _draws(graph: ir.Graph) -> bool:
    """Whether a model draws random numbers in each step."""
    found = [node for node in graph.all_nodes() if node.domain in ("", "ai.onnx") and _is_drawn(node)]
    if inner := [node for node in found if node.graph is not graph]:
        raise UnsupportedError(
            f"{inner[0].op_type} {inner[0].name!r} draws random numbers in a body of If, Loop or Scan, which is not "
            "written as JAX source for training: give it a seed, or prepare with train_mode=False"
        )
    return bool(found)


def _is_drawn(node: ir.Node) -> bool:
    if "seed" in node.attributes:
        return False
    if node.op_type == "Dropout":
        switch = node.inputs[2] if len(node.inputs) > 2 else None
        known = None if switch is None else ir.convenience.get_const_tensor(switch)
        return switch is not None and (known is None or bool(known.numpy()))
    return node.op_type in RANDOM


def _in_training(model: Model, source: Source, script: Script) -> str:
    """The source of the model as it is while it is trained, which has the weights of the one for inference."""
    trained = [name for name in source.tensors if name not in source.constants]
    inside = generate(model, trained, draws=script.draws)
    own = {name: tuple(tensor.shape) for name, tensor in source.tensors.items()}
    for name, tensor in inside.tensors.items():
        if own.get(name) != tuple(tensor.shape):
            form = "has another shape" if name in own else "is there only"
            raise NotInWords(f"the tensor {name!r} of the model {form} while it trains")
    if lost := [name for name in script.statistics if name not in own]:
        raise NotInWords(f"the JAX source does not have the running statistic {lost[0]!r} under its name")
    return inside.model
