"""The order of results where a model leaves it open.

`TopK` with `sorted=0` may give its results in any order. Two runtimes that choose freely cannot be compared, nor can
what hangs on the order: so all of them sort, as generated code does. It is one of the orders that the model allows.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onward.graph.walk import all_nodes
from onward.model import Model


def settled(model: Model) -> Model:
    """The model itself, or a copy in which every `TopK` sorts."""
    if not any(_open_orders(model.ir)):
        return model
    copy = model.ir.clone()
    for node in list(_open_orders(copy)):
        node.attributes.add(ir.AttrInt64("sorted", 1))
    return Model(copy, ir_version=model.ir_version)


def _open_orders(model: ir.Model) -> Iterator[ir.Node]:
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for node in all_nodes(graph):
            order = node.attributes.get("sorted") if node.op_type == "TopK" and node.domain in ("", "ai.onnx") else None
            if order is not None and (order.is_ref() or not order.as_int()):
                yield node
