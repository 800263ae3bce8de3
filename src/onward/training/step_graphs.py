"""The graphs of a training step: what their inputs and outputs are called, and the one of the optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.training.recipe.groups import Rule
from onward.training.recipe.optimizers import AVERAGE, Moment, Optimizer, initial, state_shapes

LOSS = "onward.loss"
LEARNING_RATE = "onward.lr"
STEP = "onward.step"
ROWS, NUMBERS = "rows", "numbers"
"""`<parameter>.rows` and `.numbers`: the gradients of rows that were looked up, one by one, and which rows they are."""
CLIP_EPSILON = 1e-6
"""PyTorch's, where gradients are clipped by their norm."""
Array = np.ndarray[Any, np.dtype[Any]]


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


def updates(
    parameters: Mapping[str, Array],
    optimizer: Optimizer,
    rules: Mapping[str, Rule] | None = None,
    clip_norm: float | None = None,
    clip_epsilon: float = CLIP_EPSILON,
) -> tuple[ir.Model, dict[str, Array]]:
    """The graph of an optimizer's step, and the state it starts from.

    `rules` of parameters hold instead of the optimizer's weight decay and the learning rate as it is.
    """
    graph = ir.Graph([], [], nodes=[], name="update", opset_imports={"": 21})
    model = ir.Model(graph, ir_version=10, producer_name="onward")
    op = Builder(model)

    def given(name: str, dtype: ir.DataType, shape: tuple[int, ...]) -> Tensor:
        value = ir.Value(name=op.names.value(name), type=ir.TensorType(dtype), shape=ir.Shape(shape))
        graph.inputs.append(value)
        return op.tensor(value)

    rate, step = given(LEARNING_RATE, ir.DataType.FLOAT, ()), given(STEP, ir.DataType.INT64, ())
    tensors: dict[str, tuple[Tensor, Tensor, dict[str, Tensor]]] = {}
    state: dict[str, Array] = {}
    for name, array in parameters.items():
        dtype = ir.DataType.from_numpy(array.dtype)
        w, g = given(name, dtype, array.shape), given(f"{name}.grad", dtype, array.shape)
        tensors[name] = (
            w,
            g,
            {
                slot: given(f"{name}.{slot}", dtype, shape)
                for slot, shape in state_shapes(optimizer, array.shape).items()
            },
        )
        state |= first_state(name, array, optimizer)
    scale = None
    if clip_norm is not None:
        scale = shrinking(op, [g for _, g, _ in tensors.values()], clip_norm, clip_epsilon)
    default = Rule(1.0, optimizer.weight_decay)
    for name, (w, g, slots) in tensors.items():
        op.scope = f"{name}/"
        rule = (rules or {}).get(name, default)
        now = Moment(rate if rule.lr == 1 else rate * rule.lr, step, rule.decay)
        after, changed = optimizer.update(op, w, g if scale is None else g * scale.cast(g.dtype), slots, now)
        op.scope = ""
        give_out(op, after, f"{name}.next")
        for slot, tensor in changed.items():
            give_out(op, tensor, f"{name}.{slot}.next")
    return model, state


def first_state(name: str, array: Array, optimizer: Optimizer) -> dict[str, Array]:
    """What the state of a parameter starts from; zeros take no memory before they are written."""

    def first(slot: str, shape: tuple[int, ...]) -> Array:
        if slot == AVERAGE:
            return array.copy()
        number = initial(optimizer, slot)
        return np.full(shape, number, array.dtype) if number else np.zeros(shape, array.dtype)

    return {f"{name}.{slot}": first(slot, shape) for slot, shape in state_shapes(optimizer, array.shape).items()}


def shrinking(op: Builder, gradients: Sequence[Tensor], largest: float, epsilon: float) -> Tensor:
    """What gradients are multiplied by so that the norm of all together is at most `largest`."""
    norm = op.Sqrt(op.total([op.ReduceSumSquare(g, keepdims=0).cast(ir.DataType.FLOAT) for g in gradients]))
    return op.Min(largest / (norm + epsilon if epsilon else norm), op.like(1, norm))
