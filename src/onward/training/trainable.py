"""`onward.training.prepare`: a model, a loss and an optimizer become training graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import OnwardError
from onward.model import Model, load
from onward.training.autodiff import gradients
from onward.training.build import Builder, Tensor
from onward.training.gradient import named
from onward.training.losses import Dims, Loss, loss_named
from onward.training.modes import training_mode
from onward.training.optimizers import Moment, Optimizer, optimizer_named
from onward.training.parameters import Choice, choose
from onward.training.prepare_graph import differentiable, lower_for_gradients

LOSS = "onward.loss"
LEARNING_RATE = "onward.lr"
STEP = "onward.step"
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Trainable:
    """A model that can be trained: two graphs of standard ops that follow each other in every step."""

    original: Model
    """As it was given: a tuned model is this one with other weights."""
    gradients: ir.Model
    """data, labels and parameters → loss, `<parameter>.grad`, and `<buffer>.next` of running statistics."""
    update: ir.Model
    """parameters, gradients, state, learning rate and step → `<parameter>.next`, `<state>.next`."""
    optimizer: Optimizer
    parameters: dict[str, Array] = field(default_factory=dict)
    buffers: dict[str, Array] = field(default_factory=dict)
    """Running statistics, which a step changes without a gradient."""
    state: dict[str, Array] = field(default_factory=dict)
    """Of the optimizer: `<parameter>.<slot>`."""
    labels: list[str] = field(default_factory=list)
    """The inputs that the loss added."""
    step: int = 0
    """How many steps were made."""


def prepare(
    model: Any,
    loss: str | Loss = "cross_entropy",
    optimizer: str | Optimizer = "adamw",
    trainable: Choice = None,
    *,
    output: str | None = None,
    train_mode: bool = True,
) -> Trainable:
    """Make a model trainable.

    `loss` and `optimizer` are names (`cross_entropy`, `mse` …; `sgd`, `adamw` …), or objects with options. The loss
    is of `output`, the first one unless given. `trainable` chooses weights by patterns of their names, or by a
    predicate. With `train_mode` dropout and batch normalisation behave as in training.
    """
    original = load(model)
    graph = differentiable(original)
    buffers = training_mode(graph) if train_mode else {}
    op = Builder(graph)
    labels: list[str] = []
    value = _loss(op, _prediction(graph.graph, output), loss_named(loss) if isinstance(loss, str) else loss, labels)
    chosen = choose(graph.graph, value, trainable)
    value, chosen = lower_for_gradients(graph, value, chosen)
    op = Builder(graph)
    for parameter, found in zip(chosen, gradients(op, value, chosen), strict=True):
        assert found is not None, "chosen are only weights that the loss depends on"
        give_out(op, found, f"{parameter.name}.grad")
    names = [parameter.name or "" for parameter in chosen]
    arrays = {name: take_out(graph.graph, name) for name in [*names, *buffers]}
    keep_outputs(graph, {LOSS, *(f"{name}.grad" for name in names), *buffers.values()})
    common.RemoveUnusedNodesPass()(graph)
    how = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
    parameters = {name: arrays[name] for name in names}
    update, state = updates(parameters, how)
    statistics = {name: arrays[name] for name in buffers}
    return Trainable(original, graph, update, how, parameters, statistics, state, labels)


def _prediction(graph: ir.Graph, output: str | None) -> ir.Value:
    if output is not None:
        return named(graph, output)
    if not graph.outputs:
        raise OnwardError("the model has no output to compute a loss of")
    return graph.outputs[0]


def _loss(op: Builder, prediction: ir.Value, loss: Loss, labels: list[str]) -> ir.Value:
    def target(name: str, dtype: ir.DataType, dims: Dims | None) -> Tensor:
        for value in op.graph.inputs:
            if value.name == name:
                return op.tensor(value)
        value = ir.Value(
            name=op.names.value(name), type=ir.TensorType(dtype), shape=None if dims is None else ir.Shape(dims)
        )
        op.graph.inputs.append(value)
        labels.append(value.name or name)
        return op.tensor(value)

    op.scope = "loss/"
    found = loss.build(op, op.tensor(prediction), target)
    op.scope = ""
    return give_out(op, found, LOSS)


def give_out(op: Builder, tensor: Tensor, name: str) -> ir.Value:
    """Make a tensor an output of the graph under a name."""
    value = op.Identity(tensor).value
    value.name = op.names.value(name)
    op.graph.outputs.append(value)
    return value


def take_out(graph: ir.Graph, name: str) -> Array:
    """Make an initializer an input, to be fed in every step; gives its elements."""
    value = graph.initializers.pop(name)
    assert value.const_value is not None
    array = value.const_value.numpy()
    value.const_value = None
    if value not in graph.inputs:
        graph.inputs.append(value)
    return array


def keep_outputs(model: ir.Model, names: set[str]) -> None:
    """Give out only these."""
    kept = [value for value in model.graph.outputs if value.name in names]
    model.graph.outputs.clear()
    model.graph.outputs.extend(kept)


def updates(parameters: Mapping[str, Array], optimizer: Optimizer) -> tuple[ir.Model, dict[str, Array]]:
    """The graph of an optimizer's step, and the state it starts from."""
    graph = ir.Graph([], [], nodes=[], name="update", opset_imports={"": 21})
    model = ir.Model(graph, ir_version=10, producer_name="onward")
    op = Builder(model)

    def given(name: str, dtype: ir.DataType, shape: tuple[int, ...]) -> Tensor:
        value = ir.Value(name=op.names.value(name), type=ir.TensorType(dtype), shape=ir.Shape(shape))
        graph.inputs.append(value)
        return op.tensor(value)

    rate, step = given(LEARNING_RATE, ir.DataType.FLOAT, ()), given(STEP, ir.DataType.INT64, ())
    now = Moment(rate, step, optimizer.weight_decay)
    state: dict[str, Array] = {}
    for name, array in parameters.items():
        dtype = ir.DataType.from_numpy(array.dtype)
        w, g = given(name, dtype, array.shape), given(f"{name}.grad", dtype, array.shape)
        slots = {slot: given(f"{name}.{slot}", dtype, array.shape) for slot in optimizer.states}
        state |= {f"{name}.{slot}": np.zeros_like(array) for slot in slots}
        op.scope = f"{name}/"
        after, changed = optimizer.update(op, w, g, slots, now)
        op.scope = ""
        give_out(op, after, f"{name}.next")
        for slot, tensor in changed.items():
            give_out(op, tensor, f"{name}.{slot}.next")
    return model, state
