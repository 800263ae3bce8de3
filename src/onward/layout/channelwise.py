"""Ops along the channels which ONNX has for the last axis only: channels first they are written with other ops.

For the time of the pass they are ops of a domain of their own, whose rule says that they can be computed in either
layout; where the channels came to be the second axis, `axis` is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.origin import copy_origin
from onward.graph.walk import all_nodes
from onward.layout.change import constant
from onward.layout.constants import Constants
from onward.layout.orders import RANKS, to_first

DOMAIN = "onward.channels"
AXES_ARE_INPUTS = 18
"""The opset since which ReduceMean takes its axes as an input."""


def lift(model: ir.Model) -> None:
    """Move into the domain, in place, the products with constant matrices and the normalisations along channels."""
    if model.opset_imports.get("", 0) < AXES_ARE_INPUTS:
        return
    for node in all_nodes(model.graph):
        if _is_product(node) or _is_norm(node):
            node.domain = DOMAIN


def lower(model: ir.Model) -> None:
    """Write the ops of the domain as standard ops, in place."""
    names = Names(model)
    constants = Constants(model.graph, names)
    for node in [node for node in all_nodes(model.graph) if node.domain == DOMAIN]:
        node.domain = ""
        is_moved = node.attributes.get_int("axis", -1) == 1
        if is_moved and node.op_type == "MatMul":
            x, weight = node.inputs
            assert x is not None and x.shape is not None and weight is not None
            node.op_type = "Conv"
            node.attributes.clear()
            node.replace_input_with(1, constants.pointwise(weight, len(x.shape)))
        elif is_moved:
            _Norm(node, names, constants).write()
    constants.remove_replaced()


def _rank(value: ir.Value | None) -> int:
    return len(value.shape) if value is not None and value.shape is not None else 0


def _is_product(node: ir.Node) -> bool:
    if node.domain or node.op_type != "MatMul" or node.inputs[0] is None:
        return False
    x, weight = node.inputs
    return _rank(x) in RANKS and constant(x) is None and constant(weight) is not None and _rank(weight) == 2


def _is_norm(node: ir.Node) -> bool:
    """Half precision is left alone: the op computes it in single."""
    x, *weights = node.inputs or (None,)
    if node.domain or node.op_type != "LayerNormalization" or x is None:
        return False
    is_last = node.attributes.get_int("axis", -1) in (-1, _rank(x) - 1)
    is_float = x.dtype == ir.DataType.FLOAT and node.attributes.get_int("stash_type", 1) == ir.DataType.FLOAT
    is_constant = all(constant(weight) is not None and _rank(weight) == 1 for weight in weights if weight is not None)
    gives_one = not any(value.uses() or value.is_graph_output() for value in node.outputs[1:])
    return _rank(x) in RANKS and constant(x) is None and is_last and is_float and is_constant and gives_one


class _Norm:
    """A LayerNormalization along the second axis, as its definition has it."""

    def __init__(self, node: ir.Node, names: Names, constants: Constants) -> None:
        self._node = node
        self._names = names
        self._constants = constants

    def write(self) -> None:
        node = self._node
        x, scale, bias = (*node.inputs, None, None)[:3]
        assert node.graph is not None and x is not None
        y, order = node.outputs[0], to_first(_rank(x))
        epsilon = self._number(node.attributes.get_float("epsilon", 1e-5), np.float32)
        centred = self._add("Sub", x, self._mean(x))
        deviation = self._add("Sqrt", self._add("Add", self._mean(self._add("Mul", centred, centred)), epsilon))
        made = self._add("Mul", centred, self._add("Reciprocal", deviation))
        if scale is not None:
            made = self._add("Mul", made, self._constants.permuted(scale, order))
        if bias is not None:
            made = self._add("Add", made, self._constants.permuted(bias, order))
        y.replace_all_uses_with(made, replace_graph_outputs=True)
        made.name, y.name = y.name, None
        node.graph.remove(node, safe=True)

    def _mean(self, x: ir.Value) -> ir.Value:
        return self._add("ReduceMean", x, self._number([1], np.int64))

    def _number(self, number: float | Sequence[int], dtype: type[np.generic]) -> ir.Value:
        array: np.ndarray[Any, Any] = np.array(number, dtype)
        return self._constants.numbers(array, f"{self._node.outputs[0].name}_constant")

    def _add(self, op_type: str, *operands: ir.Value) -> ir.Value:
        """The result of a new node: of the shape of its first operand, but for a mean."""
        wish = f"{self._node.outputs[0].name}/{op_type}"
        node = ir.Node("", op_type, operands, name=self._names.node(wish))
        copy_origin(node, self._node)
        made, x = node.outputs[0], operands[0]
        made.name, made.type = self._names.value(wish), x.type
        assert x.shape is not None and self._node.graph is not None
        is_mean = op_type == "ReduceMean"
        made.shape = ir.Shape(1 if is_mean and axis == 1 else dim for axis, dim in enumerate(x.shape))
        self._node.graph.insert_before(self._node, node)
        return made
