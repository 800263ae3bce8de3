"""Formulas that the opset of the model has an operator for."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.names import Names
from onward.graph.replace import graphs, is_op, made_by, new_node, take_over
from onward.passes.fuse_activation import fuse_activation
from onward.passes.fuse_layernorm import fuse_layernorm
from onward.passes.products import factors, is_close, scalar

SINCE = {"HardSwish": 14, "Gelu": 20, "Mish": 18}
"""The opset that brought an activation."""
NORMALISATIONS = {"LayerNormalization": 17, "RMSNormalization": 23}


def name_idioms(model: ir.Model) -> int:
    """In place; returns how many were found."""
    opset = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
    known = {op for op, since in SINCE.items() if opset >= since}
    norms = {op for op, since in NORMALISATIONS.items() if opset >= since}
    count = _hard_sigmoids(model)
    count += fuse_activation(model, known) if known else 0
    return count + (fuse_layernorm(model, norms) if norms else 0)


def _hard_sigmoids(model: ir.Model) -> int:
    """`Clip(x + 3, 0, 6) / 6`, alone or times something: every opset has a name for it."""
    facts, names, count = Facts(), Names(model), 0
    for graph in graphs(model):
        for node in reversed(list(graph)):
            if node.graph is graph and is_op(node, "Mul", "Div") and node.outputs[0].dtype == ir.DataType.FLOAT:
                count += _hard_sigmoid(node, facts, names)
    return count


def _hard_sigmoid(node: ir.Node, facts: Facts, names: Names) -> bool:
    values, scale = factors(node.outputs[0], facts)
    if not is_close(scale, 1 / 6) or len(values) > 2:
        return False
    for value, *others in (values, values[::-1]):
        if (x := _clipped(value, facts)) is None:
            continue
        new = new_node("HardSigmoid", [x], {"alpha": 1 / 6, "beta": 0.5}, node, node)
        if others:
            inner = new.outputs[0]
            new.name = names.node(f"{node.name}_sigmoid") if node.name else None
            inner.name = names.value(f"{node.outputs[0].name}_sigmoid")
            inner.type, inner.shape = x.type, x.shape
            new = new_node("Mul", [others[0], inner], {}, node, node)
        take_over(node.outputs[0], new.outputs[0])
        return True
    return False


def _clipped(value: ir.Value, facts: Facts) -> ir.Value | None:
    """x, where a value is x + 3 between 0 and 6."""
    clip = made_by(value, "Clip")
    if clip is None:
        return None
    if len(clip.inputs) == 3:
        low, high = (facts.number(bound) for bound in clip.inputs[1:])
    else:
        low, high = (clip.attributes.get_float(name, None) for name in ("min", "max"))
    add = made_by(clip.inputs[0], "Add") if low == 0 and high == 6 else None
    for index, other in ((0, 1), (1, 0)) if add is not None else ():
        if add is not None and scalar(add.inputs[other], add.inputs[index], facts) == 3:
            return add.inputs[index]
    return None
