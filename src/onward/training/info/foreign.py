"""Training information that others wrote: a `Gradient`, and an optimizer of the standard or plain ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from onward.errors import UnsupportedError
from onward.graph.build import Builder
from onward.hub.large_tensors import Held, held_by
from onward.model import Model
from onward.spec.training import TRAINING
from onward.training.info.combined import combined, cut, standard_ops, values_of
from onward.training.info.preview_ops import FORMULAS, OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.described import Stored, without
from onward.training.recipe.groups import Rule
from onward.training.recipe.optimizers import Optimizer
from onward.training.step_graphs import LEARNING_RATE, LOSS, STEP
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
KINDS: Mapping[str, Any] = {"Adam": OnnxAdam, "Adagrad": OnnxAdagrad, "Momentum": OnnxMomentum}


@dataclass
class _Found:
    """What the graph of an algorithm is seen to be."""

    loss: str
    gradients: dict[str, str]
    """Parameter to the value that is its gradient."""
    bound: dict[str, str]
    arrays: dict[str, Array]
    """The initializers of the algorithm."""
    inputs: list[str]
    """Of the algorithm."""
    state: dict[str, str] = field(default_factory=dict)
    """Initializer to `<parameter>.<slot>`."""


def from_others(model: Model, index: int) -> tuple[Trainable, dict[str, str]]:
    """A trainable model, and what the initializers of the file are called in it."""
    info = model.training_info[index]
    found = _found(info, set(model.ir.graph.initializers), model.held)
    named = [found.loss, *found.gradients.values()]  # values that are given out keep their names
    whole = standard_ops(combined(model, index, named))
    weights = whole.graph.initializers
    parameters = {name: _array(weights[name]) for name in found.gradients}
    buffers = {n: _array(weights[n]) for n in found.bound if n not in parameters and n not in found.arrays}
    derive = _derivation(whole, found, list(buffers), {value.name or "" for value in model.ir.graph.inputs})
    known = _standard(info.algorithm, found)
    rules: dict[str, Rule] = {}
    if known is not None:
        optimizer, rules = known
        update = None
    else:
        optimizer, update = _stored(whole, found, info.algorithm, parameters)
    state = {name: found.arrays[file] for file, name in found.state.items()}
    labels = [value.name or "" for value in derive.graph.inputs if value.name in found.inputs]
    others = [other for i, other in enumerate(model.training_info) if i != index]
    inference = model.ir.clone()
    without(inference.metadata_props, index)
    original = Model(inference, others, model.path, model.ir_version, model.data_files, model.held)
    made = Trainable(original, derive, update, optimizer, parameters, buffers, state, labels, rules=rules)
    return made, found.state


def _found(info: onnx.TrainingInfoProto, weights: set[str], held: Held) -> _Found:
    nodes = [node for node in info.algorithm.node if node.op_type == "Gradient" and node.domain == TRAINING]
    if not nodes:
        raise UnsupportedError(
            "the training info has no Gradient node, so Onward cannot tell which values are gradients"
        )
    losses: set[str] = set()
    gradients: dict[str, str] = {}
    bound = {entry.key: entry.value for entry in info.update_binding}
    for node in nodes:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        names = [name.decode() for name in attributes.get("xs", ())]
        used = {x: dx for x, dx in zip(names, node.output, strict=False) if dx and x in bound and x in weights}
        if used:
            losses.add(attributes.get("y", b"").decode())
        gradients |= used
    if not gradients:
        raise UnsupportedError("no update is bound to a weight of the model that a Gradient node is about")
    if len(losses) > 1:
        raise UnsupportedError(f"there is more than one loss: {', '.join(sorted(losses))}")
    arrays = {}
    for tensor in info.algorithm.initializer:
        data = held_by(tensor, held)
        arrays[tensor.name] = np.array(numpy_helper.to_array(tensor) if data is None else data.numpy())
    return _Found(losses.pop(), gradients, bound, arrays, [value.name for value in info.algorithm.input])


def _derivation(whole: ir.Model, found: _Found, buffers: list[str], inputs: set[str]) -> ir.Model:
    starts = {name: name for name in (*found.gradients, *buffers)}
    ends = {found.loss: LOSS, **{dx: f"{x}.grad" for x, dx in found.gradients.items()}}
    ends |= {found.bound[name]: f"{name}.next" for name in buffers}
    derive = cut(whole, starts, ends, inputs)
    loss = values_of(derive.graph)[LOSS]
    if loss.shape is None or loss.shape.rank() != 0:  # its derivative is that of the sum
        op = Builder(derive)
        total = op.ReduceSum(op.tensor(loss), keepdims=0).value
        loss.name, total.name = op.names.value(f"{LOSS}.parts"), LOSS
        derive.graph.outputs[list(derive.graph.outputs).index(loss)] = total
    return derive


def _standard(algorithm: onnx.GraphProto, found: _Found) -> tuple[Optimizer, dict[str, Rule]] | None:
    """The optimizer, if nodes of the standard of one kind update every parameter directly."""
    nodes = [node for node in algorithm.node if node.domain == TRAINING and node.op_type in FORMULAS]
    made: set[Any] = set()
    rules: dict[str, Rule] = {}
    state: dict[str, str] = {}
    for node in nodes:
        options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        options = {key: value.decode() if isinstance(value, bytes) else value for key, value in options.items()}
        decay = options.pop("norm_coefficient", 0.0)
        kind, (*_, kinds) = KINDS[node.op_type], FORMULAS[node.op_type]
        rate, count, *tensors = node.input
        size = len(tensors) // kinds
        rows = [tensors[i::size] for i in range(size)]
        outputs = [list(node.output)[i::size] for i in range(size)]
        for (x, g, *slots), (after, *changed) in zip(rows, outputs, strict=True):
            if found.gradients.get(x) != g or found.bound.get(x) != after:
                return None
            if any(s not in found.arrays or found.bound.get(s) != c for s, c in zip(slots, changed, strict=True)):
                return None
            rules[x] = Rule(1.0, decay)
            state |= {s: f"{x}.{name}" for s, name in zip(slots, kind.slots, strict=True)}
        first = _first(algorithm, found, count)
        lr = found.arrays[rate].item() if rate in found.arrays else None if rate in found.inputs else "computed"
        if first is None or lr == "computed":
            return None
        defaults = {"epsilon": 0.0} if node.op_type != "Momentum" else {}
        options = {**defaults, **options, **({"first": first} if first >= 0 else {}), **({"lr": lr} if lr else {})}
        made.add(kind(**options))
    if len(made) != 1 or rules.keys() != found.gradients.keys() or state.keys() != _states(found, algorithm):
        return None
    found.state = state
    optimizer = made.pop()
    if len(set(rules.values())) == 1:
        optimizer, rules = replace(optimizer, weight_decay=next(iter(rules.values())).decay), {}
    return optimizer, rules


def _states(found: _Found, algorithm: onnx.GraphProto) -> set[str]:
    """The initializers that are changed, but for counts of steps."""
    return {n for n in found.bound if n in found.arrays and _first(algorithm, found, n) is None}


def _first(algorithm: onnx.GraphProto, found: _Found, count: str) -> int | None:
    """What a count of steps is at the first one; -1 if it is an input, None if a value is no count."""
    if count in found.inputs:
        return -1
    plus_one = _increments(algorithm, found)
    if count in plus_one.values():
        before = next(name for name, after in plus_one.items() if after == count)
        return int(found.arrays[before].item()) + 1
    return int(found.arrays[count].item()) if count in plus_one else None


def _increments(algorithm: onnx.GraphProto, found: _Found) -> dict[str, str]:
    """Initializers that are bound to themselves and one more."""
    made = {}
    for node in algorithm.node:
        if node.op_type == "Add" and len(node.input) == 2:
            for name, other in (tuple(node.input), tuple(node.input)[::-1]):
                one, count = found.arrays.get(other), found.arrays.get(name)
                if found.bound.get(name) != node.output[0] or one is None or count is None or other in found.bound:
                    continue
                if one.size == count.size == 1 and one.item() == 1:
                    made[name] = node.output[0]
    return made


def _stored(
    whole: ir.Model, found: _Found, algorithm: onnx.GraphProto, parameters: Mapping[str, Array]
) -> tuple[Optimizer, ir.Model]:
    """The update as the graph that it is."""
    found.state, slots = _owned(whole, found, _states(found, algorithm), parameters)
    counts = {name: f"{STEP}.{i}" for i, name in enumerate(_increments(algorithm, found))}
    starts = {name: name for name in parameters} | {dx: f"{x}.grad" for x, dx in found.gradients.items()}
    starts |= found.state | counts
    ends = {found.bound[name]: f"{name}.next" for name in parameters}
    ends |= {found.bound[file]: f"{name}.next" for file, name in found.state.items()}
    update = cut(whole, starts, ends)
    values = {value.name: value for value in update.graph.inputs}
    rest = [value for name, value in values.items() if name not in starts.values()]
    if len(rest) > 1:
        names = ", ".join(str(value.name) for value in rest)
        raise UnsupportedError(f"Onward cannot tell which of the inputs {names} is the learning rate")
    for value in rest:
        _feed(update, value, LEARNING_RATE, ir.DataType.FLOAT, 0)
    for name, new in counts.items():
        _feed(update, values[new], STEP, ir.DataType.INT64, int(found.arrays[name].item()) - 1)
    return Stored(states=slots), update


def _owned(
    whole: ir.Model, found: _Found, states: set[str], parameters: Mapping[str, Array]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """States by the parameter whose gradient they follow, and what they are called there."""
    values = values_of(whole.graph)
    sources = {values[dx]: x for x, dx in found.gradients.items()}
    owned: dict[str, list[str]] = {name: [] for name in parameters}
    for state in (name for name in found.bound if name in states):
        owners, seen, waiting = set(), set(), [values[found.bound[state]]]
        while waiting:
            value = waiting.pop()
            if value in sources:
                owners.add(sources[value])
            elif value not in seen and (node := value.producer()) is not None:
                waiting += [v for v in node.inputs if v is not None]
            seen.add(value)
        owner = owners.pop() if len(owners) == 1 else None
        if owner is None or found.arrays[state].shape != parameters[owner].shape:
            raise UnsupportedError(f"Onward cannot tell which parameter the state {state!r} belongs to")
        owned[owner].append(state)
    if len({len(names) for names in owned.values()}) > 1:
        raise UnsupportedError("parameters have different numbers of states")
    slots = tuple(f"state{i}" for i in range(len(next(iter(owned.values())))))
    return {file: f"{x}.{slot}" for x, files in owned.items() for file, slot in zip(files, slots, strict=True)}, slots


def _feed(update: ir.Model, value: ir.Value, name: str, dtype: ir.DataType, more: int) -> None:
    """Let a scalar of our name, and `more`, take the place of an input, whatever its dtype and shape."""
    op = Builder(update)
    shape, own = value.shape, op.tensor(value).dtype
    given = next((v for v in update.graph.inputs if v.name == name), None)
    if given is None:
        given = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))
        update.graph.inputs.append(given)
    new = op.tensor(given) + more if more else op.tensor(given)
    new = new.cast(own)
    if shape is not None and shape.rank():
        new = op.Reshape(new, op.ints([1] * shape.rank()))
    value.replace_all_uses_with(new.value)
    update.graph.inputs.remove(value)
    update.graph.sort()


def _array(value: ir.Value) -> Array:
    assert value.const_value is not None
    return np.array(value.const_value.numpy())
