"""Models whose weights are integers are trained in float32, where there are no floats to train.

A weight that is read through a DequantizeLinear becomes the numbers that it stands for, under its own name, and is
rounded to these integers on its way there: a model computes as it did, and is differentiated as if nothing were
rounded. Biases of 32 bits are not rounded, since their steps are too small to matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.graph.replace import constant, is_op
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.training.recipe.wide_floats import WEIGHTS, before, remember

Array = np.ndarray[Any, np.dtype[Any]]
_MOVE = ("Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Expand", "Gather")
"""Ops that give some of the numbers they are given, whatever these stand for."""


def with_float_weights(model: Model) -> Model | None:
    """A copy of a model whose quantised weights are float32; None where it has none, or has a training already."""
    if model.training_info or not any(_weights(model.ir)):
        return None
    made = replace(model.copy(), path=model.path)
    op, were = Builder(made.ir), dict[str, str]()
    for node, numbers in list(_weights(made.ir)):
        old, *how = node.inputs
        assert old is not None and old.dtype is not None and node.graph is not None
        if old.dtype == ir.DataType.INT32:
            for place in range(len(node.inputs)):
                node.replace_input_with(place, None)
            weight = _taking_over(op, old, [old, *how], numbers)
            node.outputs[0].replace_all_uses_with(weight)
            node.graph.remove(node)
        else:
            if len(how) < 2:  # QuantizeLinear would make uint8
                how.append(_zeros(op, old, how[0]))
            attributes = [a for name, a in node.attributes.items() if name in ("axis", "block_size")]
            rounded = ir.Node("", "QuantizeLinear", [None, *how], attributes, version=node.version)
            rounded.outputs[0].type, rounded.outputs[0].shape = old.type, old.shape
            node.replace_input_with(0, rounded.outputs[0])
            weight = _taking_over(op, old, [old], numbers)
            rounded.replace_input_with(0, weight)
            rounded.name = op.names.node(f"{weight.name}_quantised")
            rounded.outputs[0].name = op.names.value(f"{weight.name}_quantised")
            node.graph.insert_before(node, rounded)
        were[weight.name or ""] = old.dtype.name.lower()
    remember(made.ir, {WEIGHTS: were})
    return made


def _zeros(op: Builder, codes: ir.Value, scale: ir.Value | None) -> ir.Value:
    """The zero point of integers that have none."""
    like = constant(scale)
    assert like is not None and codes.dtype is not None
    return _initializer(op, f"{codes.name}_zero_point", ir.Tensor(np.zeros(like.shape.numpy(), codes.dtype.numpy())))


def _initializer(op: Builder, wish: str, tensor: ir.Tensor[Any], name: str = "") -> ir.Value:
    name = tensor.name = name or op.names.value(wish)
    made = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)
    op.model.graph.register_initializer(made)
    return made


def _taking_over(op: Builder, old: ir.Value, unread: Iterable[ir.Value | None], numbers: Array) -> ir.Value:
    """A weight of the name of an integer one, or like it if someone else reads that; what nobody reads goes."""
    graph = op.model.graph
    for value in unread:
        if value is not None and value.is_initializer() and not value.uses() and not value.is_graph_output():
            assert value.graph is not None
            value.graph.initializers.pop(value.name or "", None)
    name = old.name or ""
    free = name not in graph.initializers and old.producer() is None and old.graph in (graph, None)
    return _initializer(op, name, ir.Tensor(numbers), name if free else "")


def quantise_again(model: ir.Model) -> None:
    """Round weights, in place, that are kept as floats for the integers that they are rounded to in every run."""
    known = before(model)
    for node in list(all_nodes(model.graph)):
        weight = node.inputs[0] if node.inputs else None
        if not is_op(node, "QuantizeLinear") or weight is None or not weight.is_initializer():
            continue
        held = [None if value is None or value.is_graph_input() else constant(value) for value in node.inputs]
        kind = node.outputs[0].dtype
        if weight.name not in known or None in held or kind is None or len(weight.uses()) != 1:
            continue
        x, scale, *zero = (tensor.numpy() for tensor in held if tensor is not None)
        steps = np.rint(x / _along(node, x, scale)) + (_along(node, x, zero[0].astype(x.dtype)) if zero else 0)
        limits = ml_dtypes.iinfo(kind.numpy())
        codes = np.clip(steps, limits.min, limits.max).astype(kind.numpy())
        made = ir.Value(name=weight.name, type=ir.TensorType(kind), shape=ir.Shape(codes.shape))
        made.const_value = ir.Tensor(codes, kind, name=weight.name)
        assert node.graph is not None and weight.graph is not None
        graph = weight.graph
        node.outputs[0].replace_all_uses_with(made)
        node.graph.remove(node, safe=True)
        graph.initializers.pop(weight.name)
        graph.register_initializer(made)


def _weights(model: ir.Model) -> Iterator[tuple[ir.Node, Array]]:
    """Nodes that give the same several numbers in every run, made of integers, and these numbers.

    Integers that a caller may give, such as states, are none, though the file has some in their place.
    """
    for node in all_nodes(model.graph):
        if is_op(node, "DequantizeLinear") and not node.outputs[0].is_graph_output():
            held = [None if value is None or value.is_graph_input() else constant(value) for value in node.inputs]
            if None not in held and held[0] is not None and held[0].size > 1 and held[0].dtype.is_integer():
                yield node, _numbers(node, *(tensor.numpy() for tensor in held if tensor is not None))


def _numbers(node: ir.Node, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    steps = x.astype(np.int64)
    if zero_point is not None:
        steps = steps - _along(node, x, zero_point.astype(np.int64))
    return np.asarray(steps.astype(np.float32) * _along(node, x, scale.astype(np.float32)), scale.dtype)


def _along(node: ir.Node, x: Array, array: Array) -> Array:
    """A scale, or a zero point, in a shape that broadcasts to `x`."""
    axis, block = node.attributes.get_int("axis", 1), node.attributes.get_int("block_size", 0)
    if block:
        return np.take(array, np.arange(x.shape[axis]) // block, axis)
    if array.size == 1:
        return array.reshape(())
    return array.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def real_numbers(op: Builder, value: ir.Value) -> Tensor:
    """What a value stands for if it is quantised, and otherwise itself."""
    node = quantizer(value)
    return (
        op.tensor(value) if node is None else op.DequantizeLinear(op.tensor(value), *map(_given(op), node.inputs[1:]))
    )


def _given(op: Builder) -> Any:
    return lambda value: None if value is None else op.tensor(value)


def dequantised(value: ir.Value, array: Array) -> Array:
    """What an array of such a value stands for."""
    node = quantizer(value)
    return array if node is None else _numbers(node, array, *(t.numpy() for t in map(constant, node.inputs[1:]) if t))


def quantizer(value: ir.Value) -> ir.Node | None:
    """The node with one scale for all that has made integers of what a value stands for."""
    node = value.producer()
    while node is not None and is_op(node, *_MOVE) and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    if node is None or not is_op(node, "QuantizeLinear") or len(node.inputs) < 2 or node.inputs[1] is None:
        return None
    scale = constant(node.inputs[1])
    return node if scale is not None and scale.size == 1 else None
