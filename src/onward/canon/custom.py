"""Custom ops that a plugin gives a body: their functions, for whoever inlines or runs a model."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onward.graph.walk import all_nodes
from onward.plugins.op import CustomOp
from onward.plugins.table import find


def custom_op(node: ir.Node, model: ir.Model) -> CustomOp | None:
    """The op of a plugin that a node is; one that the model itself defines as a function is none."""
    if node.domain in ("", "ai.onnx") or node.op_identifier() in model.functions:
        return None
    return find(f"{node.domain}::{node.op_type}", node.version or model.opset_imports.get(node.domain))


def add_bodies(model: ir.Model, keep: Callable[[str], bool] = lambda key: False) -> bool:
    """Give a model, in place, the bodies of its custom ops as functions, but those to `keep`; tells if it got any."""
    waiting = list(all_nodes(model.graph))
    for function in model.functions.values():
        waiting += all_nodes(function.graph)
    added = False
    while waiting:
        node = waiting.pop()
        op = custom_op(node, model)
        if op is None or not op.functions or keep(f"{node.domain}::{node.op_type}"):
            continue
        for proto in op.functions:
            made = ir.serde.deserialize_function(proto)
            own = made.name == op.name and made.domain == op.domain
            made.domain = node.domain if own else made.domain
            if made.identifier() not in model.functions:
                model.functions[made.identifier()] = made
                waiting += all_nodes(made.graph)
                for domain, version in made.opset_imports.items():
                    model.opset_imports.setdefault(domain, version)
                added = True
    return added
