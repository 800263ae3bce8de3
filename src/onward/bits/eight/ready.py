"""A model as ONNX Runtime's quantizer needs it: named nodes, and weights that are constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from onward.bits.eight.observed import LAYERS, with_outputs
from onward.canon.opset import at_opset
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.replace import constant, is_op, made_by, take_over
from onward.graph.unused import remove_unused
from onward.model import Model
from onward.passes.fewer.smaller import smaller
from onward.runners import prepare
from onward.runners.calls import Inputs

PER_CHANNEL_FROM = 13
"""The opset from which weights have a scale for each channel."""
WITHOUT = ("idioms", "recurrence", "equal", "branches")
"""Passes that would change what a layer is, or gain nothing here."""


def ready(model: Model, inputs: Inputs) -> Model:
    """A copy with what scales a layer in its weights; `inputs` are any that it runs on."""
    made = model.copy() if model.opset.get("", 0) >= PER_CHANNEL_FROM else at_opset(model, PER_CHANNEL_FROM).model
    made = _with_computed(made, inputs)
    if not made.training_info:
        made = smaller(made, WITHOUT).model
    names, seen = Names(made.ir), set[str]()
    for node in made.ir.graph:
        if not node.name or node.name in seen:
            node.name = names.node(node.name or node.op_type)
        seen.add(node.name)
    infer(made.ir)
    return replace(made, path=None)


def _with_computed(model: Model, inputs: Inputs) -> Model:
    """Weights that the file has in another form, such as integers and what they are multiplied by, as floats."""
    found = {value.name or "": value for value in _computed(model.ir.graph)}
    if not found:
        return model
    for name, array in prepare("onnxruntime", with_outputs(model, list(found)))(inputs).items():
        tensor = ir.tensor(np.asarray(array), name=name)
        held = ir.Value(name=f"{name}/held", const_value=tensor)
        take_over(found[name], held)
        held.type, held.shape = ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy())
        model.ir.graph.register_initializer(held)
    remove_unused(model.ir)
    return model


def _computed(graph: ir.Graph) -> Iterator[ir.Value]:
    """What layers weigh and add that is computed from constants alone."""
    fixed = set[ir.Value]()
    for node in graph:
        if node.inputs and not node.op_type.startswith("Random") and _all_fixed(node.inputs, fixed):
            fixed.update(node.outputs)
    read = (value for node in graph if is_op(node, *LAYERS) for value in node.inputs[1:3])
    yield from dict.fromkeys(v for v in read if v in fixed and made_by(v, "DequantizeLinear") is None)


def _all_fixed(values: Iterable[ir.Value | None], fixed: set[ir.Value]) -> bool:
    return all(value is None or value in fixed or _is_fixed(value) for value in values)


def _is_fixed(value: ir.Value) -> bool:
    return constant(value) is not None and not value.is_graph_input()
