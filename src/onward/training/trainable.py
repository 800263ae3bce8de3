"""`onward.training.prepare`: a model, a loss and an optimizer become training graphs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypedDict

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor
from onward.graph.held_weights import lift_constants
from onward.graph.trained import is_trained
from onward.model import Model, load
from onward.training.autodiff.derivatives import named
from onward.training.autodiff.prepare_graph import constant_weights, differentiable, lower_for_gradients
from onward.training.autodiff.reverse import gradients
from onward.training.recipe.adapters import Adapter, LoRA, add_adapters
from onward.training.recipe.caches import empty_caches
from onward.training.recipe.facts import facts, in_brackets, table
from onward.training.recipe.groups import Group, NoDecay, Rule, exactly, matches, rules
from onward.training.recipe.losses import LOSSES, CausalLM, Dims, Loss, Penalty, Term, loss_named
from onward.training.recipe.modes import training_mode
from onward.training.recipe.optimizer_names import optimizer_named
from onward.training.recipe.optimizers import AVERAGE, Averaged, Clipped, Optimizer
from onward.training.recipe.parameters import Choice, NothingToTrain, choose
from onward.training.recipe.precision import refuse_mixed_precision
from onward.training.recipe.quantised_adapters import with_adapters
from onward.training.recipe.quantised_weights import real_numbers, with_float_weights
from onward.training.recipe.schedules import Schedule
from onward.training.recipe.user_models import OnnxLoss, OnnxOptimizer
from onward.training.recipe.wide_floats import holds_halves, in_float32, is_half
from onward.training.step_graphs import CLIP_EPSILON, LOSS, first_state, give_out, keep_outputs, take_out, updates

LABELS = ("labels", "input_lengths", "target_lengths")
"""The options of losses that are names of inputs."""
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(repr=False)
class Trainable:
    """A model that can be trained: two graphs of standard ops that follow each other in every step."""

    original: Model
    """As it was given: a tuned model is this one with other weights."""
    gradients: ir.Model
    """data, labels and parameters → loss, `<parameter>.grad`, and `<buffer>.next` of running statistics."""
    stored_update: ir.Model | None
    """What `update` is, where it is known as a graph only; else it is made of the optimizer when it is asked for."""
    optimizer: Optimizer
    parameters: dict[str, Array] = field(default_factory=dict)
    buffers: dict[str, Array] = field(default_factory=dict)
    """What a step changes without a gradient: running statistics, or whatever the model does not even hold."""
    state: dict[str, Array] = field(default_factory=dict)
    """Of the optimizer: `<parameter>.<slot>`."""
    labels: list[str] = field(default_factory=list)
    """The inputs that the loss added."""
    step: int = 0
    """How many steps were made."""
    rules: dict[str, Rule] = field(default_factory=dict)
    """Of each parameter, where they differ from one another."""
    clip_norm: float | None = None
    """The largest norm of all gradients together; `update` sees to it."""
    clip_epsilon: float = CLIP_EPSILON
    """What is added to that norm before the limit is divided by it."""
    accumulate: int = 1
    """Batches whose gradients are averaged for one step."""
    schedule: Schedule | None = None
    """The number of a step to the factor of the learning rate."""
    adapters: dict[str, Adapter] = field(default_factory=dict)
    """By the weight of the original that they belong to: its own parameters are trained in its place."""
    loss: list[Term] | None = None
    """What is minimised, where it is a sum of Onward's own losses of outputs; None: it is known as a graph only."""
    penalties: list[Penalty] = field(default_factory=list)
    """What is added to that, of parameters."""
    rows: list[str] = field(default_factory=list)
    """Parameters of which `update` reads the gradients of rows one by one: `gradients` gives these out as well."""

    def __repr__(self) -> str:
        return in_brackets("Trainable", self._facts)

    def _repr_html_(self) -> str:
        return table("Trainable", self._facts)

    @property
    def _facts(self) -> dict[str, str]:
        return facts(self) | {"labels": ", ".join(self.labels) or "none", "steps": str(self.step)}

    @property
    def update(self) -> ir.Model:
        """parameters, gradients, state, learning rate and step → `<parameter>.next`, `<state>.next`."""
        if self.stored_update is None:
            self.stored_update, _ = updates(
                self.parameters, self.optimizer, self.rules, self.clip_norm, self.clip_epsilon
            )
        return self.stored_update

    @property
    def label_inputs(self) -> list[str]:
        """The inputs that labels are: those that the loss added, and tokens that are labels of those before them."""
        own = [term.loss.labels for term in self.loss or () if isinstance(term.loss, CausalLM) and term.loss.labels]
        return list(dict.fromkeys([*self.labels, *own]))

    @property
    def uniform(self) -> bool:
        """Whether every element of every parameter goes by the same rule, and by no other element's gradient.

        `update` can be made piece by piece then: `updates({"w": piece}, optimizer)`.
        """
        return self.optimizer.by_element and not self.rules and self.clip_norm is None

    def weights(self, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """The weights of the original model that belong to parameters: adapters are merged."""
        own = {name for adapter in self.adapters.values() for name in (adapter.a, adapter.b)}
        found = {name: array for name, array in parameters.items() if name not in own}
        for name, adapter in self.adapters.items():
            base = self.gradients.graph.initializers[adapter.base].const_value
            assert base is not None
            found[name] = adapter.merged(base.numpy(), parameters)
        return found

    def average(self, state: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """The moving averages of the parameters, of its own state or that of a trainer."""
        now = self.state if state is None else state
        if AVERAGE not in self.optimizer.states:
            raise OnwardError("there are no averages of weights: prepare with average=0.999")
        return {name: now[f"{name}.{AVERAGE}"] for name in self.parameters}

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        symbolic: bool = False,
        scratch: bool = False,
        external_data: bool | None = None,
        durable: bool = False,
    ) -> None:
        """Write an inference model with the training step beside it, as ONNX's TrainingInfoProto.

        `symbolic`: with `Gradient` and the standard's optimizers instead of standard ops. `scratch`: its initialization
        gives parameters random numbers. `external_data`: weights and state go to a file beside it, as they do if they
        are too large for one file. `durable`: waits until the file would outlast a power failure.
        """
        from onward.training.info.write import to_model

        to_model(self, symbolic=symbolic, scratch=scratch).save(path, external_data=external_data, durable=durable)


class Options(TypedDict, total=False):
    """Options of `prepare` that hold for a model of any framework."""

    output: str | None
    groups: Sequence[Group]
    no_decay: NoDecay
    clip_value: float | None
    clip_norm: float | None
    accumulate: int
    average: float | None
    penalties: Sequence[Penalty]
    schedule: Schedule | None
    lora: LoRA | None
    mixed_precision: str | None


def prepare(
    model: Any,
    loss: str | Loss | Sequence[Term] | Any = "cross_entropy",
    optimizer: str | Optimizer | Any = "adamw",
    trainable: Choice = None,
    *,
    output: str | None = None,
    train_mode: bool = True,
    groups: Sequence[Group] = (),
    no_decay: NoDecay = (),
    clip_value: float | None = None,
    clip_norm: float | None = None,
    accumulate: int = 1,
    average: float | None = None,
    penalties: Sequence[Penalty] = (),
    schedule: Schedule | None = None,
    lora: LoRA | None = None,
    mixed_precision: str | None = None,
) -> Trainable:
    """Make a model trainable.

    `loss` and `optimizer` are names (`cross_entropy`, `mse` …; `sgd`, `adamw` …), objects with options, or ONNX models
    (see `OnnxLoss`, `OnnxOptimizer`); a list of terms is a weighted sum of losses. The loss is of `output`, the first
    one unless given. `trainable` chooses weights by patterns of their names, or by a predicate. With `train_mode`
    dropout and batch normalisation behave as in training.

    For some parameters `groups` change the learning rate or the weight decay, or freeze them; `no_decay` spares those
    of the names given, or "vectors". Gradients are clipped element by element or by the norm of all, and averaged over
    `accumulate` batches. `average` keeps an exponential moving average of weights. `lora` trains adapters instead.
    `mixed_precision`, float16 or bfloat16, is refused with the reason: ONNX Runtime has no kernels for it. Weights of
    16 bits are trained as float32, in which the whole model computes from then on.
    """
    if mixed_precision is not None:
        refuse_mixed_precision(mixed_precision)
    if accumulate < 1:
        raise OnwardError(f"gradients are accumulated over {accumulate} batches: give at least 1")
    for what, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
        if limit is not None and not limit > 0:
            raise OnwardError(f"{what} is {limit}: give a number above 0")
    if average is not None and not 0 <= average < 1:
        raise OnwardError(
            f"average is {average}: give the share of the average that stays in a step, from 0 to below 1"
        )
    if lora is not None and not isinstance(lora, LoRA):
        raise OnwardError(f"lora is {lora!r}: write onward.training.lora(rank=8)")
    how = _wrapped(optimizer, clip_value, average)
    begin = partial(
        _begun,
        terms=loss_terms(loss),
        trainable=trainable,
        output=output,
        train_mode=train_mode,
        groups=groups,
        penalties=penalties,
        lora=lora,
    )
    given = load(model)
    try:
        begun = begin(given)
    except NothingToTrain:
        floats = in_float32(given) if lora and holds_halves(given) else with_float_weights(given)
        if floats is None:
            raise
        given = floats
        begun = begin(given)
    if any(map(is_half, [begun.loss, *begun.chosen])):
        begun = begin(in_float32(given))
    return assembled(
        begun.original,
        begun.graph,
        begun.loss,
        begun.chosen,
        how,
        begun.buffers,
        [group for group in groups if not group.frozen],
        no_decay,
        labels=begun.labels,
        clip_norm=clip_norm,
        accumulate=accumulate,
        schedule=schedule,
        adapters=begun.adapters,
        loss=begun.said,
        penalties=list(penalties),
    )


@dataclass(frozen=True)
class _Begun:
    """A graph with its loss, before there are gradients."""

    original: Model
    graph: ir.Model
    loss: ir.Value
    chosen: list[ir.Value]
    buffers: dict[str, str]
    labels: list[str]
    adapters: dict[str, Adapter]
    said: list[Term] | None


def _begun(
    given: Model,
    terms: Sequence[Term],
    trainable: Choice,
    output: str | None,
    train_mode: bool,
    groups: Sequence[Group],
    penalties: Sequence[Penalty],
    lora: LoRA | None,
) -> _Begun:
    original, own = with_adapters(given, lora) if lora else (given, [])
    graph = differentiable(original)
    constant_weights(graph.graph)
    empty_caches(graph)
    lift_constants(graph, is_trained if trainable is None else None)
    buffers = training_mode(graph) if train_mode else {}
    adapters = add_adapters(graph, lora, own) if lora else {}
    own += [name for adapter in adapters.values() for name in (adapter.a, adapter.b)]
    weights = set(graph.graph.initializers)
    op = Builder(graph)
    labels: list[str] = []
    target, said = _loss(op, output, terms, labels)
    chosen = _chosen(graph.graph, target, trainable, weights, own, groups)
    value = give_out(op, _penalised(op, target, chosen, penalties), LOSS)
    return _Begun(original, graph, value, chosen, buffers, labels, adapters, said)


def assembled(
    original: Model,
    graph: ir.Model,
    target: ir.Value,
    chosen: Sequence[ir.Value],
    optimizer: Optimizer,
    buffers: Mapping[str, str],
    groups: Sequence[Group] = (),
    no_decay: NoDecay = (),
    **fields: Any,
) -> Trainable:
    """A trainable model of a graph that gives out the loss `target`, which the gradients of weights are added to.

    `buffers` are running statistics, each with the output that holds it after a step; `fields` are those of Trainable.
    """
    lower_for_gradients(graph, target, list(chosen))
    op = Builder(graph)
    found = zip(chosen, gradients(op, target, list(chosen)), strict=True)
    slopes = {parameter.name or "": slope for parameter, slope in found if slope is not None}
    if not slopes:
        raise OnwardError(f"no gradient of the loss reaches a weight; {len(chosen)} were to be trained")
    for name, slope in slopes.items():
        give_out(op, slope, f"{name}.grad")
    names = list(slopes)
    arrays = {name: take_out(graph.graph, name) for name in [*names, *buffers]}
    keep_outputs(graph, {LOSS, *(f"{name}.grad" for name in names), *buffers.values()})
    common.RemoveUnusedNodesPass()(graph)
    parameters = {name: arrays[name] for name in names}
    own = rules(parameters, groups, no_decay, optimizer.weight_decay)
    if all(rule == Rule(1.0, optimizer.weight_decay) for rule in own.values()):
        own = {}
    updates({"w": np.zeros(1, np.float32)}, optimizer)  # what is wrong with an optimizer is said now
    state = {key: array for name in names for key, array in first_state(name, arrays[name], optimizer).items()}
    kept = {name: arrays[name] for name in buffers}
    return Trainable(original, graph, None, optimizer, parameters, kept, state, rules=own, **fields)


def _is_model(given: Any) -> bool:
    return isinstance(given, Model | onnx.ModelProto | os.PathLike) or (
        isinstance(given, str) and given.endswith(".onnx")
    )


def _wrapped(optimizer: Any, clip_value: float | None, average: float | None) -> Optimizer:
    how: Optimizer
    if _is_model(optimizer):
        how = OnnxOptimizer(optimizer)
    else:
        how = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
        if isinstance(how, type) or not hasattr(how, "by_element"):
            raise OnwardError(
                f"{how!r} is not an optimizer: give a name, such as 'adamw', one of onward.training such as AdamW(), "
                "or an ONNX model; from_torch takes those of torch.optim"
            )
    check_rate(how.lr)
    if clip_value is not None:
        how = Clipped(how, clip_value)
    return how if average is None else Averaged(how, average)


def check_rate(lr: float) -> None:
    if not (math.isfinite(lr) and lr >= 0):
        raise OnwardError(f"the learning rate is {lr}: give a number that is not negative")


def loss_terms(loss: Any) -> list[Term]:
    """Whatever says a loss as terms of a sum."""
    if isinstance(loss, Term):
        return [loss]
    if isinstance(loss, list | tuple):
        return [term for given in loss for term in loss_terms(given)]
    return [Term(OnnxLoss(loss) if _is_model(loss) else loss)]


def _loss(
    op: Builder, output: str | None, terms: Sequence[Term], labels: list[str]
) -> tuple[Tensor, list[Term] | None]:
    """The sum of terms, and the terms with all names as they are in the graph, if they are Onward's own.

    The inputs that they ask for are added to the graph, and to `labels`.
    """
    asked: dict[str, str] = {}

    def target(name: str, dtype: ir.DataType, dims: Dims | None) -> Tensor:
        for value in op.graph.inputs:
            if value.name == asked.setdefault(name, name):
                if value.dtype != dtype:
                    raise OnwardError(
                        f"the loss takes {name!r} as {dtype.name}, but it is {op.tensor(value).dtype.name}"
                    )
                return op.tensor(value)
        value = ir.Value(
            name=op.names.value(name), type=ir.TensorType(dtype), shape=None if dims is None else ir.Shape(dims)
        )
        op.graph.inputs.append(value)
        asked[name] = value.name or name
        labels.append(asked[name])
        return op.tensor(value)

    if not terms:
        raise OnwardError("there is not a loss: give one, such as 'mse'")
    op.scope = "loss/"
    found: list[Tensor] = []
    said: list[Term] = []
    for term in terms:
        how: Any = loss_named(term.loss) if isinstance(term.loss, str) else term.loss
        if isinstance(how, type) or not hasattr(how, "build"):
            raise OnwardError(
                f"{how!r} is not a loss: give a name, such as 'mse', one of onward.training such as CrossEntropy(), "
                "or an ONNX model; from_torch takes those of torch.nn"
            )
        if isinstance(how, CausalLM):
            how = how.bound(op.graph)
        prediction = _prediction(op.graph, term.output or output)
        value = how.build(op, real_numbers(op, prediction), target)
        found.append(value if term.weight == 1 else value * term.weight)
        alike = getattr(how, "sample_weight", None) is None  # other frameworks have no words for what weights samples
        if type(how) in LOSSES.values() and prediction.is_graph_output() and alike:
            own: dict[str, Any] = {k: asked[name] for k, name in vars(how).items() if k in LABELS and name in asked}
            if getattr(how, "weight", None) is not None:
                own["weight"] = tuple(map(float, how.weight))
            said.append(Term(replace(how, **own), term.weight, prediction.name))
    op.scope = ""
    return op.total(found), said if len(said) == len(terms) else None


def _prediction(graph: ir.Graph, output: str | None) -> ir.Value:
    if output is not None:
        return named(graph, output)
    if not graph.outputs:
        raise OnwardError("the model has no output to compute a loss of")
    return graph.outputs[0]


def _chosen(
    graph: ir.Graph,
    loss: Tensor,
    trainable: Choice,
    weights: set[str],
    adapters: Sequence[str],
    groups: Sequence[Group],
) -> list[ir.Value]:
    """The parameters: those of `weights`, which are the model's own and not the loss's."""
    chosen = []
    if adapters:
        chosen = choose(graph, loss.value, [exactly(name) for name in adapters])
    if trainable is not None or not adapters:
        chosen += [value for value in choose(graph, loss.value, trainable, weights) if value not in chosen]
    kept = [v for v in chosen if not any(group.frozen and group.has(v.name or "") for group in groups)]
    if not kept:
        raise OnwardError("every parameter is in a group that is frozen: leave some of them out")
    return kept


def _penalised(op: Builder, loss: Tensor, chosen: Sequence[ir.Value], penalties: Sequence[Penalty]) -> Tensor:
    op.scope = "loss/"
    terms = [loss]
    for penalty in penalties:
        fitting = [op.tensor(value) for value in chosen if matches(value.name or "", penalty.patterns)]
        if not fitting:
            raise OnwardError(f"a penalty: no trained weight is called {penalty.patterns!r}")
        terms.append(penalty.build(op, fitting).cast(loss.dtype))
    op.scope = ""
    return op.total(terms)
