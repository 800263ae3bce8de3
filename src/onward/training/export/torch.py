"""Training goes on in PyTorch: a package of model, loss, optimizer with its state, and a training loop as source."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import onnx_ir as ir

from onward.backends.torch.convert import Source, write_package
from onward.errors import OnwardError, UnsupportedError
from onward.graph.held_weights import with_weights
from onward.model import Model
from onward.training.export.recognise import recognise
from onward.training.export.script import Script
from onward.training.export.state import Place, package, with_adapters
from onward.training.export.words import has_step, unwrapped
from onward.training.recipe.groups import Rule, matches
from onward.training.recipe.losses import Penalty, Term
from onward.training.recipe.modes import inference_mode
from onward.training.runtime import checkpoint
from onward.training.step_graphs import LOSS
from onward.training.trainable import Trainable

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer

Array = np.ndarray[Any, np.dtype[Any]]
Files = Mapping[str, Mapping[str, Array]]
STATE, AVERAGES, ADAPTERS = "optimizer.safetensors", "average.safetensors", "adapters.safetensors"
PROGRESS = "progress.json"


def to_torch_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    `trainable` is prepared or was read from a file; a trainer is taken as it is now. The package holds model.py, the
    weights, ops.py if it is needed, train.py, progress.json and, once a step was made, optimizer.safetensors and
    average.safetensors. Adapters are merged in the weights, and apart in adapters.safetensors. `force` writes over
    files that were edited, or trained, since Onward wrote them.
    """
    source, text, files = generate(trainable)
    script = text.replace("PACKAGE.train", f"{Path(out).absolute().name}.train", 1)

    def write_tensors(name: str) -> Callable[[BinaryIO], object] | None:
        tensors = files.get(name)
        return (lambda file: checkpoint.write(file, tensors, {})) if tensors else None

    progress = json.dumps({"step": _now(trainable)[0].step, "epoch": 0, "written": []})
    return write_package(
        source,
        out,
        {
            "train.py": lambda file: file.write(script.encode()),
            PROGRESS: lambda file: file.write(progress.encode()),
            **{name: write_tensors(name) for name in (STATE, AVERAGES, ADAPTERS)},
        },
        force=force,
    )


def generate(trainable: Trainable | Trainer) -> tuple[Source, str, Files]:
    """The package of the model, the text of train.py, and the tensors of each file beside the weights."""
    given, lr = _now(trainable)
    how = unwrapped(given.optimizer)
    trains = _trains(given)
    weights = given.weights(given.parameters)
    source, found = package(_model(given, weights, trains), weights)
    places, adapters, apart = with_adapters(given, found)
    graph = given.gradients.graph
    script = Script(
        data=_inputs(given),
        labels={value.name or "": _dtype(value) for value in graph.inputs if value.name in given.labels},
        outputs=[value.name or "" for value in given.original.ir.graph.outputs],
        terms=_terms(given),
        optimizer=how.optimizer,
        lr=lr,
        groups=_groups(given, places, how.optimizer.weight_decay),
        slots=_slots(how.optimizer),
        steps=given.step,
        trains=trains,
        clip_norm=given.clip_norm,
        clip_value=how.clip_value,
        accumulate=given.accumulate,
        schedule=given.schedule,
        penalties=[(penalty, _fitting(penalty, places)) for penalty in given.penalties],
        average=how.average,
        adapters=adapters,
    )
    files = {STATE: _state(given, how.optimizer, places), ADAPTERS: apart}
    if how.average is not None and given.step:
        averages = given.average()
        files[AVERAGES] = {place.name: place.moved(averages[place.onnx_name]) for place in places}
    return source, script.text(), files


def _fitting(penalty: Penalty, places: list[Place]) -> list[str]:
    """The weights that a penalty is of; none where it is of all."""
    found = [place.name for place in places if matches(place.onnx_name, penalty.patterns)]
    return [] if len(found) == len(places) else found


def _now(trainable: Trainable | Trainer) -> tuple[Trainable, float]:
    """What is exported, and the learning rate."""
    if isinstance(trainable, Trainable):
        return trainable, trainable.optimizer.lr
    trainer = trainable
    if trainer.accumulated:
        raise OnwardError(f"gradients of {trainer.accumulated} batches wait for a step: export after it")
    return replace(
        trainer.trainable,
        parameters=trainer.parameters,
        buffers=trainer.buffers,
        state=trainer.state,
        step=trainer.steps,
    ), trainer.lr


def _trains(trainable: Trainable) -> bool:
    """Whether dropout and batch normalisation behave as in training; PyTorch has one switch for all of them."""
    modes = set()
    batch_norms = 0
    for node in trainable.gradients.graph:
        if node.op_type == "BatchNormalization":
            modes.add(node.attributes.get_int("training_mode", 0) == 1)
            batch_norms += 1
        elif node.op_type == "Dropout":
            modes.add(len(node.inputs) > 2)
    if len(modes) > 1 or (modes == {True} and len(trainable.buffers) != 2 * batch_norms):
        raise UnsupportedError("some batch normalisation or dropout is trained in the mode of inference, some is not")
    return False not in modes


def _model(trainable: Trainable, weights: Mapping[str, Array], trains: bool) -> Model:
    """The original with the weights as they are now; PyTorch's modules have both modes, which its file may not."""
    model = with_weights(trainable.original, {**weights, **trainable.buffers})
    model.path = trainable.original.path
    if trains:
        inference_mode(model.ir)
    return model


def _terms(trainable: Trainable) -> list[Term]:
    """The loss as the file says it, or as it is read off the graph."""
    names = {value.name for value in trainable.original.ir.graph.outputs}
    if trainable.loss is not None and all(term.output in names for term in trainable.loss):
        return trainable.loss
    loss = next(value for value in trainable.gradients.graph.outputs if value.name == LOSS)
    return recognise(loss, _outputs(trainable))


def _inputs(trainable: Trainable) -> dict[str, str]:
    graph = trainable.original.ir.graph
    return {value.name or "": _dtype(value) for value in graph.inputs if not value.is_initializer()}


def _outputs(trainable: Trainable) -> dict[str, ir.Value]:
    """What computes the model's outputs in the training graph; in a file, names of both graphs cannot be the same."""
    inside = {value.name: value for node in trainable.gradients.graph for value in node.outputs}
    own = {value.name for node in trainable.original.ir.graph for value in node.outputs}
    found = {}
    for value in trainable.original.ir.graph.outputs:
        name = value.name or ""
        renamed = f"step/{name}"
        here = inside.get(name) or (None if renamed in own else inside.get(renamed))
        if here is not None:
            found[name] = here
    return found


def _dtype(value: Any) -> str:
    name = "float32" if value.dtype is None else value.dtype.numpy().name
    return f"torch.{name}"


def _slots(optimizer: Any) -> list[str]:
    return [*(["step"] if has_step(optimizer) else []), *optimizer.states]


def _state(trainable: Trainable, optimizer: Any, places: list[Place]) -> dict[str, Array]:
    """As PyTorch has it, by `<parameter>.<slot>`; nothing before the first step."""
    found: dict[str, Array] = {}
    if trainable.step:
        for place in places:
            if has_step(optimizer):
                found[f"{place.name}.step"] = np.asarray(trainable.step, np.float32)
            for slot in optimizer.states:
                found[f"{place.name}.{slot}"] = place.moved(trainable.state[f"{place.onnx_name}.{slot}"])
    return found


def _groups(trainable: Trainable, places: list[Place], decay: float) -> dict[Rule, list[str]]:
    """The names of PyTorch's parameters by their rule; empty where there is only one."""
    found: dict[Rule, list[str]] = {}
    if trainable.rules:
        for place in places:
            rule = trainable.rules.get(place.onnx_name, Rule(1.0, decay))
            found.setdefault(rule, []).append(place.name)
    return found
