"""One graph of a whole training step: forward, loss, gradients, optimizer, and the count of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.graph.build import Builder, Tensor
from onward.graph.walk import all_graphs
from onward.spec.training import TRAINING
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.groups import Rule
from onward.training.recipe.optimizers import SGD, Adagrad, Optimizer
from onward.training.recipe.user_models import adopt
from onward.training.step_graphs import LEARNING_RATE, LOSS, NUMBERS, ROWS, STEP

if TYPE_CHECKING:
    from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
Standard = OnnxAdam | OnnxAdagrad | OnnxMomentum


@dataclass
class Step:
    """The graph, and where things are in it."""

    model: ir.Model
    loss: ir.Value
    count: ir.Value
    parameters: dict[str, ir.Value]
    gradients: dict[str, ir.Value]
    state: dict[str, ir.Value]
    rows: dict[str, list[ir.Value]]
    """Of a parameter, the gradients of rows and their numbers, where the optimizer reads them."""
    changes: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)
    """What is changed, and what it is after the step."""


def whole_step(trainable: Trainable, symbolic: bool = False) -> Step:
    """Parameters and running statistics are inputs of the graph; state and count are initializers."""
    model = trainable.gradients.clone()
    op = Builder(model)
    graph = model.graph
    given = {value.name or "": value for value in graph.inputs}
    outputs = {value.name or "": value for value in graph.outputs}
    loss = outputs[LOSS]
    parameters = {name: given[name] for name in trainable.parameters}
    changes = [(given[name], outputs[f"{name}.next"]) for name in trainable.buffers]
    if symbolic:
        found = _symbolic_gradients(op, loss, parameters, [v for name, v in given.items() if name not in parameters])
    else:
        found = {name: outputs[f"{name}.grad"] for name in parameters}
    count = _initializer(op, STEP, np.asarray(trainable.step, np.int64))
    now = op.tensor(count) + 1
    now.value.name = op.names.value(f"{STEP}.next")
    rate = ir.Value(name=op.names.value(LEARNING_RATE), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([]))
    graph.inputs.append(rate)
    state = {name: _initializer(op, name, array) for name, array in trainable.state.items()}
    standard = standard_form(trainable.optimizer) if symbolic and trainable.clip_norm is None else None
    if standard is not None:
        changes += _symbolic_update(op, trainable, standard, parameters, found, state, rate, now)
    else:
        known = {**parameters, **{f"{name}.grad": g for name, g in found.items()}, **state}
        known |= {LEARNING_RATE: rate, STEP: now.value}
        known |= {f"{name}.{part}": outputs[f"{name}.{part}"] for name in trainable.rows for part in (ROWS, NUMBERS)}
        update = trainable.update.clone().graph
        names = [(value.name or "").removesuffix(".next") for value in update.outputs]
        _, results = adopt(op, update, [known[value.name or ""] for value in update.inputs])
        changes += [(known[name], result) for name, result in zip(names, results, strict=True)]
    changes.append((count, now.value))
    graph.outputs.clear()
    kept = [found[name] for name in trainable.rows]  # which nothing may read then
    graph.outputs.extend([loss, *kept, *(after for _, after in changes)])
    common.RemoveUnusedNodesPass()(model)
    rows = {name: [outputs[f"{name}.{part}"] for part in (ROWS, NUMBERS)] for name in trainable.rows}
    return Step(model, loss, count, parameters, found, state, rows, changes)


def standard_form(optimizer: Optimizer) -> Standard | None:
    """The optimizer of the standard that does the same, if there is one."""
    if isinstance(optimizer, OnnxAdam | OnnxAdagrad | OnnxMomentum):
        return optimizer
    if isinstance(optimizer, SGD) and optimizer.momentum:
        mode = "nesterov" if optimizer.nesterov else "standard"
        return OnnxMomentum(alpha=optimizer.momentum, beta=1 - optimizer.dampening, mode=mode)  # type: ignore[arg-type]
    if isinstance(optimizer, Adagrad):
        return OnnxAdagrad(decay_factor=optimizer.lr_decay, epsilon=optimizer.eps)
    return None


def _initializer(op: Builder, name: str, array: Array) -> ir.Value:
    tensor = ir.Tensor(array, name=op.names.value(name))
    value = ir.Value(
        name=tensor.name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape)
    )
    op.graph.register_initializer(value)
    return value


def _symbolic_gradients(
    op: Builder, loss: ir.Value, parameters: Mapping[str, ir.Value], others: Iterable[ir.Value]
) -> dict[str, ir.Value]:
    fixed = list(others)
    op.model.opset_imports[TRAINING] = 1
    names: dict[str, Any] = {"xs": list(parameters), "zs": [value.name for value in fixed], "y": loss.name}
    if not fixed:
        del names["zs"]
    found = op.many("Gradient", len(parameters), *parameters.values(), *fixed, domain=TRAINING, **names)
    for (name, parameter), tensor in zip(parameters.items(), found, strict=True):
        tensor.value.name = op.names.value(f"{name}.derivative")
        tensor.value.type, tensor.value.shape = parameter.type, parameter.shape
    return {name: tensor.value for name, tensor in zip(parameters, found, strict=True)}


def _symbolic_update(
    op: Builder,
    trainable: Trainable,
    optimizer: Standard,
    parameters: Mapping[str, ir.Value],
    gradients: Mapping[str, ir.Value],
    state: Mapping[str, ir.Value],
    rate: ir.Value,
    now: Tensor,
) -> list[tuple[ir.Value, ir.Value]]:
    """A node of the standard for all parameters that go by one rule."""
    default = Rule(1.0, trainable.optimizer.weight_decay)
    groups: dict[Rule, list[str]] = {}
    for name in parameters:
        groups.setdefault(trainable.rules.get(name, default), []).append(name)
    count = op.many("Add", 1, now, op.index(optimizer.first - 1))[0] if optimizer.first != 1 else now
    changes = []
    for rule, names in groups.items():
        own = op.tensor(rate) if rule.lr == 1 else op.tensor(rate) * rule.lr
        kinds = [[parameters[n] for n in names], [gradients[n] for n in names]]
        slots = [[state[f"{n}.{slot}"] for n in names] for slot in optimizer.states]
        tensors = [value for kind in (*kinds, *slots) for value in kind]
        changed = [value for kind in (kinds[0], *slots) for value in kind]
        attributes = {**optimizer.attributes, "norm_coefficient": float(rule.decay)}
        results = op.many(optimizer.op_type, len(changed), own, count, *tensors, domain=TRAINING, **attributes)
        for value, result in zip(changed, results, strict=True):
            result.value.name = op.names.value(f"{value.name}.next")
            result.value.type, result.value.shape = value.type, value.shape
            changes.append((value, result.value))
    return changes


def all_names(graph: ir.Graph) -> set[str]:
    """The names of all values of a graph and of the bodies in it."""
    found: set[str] = set()
    for inner in all_graphs(graph):
        values = [*inner.inputs, *inner.initializers.values(), *(o for node in inner for o in node.outputs)]
        found.update(value.name for value in values if value.name)
    return found
