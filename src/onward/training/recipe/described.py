"""What a training file says in words: the optimizer, the schedule, what a parameter is called there."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

from onward.errors import InvalidModelError, OnwardError
from onward.graph.build import Builder, Tensor
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.info.typed import instance
from onward.training.recipe.adapters import Adapter
from onward.training.recipe.groups import Rule
from onward.training.recipe.losses import LOSSES, Penalty, Term
from onward.training.recipe.optimizer_names import OPTIMIZERS
from onward.training.recipe.optimizers import Averaged, Clipped, Moment, Optimizer, State, Update, initial
from onward.training.recipe.schedules import OWN, SCHEDULES, Schedule, Warmup
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.step_graphs import CLIP_EPSILON

KEY = "onward.training."
"""Of the model's metadata, followed by the number of the training info."""
KINDS: Mapping[str, type[Any]] = {**OPTIMIZERS, **{kind.name: kind for kind in (OnnxAdam, OnnxAdagrad, OnnxMomentum)}}
WRAPPERS: Mapping[str, type[Clipped]] = {kind.name: kind for kind in (Clipped, Averaged)}


@dataclass(frozen=True)
class Stored:
    """An optimizer of which nothing is known but its graph in a file."""

    name: ClassVar[str] = "stored"
    lr: float = 1e-3
    states: tuple[str, ...] = ()
    weight_decay: float = 0.0
    by_element: bool = False
    initial: Mapping[str, float] = field(default_factory=dict)
    """What states start from that do not start from zero."""

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        raise OnwardError(
            "this optimizer was read from a file as a graph, and updates only the parameters of that file"
        )


@dataclass
class Recipe:
    """What the graphs of a training info do not say by themselves."""

    loss: str
    parameters: dict[str, str]
    """Each with the value that is its gradient."""
    optimizer: dict[str, Any]
    step: str
    """The initializer that counts steps."""
    state: dict[str, str] = field(default_factory=dict)
    """`<parameter>.<slot>` with the initializer that it is."""
    buffers: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    rules: dict[str, Any] = field(default_factory=dict)
    clip_norm: float | None = None
    accumulate: int = 1
    schedule: dict[str, Any] | None = None
    adapters: dict[str, Any] = field(default_factory=dict)
    terms: list[dict[str, Any]] | None = None
    """The loss in words, if it can be said so."""
    penalties: list[dict[str, Any]] = field(default_factory=list)
    clip_epsilon: float = CLIP_EPSILON
    rows: dict[str, list[str]] = field(default_factory=dict)
    """Parameters with the values that are the gradients of their rows one by one, and the numbers of these."""

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> Recipe:
        try:
            found = instance(cls, json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InvalidModelError(f"the metadata {KEY}… is not what Onward writes: {error}") from error
        if any(len(names) != 2 for names in found.rows.values()):
            raise InvalidModelError(f"the metadata {KEY}… is not what Onward writes: rows have two names each")
        return found

    def renamed(self, names: Mapping[str, str]) -> Recipe:
        """The same of a file in which values have other names."""

        def new(name: str) -> str:
            return names.get(name, name)

        def by_slot(name: str) -> str:
            parameter, dot, slot = name.rpartition(".")
            return f"{new(parameter)}{dot}{slot}"

        return replace(
            self,
            loss=new(self.loss),
            parameters={new(name): new(gradient) for name, gradient in self.parameters.items()},
            step=new(self.step),
            state={by_slot(name): new(initializer) for name, initializer in self.state.items()},
            buffers=[new(name) for name in self.buffers],
            labels=[new(name) for name in self.labels],
            rules={new(name): rule for name, rule in self.rules.items()},
            adapters={
                new(name): {key: new(item) if isinstance(item, str) else item for key, item in adapter.items()}
                for name, adapter in self.adapters.items()
            },
            terms=self.terms
            and [
                {key: new(item) if key == "output" and item else item for key, item in term.items()}
                for term in self.terms
            ],
            rows={new(name): [new(item) for item in given] for name, given in self.rows.items()},
        )

    def read_rules(self) -> dict[str, Rule]:
        return {name: instance(Rule, rule) for name, rule in self.rules.items()}

    def read_adapters(self) -> dict[str, Adapter]:
        return {name: instance(Adapter, adapter) for name, adapter in self.adapters.items()}

    def read_penalties(self) -> list[Penalty]:
        return [instance(Penalty, penalty) for penalty in self.penalties]


def recipes(metadata: Mapping[str, str]) -> dict[int, Recipe]:
    """By the number of the training info, in order."""
    found = {key.removeprefix(KEY): text for key, text in metadata.items() if key.startswith(KEY)}
    return {int(number): Recipe.loads(found[number]) for number in sorted(filter(str.isdecimal, found), key=int)}


def without(metadata: dict[str, str], index: int) -> None:
    """Remove the recipe of a training info that is removed, in place; those behind it move up."""
    known = recipes(metadata)
    for number in known:
        del metadata[f"{KEY}{number}"]
    for number, recipe in known.items():
        if number != index:
            metadata[f"{KEY}{number - (number > index)}"] = recipe.dumps()


def write_optimizer(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer as JSON."""
    if isinstance(optimizer, Clipped):
        return {"name": optimizer.name, "value": optimizer.value, "inner": write_optimizer(optimizer.inner)}
    if isinstance(optimizer, OnnxOptimizer):
        model = optimizer.part.model.to_proto().SerializeToString()
        options: dict[str, Any] = {
            "lr": optimizer.lr,
            "weight_decay": optimizer.weight_decay,
            "by_element": optimizer.by_element,
        }
        options["initial"] = dict(optimizer.initial)
        return {"name": optimizer.name, **options, "model": base64.b64encode(model).decode()}
    if KINDS.get(optimizer.name) is type(optimizer):
        return {"name": optimizer.name, **asdict(optimizer)}  # type: ignore[call-overload]
    start = {slot: number for slot in optimizer.states if (number := initial(optimizer, slot))}
    return {"name": Stored.name, "lr": optimizer.lr, "states": list(optimizer.states), "initial": start}


def read_optimizer(given: Mapping[str, Any]) -> Optimizer:
    """What `write_optimizer` wrote."""
    options, name = _options(given, "optimizer")
    made: Optimizer
    if name in WRAPPERS:
        wrapped = instance(_Wrapped, options)
        made = WRAPPERS[name](read_optimizer(wrapped.inner), wrapped.value)
    elif name == OnnxOptimizer.name:
        own = instance(_OwnModel, options)
        try:
            model = base64.b64decode(own.model, validate=True)
        except ValueError as error:
            raise InvalidModelError(f"the metadata does not have the model of the optimizer: {error}") from error
        made = OnnxOptimizer(model, own.lr, own.weight_decay, own.by_element, own.initial)
    elif name == Stored.name:
        made = instance(Stored, options)
    elif name in KINDS:
        known = {f.name for f in fields(KINDS[name])}
        made = instance(KINDS[name], {k: v for k, v in options.items() if k in known})
    else:
        raise InvalidModelError(
            f"the file is trained by {name!r}, an optimizer that this version does not know: upgrade Onward"
        )
    return made


def write_loss(terms: Sequence[Term] | None) -> list[dict[str, Any]] | None:
    """A loss as JSON, if it is known in words."""
    if terms is None:
        return None
    return [
        {"name": loss_name(term), "options": asdict(_own(term)), "weight": term.weight, "output": term.output}
        for term in terms
    ]


def read_loss(given: Sequence[Mapping[str, Any]] | None) -> list[Term] | None:
    """What `write_loss` wrote; a loss of another version, which is not known here, is one that is known as a graph."""
    try:
        return None if given is None else [_read_term(term) for term in given]
    except OnwardError:
        return None


def _read_term(given: Mapping[str, Any]) -> Term:
    options, name = _options(given, "loss")
    if name not in LOSSES:
        raise InvalidModelError(f"the loss {name!r} is not known")
    loss = instance(LOSSES[name], options.pop("options", None))
    return replace(instance(Term, {"loss": name, **options}), loss=loss)


def _options(given: Any, what: str) -> tuple[dict[str, Any], str]:
    """The options of what has a name, and that."""
    options = dict(given) if isinstance(given, Mapping) else {}
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InvalidModelError(f"the metadata does not name the {what}")
    return options, name


@dataclass(frozen=True)
class _Wrapped:
    """An optimizer and a number, as JSON."""

    inner: dict[str, Any]
    value: float


@dataclass(frozen=True)
class _OwnModel:
    """An optimizer that is an ONNX model, as JSON."""

    model: str
    lr: float
    weight_decay: float = 0.0
    by_element: bool = False
    initial: dict[str, float] = field(default_factory=dict)


def _own(term: Term) -> Any:
    return term.loss


def loss_name(term: Term) -> str:
    return next(name for name, kind in LOSSES.items() if type(term.loss) is kind)


def loss_words(term: Term) -> str:
    """A term as a person would say it: `0.5 × cross_entropy(label_smoothing=0.1) of y`."""
    own = _own(term)
    options = [f"{f.name}={value!r}" for f in fields(own) if (value := getattr(own, f.name)) != f.default]
    weight = "" if term.weight == 1 else f"{term.weight:g} × "
    how = f"({', '.join(options)})" if options else ""
    return f"{weight}{loss_name(term)}{how} of {term.output}"


def penalty_words(penalty: Penalty) -> str:
    """A regularisation term as a person would say it: `0.0001 × L1 of head.*`."""
    patterns = [penalty.patterns] if isinstance(penalty.patterns, str) else penalty.patterns
    return f"{penalty.factor:g} × L{penalty.power} of {', '.join(patterns)}"


def is_stored(optimizer: Optimizer) -> bool:
    """Whether the update is known as a graph only."""
    while isinstance(optimizer, Clipped):
        optimizer = optimizer.inner
    return isinstance(optimizer, Stored)


def write_schedule(schedule: Schedule | None) -> dict[str, Any] | None:
    """A schedule as JSON."""
    if schedule is None:
        return None
    name = next((name for name, kind in SCHEDULES.items() if type(schedule) is kind), None)
    if name is None:
        raise OnwardError(OWN.format("saved"))
    own: Any = schedule
    options = {f.name: getattr(own, f.name) for f in fields(own)}
    if isinstance(schedule, Warmup):
        options["then"] = write_schedule(schedule.then)
    return {"name": name, **options}


def read_schedule(given: Mapping[str, Any] | None) -> Schedule | None:
    """What `write_schedule` wrote."""
    if given is None:
        return None
    options, name = _options(given, "schedule")
    if name not in SCHEDULES:
        raise InvalidModelError(f"the file has the schedule {name!r}, which this version does not know: upgrade Onward")
    then = read_schedule(options.pop("then", None))
    made: Schedule = instance(SCHEDULES[name], options)
    return replace(made, then=then) if isinstance(made, Warmup) and then is not None else made
