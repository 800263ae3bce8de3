"""Writes a graph behind another one."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onward.graph.build import Builder


def appended(op: Builder, model: ir.Model, feeds: Mapping[str, ir.Value]) -> list[ir.Value]:
    """Move the nodes of a model to the end of a graph; `feeds` are by the name of an input what it is fed.

    Inputs that are not fed have to be initializers. Names that are taken get a number behind them. What the outputs
    became is returned; the model that they come from is of no use afterwards.
    """
    source = model.graph
    outputs = [feeds.get(value.name or "", value) for value in source.outputs]
    source.outputs.clear()
    for value in list(source.inputs):
        if value.name in feeds:
            value.replace_all_uses_with(feeds[value.name or ""])
    source.inputs.clear()
    for name, value in list(source.initializers.items()):
        source.initializers.pop(name)
        if name in feeds:
            continue
        value.name = op.names.value(name)
        if value.const_value is not None:
            value.const_value.name = value.name
        op.graph.register_initializer(value)
    for node in list(source):
        source.remove(node)
        node.name = op.names.node(node.name or node.op_type)
        for value in node.outputs:
            value.name = op.names.value(value.name or node.name)
        op.graph.append(node)
    for domain, version in model.opset_imports.items():
        op.model.opset_imports.setdefault(domain, version)
    for key, function in model.functions.items():
        op.model.functions[key] = function
    return outputs
