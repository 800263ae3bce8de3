"""Trainings that draw random numbers: every framework draws its own, so they are compared without dropout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.spec.random import RANDOM
from onward.training.trainable import Trainable


def without_chance(trainable: Trainable) -> tuple[Trainable, list[str]]:
    """The same training with shares of dropout that are 0, and what is to be said of it; other chance is refused."""
    for node in all_nodes(trainable.gradients.graph):
        if node.op_type in RANDOM and node.domain in ("", "ai.onnx"):
            raise UnsupportedError(
                f"{node.op_type} {node.name!r} draws random numbers, which every framework draws its own way: the"
                " training cannot be compared"
            )
    if not any(_drops(node) for node in all_nodes(trainable.gradients.graph)):
        return trainable, []
    graph, original = trainable.gradients.clone(), trainable.original.ir.clone()
    for model in (graph, original):
        for node in all_nodes(model.graph):
            if node.op_type == "Dropout" and node.domain in ("", "ai.onnx"):
                _switch_off(model.graph, node)
    made = Model(original)
    made.path = trainable.original.path
    note = "dropout is off on both sides, as every framework draws its own numbers"
    return replace(trainable, gradients=graph, original=made), [note]


def _drops(node: ir.Node) -> bool:
    return node.op_type == "Dropout" and node.domain in ("", "ai.onnx") and len(node.inputs) > 2


def _switch_off(graph: ir.Graph, node: ir.Node) -> None:
    """Set the share that is dropped to 0; the gradient reads the same number."""
    if "ratio" in node.attributes:
        node.attributes["ratio"] = ir.AttrFloat32("ratio", 0.0)
        return
    share = node.inputs[1] if len(node.inputs) > 1 else None
    known = None if share is None else ir.convenience.get_const_tensor(share)
    if share is None or known is None:
        raise UnsupportedError(
            f"Dropout {node.name!r} does not say as a constant what share it drops: the training cannot be compared"
        )
    zero = ir.Tensor(np.zeros_like(known.numpy()), name=share.name)
    if share.is_initializer():
        share.const_value = zero
    elif (home := share.producer()) is not None and home.op_type == "Constant":
        home.attributes.clear()
        home.attributes["value"] = ir.AttrTensor("value", zero)
        share.const_value = zero
