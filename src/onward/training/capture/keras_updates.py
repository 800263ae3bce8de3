"""What an optimizer of Keras does to all variables together, as one graph: rows of embeddings, constraints, factors.

The step of a variable is traced by itself where that says all (`keras_optimizers`). Here `apply` is traced as `fit`
calls it: gradients of embeddings come as the rows that were looked up, states have any shape, constraints follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.trained import Storage, Trained, trained
from onward.graph.build import Builder, Tensor
from onward.training.capture.keras_optimizers import rate_of, scaled
from onward.training.recipe.described import Stored
from onward.training.recipe.optimizers import AVERAGE
from onward.training.recipe.user_models import adopt
from onward.training.step_graphs import LEARNING_RATE, NUMBERS, ROWS, STEP, give_out

Array = np.ndarray[Any, np.dtype[Any]]
RENAMED = {"model_variables_moving_average": AVERAGE}
"""What Keras calls a list of states, where Onward has a word of its own."""


@dataclass
class Together:
    """A step of all variables."""

    update: ir.Model
    optimizer: Stored
    state: dict[str, Array]


def together(optimizer: Any, variables: Mapping[str, Any], gradients: Mapping[str, str], storage: Storage) -> Together:
    """The step of an optimizer, with its state; it is built if it was not yet, as `fit` would do it.

    `gradients` are `dense`, or the `rows` that were looked up: the step then has two inputs in place of one. Where
    gradients of several batches make a step, they come added up.
    """
    import keras
    import tensorflow as tf

    if not optimizer.built:
        optimizer.build(list(variables.values()))
    states = _states(optimizer, {id(variable): name for name, variable in variables.items()})
    specs, places = [], []
    for name, kind in gradients.items():
        shape, dtype = variables[name].shape, variables[name].dtype
        if kind == "rows":
            specs += [tf.TensorSpec([None, *shape[1:]], dtype), tf.TensorSpec([None], tf.int64)]
            places += [f"{name}.{ROWS}", f"{name}.{NUMBERS}"]
        else:
            specs.append(tf.TensorSpec(shape, dtype))
            places.append(f"{name}.grad")
    specs = [tf.TensorSpec(spec.shape, spec.dtype, name=f"given_{i}") for i, spec in enumerate(specs)]

    def step(*tensors: Any) -> Any:
        given = dict(zip(places, tensors, strict=True))
        slopes = []
        for name, kind in gradients.items():
            if kind == "rows":
                whole = tf.constant(list(variables[name].shape), tf.int64)
                slopes.append(tf.IndexedSlices(given[f"{name}.{ROWS}"], given[f"{name}.{NUMBERS}"], whole))
            else:
                slopes.append(given[f"{name}.grad"])
        optimizer.apply(slopes, [variables[name] for name in gradients])
        return tf.zeros(())

    rate = own = optimizer._learning_rate
    scheduled = isinstance(own, keras.optimizers.schedules.LearningRateSchedule)
    if not scheduled and callable(own):
        raise UnsupportedError("a learning rate that is a function is not supported: use a LearningRateSchedule")
    accumulate = optimizer.gradient_accumulation_steps
    try:
        if scheduled:
            rate = keras.Variable(1.0, name="scale")
            object.__setattr__(optimizer, "_learning_rate", scaled(own, rate))
        object.__setattr__(optimizer, "gradient_accumulation_steps", None)
        function = tf.function(step, autograph=False).get_concrete_function(*specs)
    finally:
        object.__setattr__(optimizer, "_learning_rate", own)
        object.__setattr__(optimizer, "gradient_accumulation_steps", accumulate)
    roles = {**variables, **states, LEARNING_RATE: rate, STEP: optimizer._iterations}
    handles = {id(held.value.handle): role for role, held in roles.items()}
    made = trained(function, storage, ["done"])
    names = {name: handles.get(id(held.handle), "") for name, held in made.variables.items()}
    given = {f"given_{i}": place for i, place in enumerate(places)}
    update = _update(made, names, given, storage)
    read = {value.name for value in update.graph.inputs}
    arrays = {name: np.asarray(held) for name, held in states.items() if name in read}
    slots = tuple(dict.fromkeys(name.rpartition(".")[2] for name in arrays))
    lr = 1.0 if scheduled else rate_of(optimizer)
    return Together(update, Stored(lr, slots, initial=_initial(optimizer, variables, slots)), arrays)


def _initial(optimizer: Any, variables: Mapping[str, Any], slots: Collection[str]) -> dict[str, float]:
    """What states of a new optimizer start from, by slot, if not from zero."""
    new = type(optimizer).from_config(optimizer.get_config())
    new.build(list(variables.values()))
    found = {}
    for name, state in _states(new, {id(variable): name for name, variable in variables.items()}).items():
        numbers = np.unique(np.asarray(state))
        slot = name.rpartition(".")[2]
        if slot in slots and slot != AVERAGE and numbers.any():
            if numbers.size > 1:
                raise UnsupportedError(f"{name} of {type(optimizer).__name__} starts from several numbers")
            found[slot] = float(numbers[0])
    return found


def _states(optimizer: Any, names: Mapping[int, str]) -> dict[str, Any]:
    """By `<parameter>.<slot>`: lists of the optimizer with an entry a variable; what is one for all is the first's."""
    order = [names.get(id(variable)) for variable in optimizer._trainable_variables]
    if None in order:
        raise UnsupportedError("the optimizer was made for other weights than those that are trained: compile again")
    waiting = {id(v): v for v in optimizer.variables if v is not optimizer._iterations}
    waiting.pop(id(optimizer._learning_rate), None)
    found = {}
    for attribute, held in vars(optimizer).items():
        if attribute == "_trainable_variables" or not isinstance(held, list) or len(held) != len(order):
            continue
        slot = RENAMED.get(attribute.strip("_"), attribute.strip("_"))
        for name, state in zip(order, held, strict=True):
            if waiting.pop(id(state), None) is not None:
                found[f"{name}.{slot}"] = state
    for number, state in enumerate(waiting.values()):
        found[f"{order[0]}.shared{number}"] = state
    return found


def _update(made: Trained, names: Mapping[str, str], places: Mapping[str, str], storage: Storage) -> ir.Model:
    """The graph with Onward's names: `names` says what each variable is in it, `places` which gradient an input is."""
    source = made.model.ir.graph
    graph = ir.Graph([], [], nodes=[], name="update", opset_imports={"": made.model.ir.opset_imports[""]})
    model = ir.Model(graph, ir_version=made.model.ir.ir_version, producer_name="onward")
    op = Builder(model)

    def take(name: str, like: ir.Value, shape: ir.Shape | None) -> Tensor:
        value = ir.Value(name=op.names.value(name), type=like.type, shape=shape)
        graph.inputs.append(value)
        return op.tensor(value)

    def gradient(value: ir.Value) -> Tensor:
        """In the order of axes that Keras has."""
        name = places[value.name or ""]
        order = storage.orders.get(name.removesuffix(".grad"))
        if order is None or value.shape is None:
            return take(name, value, value.shape)
        stored = take(name, value, ir.Shape([value.shape[axis] for axis in order]))
        return op.transpose(stored, [order.index(axis) for axis in range(len(order))])

    known = {role for name, role in names.items() if name in source.initializers} - {STEP, ""}
    ends = [value.name or "" for value in source.outputs]
    given = [gradient(value) for value in source.inputs]
    for name, value in list(source.initializers.items()):
        role = names.get(name)
        if role:
            source.initializers.pop(name)
            value.const_value = None
            source.inputs.append(value)
            tensor = take(role, value, value.shape)
            given.append(tensor - 1 if role == STEP else tensor)
    op.scope = "apply/"
    _, results = adopt(op, source, [tensor.value for tensor in given])
    op.scope = ""
    for end, result in zip(ends, results, strict=True):
        role = names.get(end.removesuffix(".next"), "")
        if end.endswith(".next") and role in known:  # what nothing reads is no state
            give_out(op, op.tensor(result), f"{role}.next")
    common.RemoveUnusedNodesPass()(model)
    return model
