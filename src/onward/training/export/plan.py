"""What of a training is exported, whatever the framework: data, loss, optimizer, groups, state."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np
import onnx_ir as ir

from onward.backends.backend import Backend
from onward.backends.emit.package import Source, write_package
from onward.errors import OnwardError, UnsupportedError
from onward.graph.held_weights import with_weights
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.training.autodiff.derivatives import named
from onward.training.autodiff.quantised_values import ROUNDS
from onward.training.autodiff.reverse import on_the_way
from onward.training.autodiff.stops import stops
from onward.training.export.graphs import (
    LOSS_MODULE,
    UPDATE_MODULE,
    Graphs,
    LossGraph,
    Modules,
    loss_graph,
    update_graph,
)
from onward.training.export.normalised import is_normalised
from onward.training.export.recognise import UnknownLoss, recognise
from onward.training.export.state import NotInWords, Place, package, with_adapters
from onward.training.recipe.caches import cache_names, empty_caches
from onward.training.recipe.ctc import CTC
from onward.training.recipe.described import Stored
from onward.training.recipe.groups import Rule, matches
from onward.training.recipe.losses import Penalty, Term
from onward.training.recipe.modes import inference_mode
from onward.training.recipe.optimizers import SGD, Averaged, Clipped
from onward.training.recipe.schedules import Constant, Schedule
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.runtime import checkpoint
from onward.training.step_graphs import CLIP_EPSILON, LOSS
from onward.training.trainable import Trainable

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer

Array = np.ndarray[Any, np.dtype[Any]]
Files = Mapping[str, Mapping[str, Array]]
STATE, AVERAGES, ADAPTERS = "optimizer.safetensors", "average.safetensors", "adapters.safetensors"
WHOLE_STATE, README = "state.safetensors", "README.md"
"""Files that only trainings have whose graphs are called."""
PROGRESS = "progress.json"
P = TypeVar("P", bound="Plan")


@dataclass(frozen=True)
class Plan:
    """All that the text of a `train.py` depends on."""

    data: Mapping[str, str]
    """The inputs of the model with their dtypes, in its order."""
    labels: Mapping[str, str]
    outputs: Sequence[str]
    terms: Sequence[Term]
    optimizer: Any
    lr: float
    groups: Mapping[Rule, Sequence[str]]
    slots: Sequence[str]
    steps: int
    """Made before."""
    trains: bool
    """Whether the model is in the mode of training."""
    clip_norm: float | None
    clip_value: float | None
    accumulate: int
    schedule: Schedule | None
    penalties: Sequence[tuple[Penalty, Sequence[str]]] = ()
    """Each with the names of its weights; none: it is of all that are trained."""
    average: float | None = None
    adapters: Mapping[str, float] = field(default_factory=dict)
    """Matrices that have one, with its scale."""
    trained: Sequence[str] = ()
    """The names of all that is trained."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """Of outputs, as far as they are known."""
    clip_epsilon: float = CLIP_EPSILON
    unbiased: bool | None = None
    """Which variance of a batch the running one takes in; None where there is none."""
    graph: LossGraph | None = None
    """The loss, where there are no terms."""
    branches: bool = False
    """Whether the data decide which weights are used: those that are not have a gradient of zeros all the same."""
    normalised: bool = False
    """Whether the predictions are seen to be logarithms of probabilities."""
    modules: Modules = field(kw_only=True)
    """Of what is known as a graph only."""

    @property
    def scheduled(self) -> bool:
        return self.schedule is not None and not isinstance(self.schedule, Constant)

    @staticmethod
    def part_of_adapter(matrix: str, part: str) -> tuple[str, str]:
        """What `a` or `b` beside a matrix is called in the model, and in the file of adapters."""
        return f"{matrix}.{part}", f"{matrix}.{part}"


@dataclass(frozen=True)
class Wrapped:
    """An optimizer, and what is done before and after each of its steps."""

    optimizer: Any
    clip_value: float | None = None
    average: float | None = None
    """The share of the moving average of weights that stays in a step."""


def unwrapped(optimizer: Any, known: Sequence[type[Any]]) -> Wrapped:
    """The optimizer without what is around it, which has to be one of those known to a framework's words."""
    average = value = None
    if type(optimizer) is Averaged:
        optimizer, average = optimizer.inner, optimizer.value
    if type(optimizer) is Clipped:
        optimizer, value = optimizer.inner, optimizer.value
    if type(optimizer) not in known:
        name = "" if isinstance(optimizer, Stored) else f" {optimizer.name!r}"
        raise NotInWords(f"its optimizer{name} is known as a graph only")
    return Wrapped(optimizer, value, average)


def has_step(optimizer: Any) -> bool:
    """Whether the state of an optimizer counts steps."""
    return not isinstance(optimizer, SGD)


def planned(
    trainable: Trainable | Trainer,
    backend: Backend,
    known: Sequence[type[Any]],
    make: type[P],
    graphs: Graphs,
) -> tuple[Source, P, Files]:
    """The package of the model, the plan of train.py, and the tensors of each file beside the weights.

    `known` are the optimizers that the framework has words for; `graphs` converts losses and optimizers that are known
    as graphs only.
    """
    given, lr = now(trainable)
    if any(map(stops, all_nodes(given.gradients.graph))):
        raise NotInWords("gradients stop on the way to some of its weights")
    how = unwrapped(given.optimizer, known)
    _check_rounding(given, backend)
    trains = _trains(given)
    weights = given.weights(given.parameters)
    source, found = package(_model(given, weights, trains), weights, backend)
    places, adapters, apart = with_adapters(given, found, make.part_of_adapter)
    graph = given.gradients.graph
    terms, loss, sources = [], None, {}
    try:
        terms = _terms(given, backend.title)
    except UnknownLoss:
        loss = loss_graph(given, outputs_inside(given), places, graphs)
        sources[LOSS_MODULE] = loss.source
    if type(how.optimizer) is OnnxOptimizer:
        sources[UPDATE_MODULE] = update_graph(how.optimizer, places, graphs)
    inside = outputs_inside(given)
    plan = make(
        data=_inputs(given),
        labels={value.name or "": dtype_of(value) for value in graph.inputs if value.name in given.labels},
        outputs=[value.name or "" for value in given.original.ir.graph.outputs],
        terms=terms,
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
        penalties=[] if loss else [(penalty, _fitting(penalty, places)) for penalty in given.penalties],
        average=how.average,
        adapters=adapters,
        trained=[place.name for place in places],
        ranks={v.name or "": v.shape.rank() for v in given.original.ir.graph.outputs if v.shape is not None},
        clip_epsilon=given.clip_epsilon,
        unbiased=unbiased(given) if trains else None,
        graph=loss,
        branches=any(node.op_type in ("If", "Loop") for node in all_nodes(given.original.ir.graph)),
        normalised=all(is_normalised(inside.get(value.name or "")) for value in given.original.ir.graph.outputs),
        modules=Modules(sources, graphs),
    )
    files: dict[str, Mapping[str, Array]] = {STATE: _state(given, how.optimizer, places), ADAPTERS: apart}
    if how.average is not None and given.step:
        averages = given.average()
        files[AVERAGES] = {place.name: place.moved(averages[place.onnx_name]) for place in places}
    return source, plan, files


def places_of(trainable: Trainable, backend: Backend, make: type[Plan]) -> tuple[list[Place], dict[str, str]]:
    """Where a package has what is trained, and the names of running statistics there by those in the file."""
    weights = trainable.weights(trainable.parameters)
    source, found = package(_model(trainable, weights, _trains(trainable)), weights, backend)
    names = {tensor.onnx_name: path for path, tensor in source.tensors.items()}
    statistics = {name: names[name] for name in trainable.buffers if name in names}
    return with_adapters(trainable, found, make.part_of_adapter)[0], statistics


def write(
    source: Source,
    plan: Plan,
    text: str,
    files: Files,
    out: str | os.PathLike[str],
    more: Mapping[str, Callable[[BinaryIO], object] | None] | None = None,
    *,
    force: bool = False,
) -> Path:
    """Write the package of a model with the script that trains it, and the state that it goes on from."""
    script = text.replace("PACKAGE.train", f"{Path(out).absolute().name}.train", 1)

    def write_tensors(name: str) -> Callable[[BinaryIO], object] | None:
        tensors = files.get(name)
        return (lambda file: checkpoint.write(file, tensors, {})) if tensors else None

    progress = json.dumps({"step": plan.steps, "epoch": 0, "written": []})
    return write_package(
        source,
        out,
        {
            "train.py": lambda file: file.write(script.encode()),
            PROGRESS: lambda file: file.write(progress.encode()),
            **{name: write_tensors(name) for name in (STATE, AVERAGES, ADAPTERS, WHOLE_STATE, README)},
            **plan.modules.files(),
            **(more or {}),
        },
        force=force,
    )


def _check_rounding(trainable: Trainable, backend: Backend) -> None:
    """Refuse derivatives that pass through quantisation: in the words of a framework they are zero there."""
    graph = trainable.gradients.graph
    parameters = [value for value in graph.inputs if value.name in trainable.parameters]
    if any(node.op_type in ROUNDS for node in on_the_way(graph, [named(graph, LOSS)], parameters)):
        raise NotInWords(f"gradients pass through quantisation, where those of {backend.title} end")


def _fitting(penalty: Penalty, places: list[Place]) -> list[str]:
    """The weights that a penalty is of; none where it is of all."""
    found = [place.name for place in places if matches(place.onnx_name, penalty.patterns)]
    return [] if len(found) == len(places) else found


def now(trainable: Trainable | Trainer) -> tuple[Trainable, float]:
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


def weighted(trainable: Trainable | Trainer) -> Model:
    """The original with the weights as they are now, in the mode of inference."""
    given, _ = now(trainable)
    return _model(given, given.weights(given.parameters), _trains(given))


def _trains(trainable: Trainable) -> bool:
    """Whether dropout and batch normalisation behave as in training: all of them, or none."""
    modes = set()
    batch_norms = 0
    for node in trainable.gradients.graph:
        if node.op_type == "BatchNormalization":
            modes.add(node.attributes.get_int("training_mode", 0) == 1)
            batch_norms += 1
        elif node.op_type == "Dropout":
            modes.add(len(node.inputs) > 2)
    if len(modes) > 1 or (modes == {True} and len(trainable.buffers) != 2 * batch_norms):
        raise NotInWords("some batch normalisation or dropout is trained in the mode of inference, some is not")
    return False not in modes


def _model(trainable: Trainable, weights: Mapping[str, Array], trains: bool) -> Model:
    """The original with the weights as they are now, in the mode of inference; batch norms know their rule."""
    model = with_weights(trainable.original, {**weights, **trainable.buffers})
    model.path = trainable.original.path
    if without_caches(trainable):
        empty_caches(model.ir)
    if trains:
        inference_mode(model.ir)
        _follow(model.ir, trainable)
    return model


def unbiased(trainable: Trainable) -> bool | None:
    """Whether running variances take in the unbiased one of a batch; None where there are no running statistics."""
    found = {rule.corrected for rule in _followed(trainable).values() if rule.index == VARIANCE}
    if len(found) > 1:
        raise NotInWords("some running variances take in the unbiased variance of a batch, some the biased one")
    return found.pop() if found else None


VARIANCE = 2
"""The output of a batch normalisation that is the variance."""


@dataclass
class _Following:
    """How a running statistic follows the batches."""

    index: int = 0
    """The output of the batch normalisation that it takes in."""
    corrected: bool = False
    """Whether that is scaled by counts."""
    momentum: float | None = None
    """The share of the old one that stays."""


def _follow(model: ir.Model, trainable: Trainable) -> None:
    """Let batch normalisations know how their running statistics follow: a file for inference need not say it."""
    rules, rule = _followed(trainable), unbiased(trainable)
    for node in model.graph.all_nodes():
        if node.op_type == "BatchNormalization" and (mean := node.inputs[3]) is not None and mean.name in rules:
            node.attributes["momentum"] = ir.AttrFloat32("momentum", rules[mean.name].momentum or 0.0)
            node.attributes["unbiased"] = ir.AttrInt64("unbiased", int(bool(rule)))


def _followed(trainable: Trainable) -> dict[str, _Following]:
    """By running statistic."""
    after = {value.name: value for value in trainable.gradients.graph.outputs}
    found = {name: _following(name, after.get(f"{name}.next")) for name in trainable.buffers}
    for name, rule in found.items():
        if not rule.index or rule.momentum is None:
            raise NotInWords(f"a step changes {name!r} in a way that is not that of batch normalisation")
    return found


def _following(name: str, value: ir.Value | None) -> _Following:
    rule = _Following()
    waiting = [] if value is None else [value]
    while waiting:
        here = waiting.pop()
        node = here.producer()
        if node is not None and node.op_type == "BatchNormalization":
            rule.index = node.outputs.index(here)
            own = node.attributes["momentum"].as_float() if "momentum" in node.attributes else 0.9
            rule.momentum = own or rule.momentum
        elif node is not None and node.op_type in ("Identity", "Add", "Mul", "Div"):
            read = [x for x in node.inputs if x is not None]
            rule.corrected = rule.corrected or node.op_type == "Div"
            if node.op_type == "Mul" and name in [x.name for x in read]:
                shares = [t for x in read if (t := ir.convenience.get_const_tensor(x)) is not None]
                rule.momentum = float(shares[0].numpy().item()) if shares and shares[0].size == 1 else None
            waiting += read
    return rule


def _terms(trainable: Trainable, framework: str) -> list[Term]:
    """The loss as the file says it, or as it is read off the graph."""
    names = {value.name for value in trainable.original.ir.graph.outputs}
    if trainable.loss is not None and all(term.output in names for term in trainable.loss):
        if any(isinstance(term.loss, CTC) and term.loss.concatenated for term in trainable.loss):
            raise UnsupportedError("CTC labels that are concatenated cannot be cut into batches: use padded ones")
        return trainable.loss
    loss = next(value for value in trainable.gradients.graph.outputs if value.name == LOSS)
    return recognise(loss, outputs_inside(trainable), framework)


def _inputs(trainable: Trainable) -> dict[str, str]:
    given = [value for value in trainable.original.ir.graph.inputs if not value.is_initializer()]
    return {value.name or "": dtype_of(value) for value in given if value.name not in without_caches(trainable)}


def without_caches(trainable: Trainable) -> set[str]:
    """The caches of a language model, which are empty in training."""
    return cache_names(trainable.original.ir.graph) - {value.name for value in trainable.gradients.graph.inputs}


def outputs_inside(trainable: Trainable) -> dict[str, ir.Value]:
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


def dtype_of(value: Any) -> str:
    return "float32" if value.dtype is None else str(value.dtype.numpy().name)


def _slots(optimizer: Any) -> list[str]:
    return [*(["step"] if has_step(optimizer) else []), *optimizer.states]


def _state(trainable: Trainable, optimizer: Any, places: list[Place]) -> dict[str, Array]:
    """By `<parameter>.<slot>`; nothing before the first step."""
    found: dict[str, Array] = {}
    if trainable.step:
        for place in places:
            if has_step(optimizer):
                found[f"{place.name}.step"] = np.asarray(trainable.step, np.float32)
            for slot in optimizer.states:
                found[f"{place.name}.{slot}"] = place.moved(trainable.state[f"{place.onnx_name}.{slot}"])
    return found


def _groups(trainable: Trainable, places: list[Place], decay: float) -> dict[Rule, list[str]]:
    """The names of the parameters by their rule; empty where there is only one."""
    found: dict[Rule, list[str]] = {}
    if trainable.rules:
        for place in places:
            rule = trainable.rules.get(place.onnx_name, Rule(1.0, decay))
            found.setdefault(rule, []).append(place.name)
    return found
