"""Walks over graphs and the graphs inside them.

Unlike the iterators of onnx-ir these pass over a graph attribute that a function refers to but does not hold.
"""

from collections.abc import Iterator
from functools import cache

import onnx
import onnx_ir as ir


def inner_graphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs that `node` holds."""
    if not _may_hold(node.domain, node.op_type):
        return
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def all_graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """`graph` and all graphs inside it."""
    pending = [graph]
    while pending:
        found = pending.pop()
        yield found
        pending += _inside(found)


def all_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    """The nodes of `graph` and of all graphs inside it, graph by graph."""
    pending = [graph]
    while pending:
        for node in pending.pop():
            yield node
            if _may_hold(node.domain, node.op_type):
                pending += inner_graphs(node)


def _inside(graph: ir.Graph) -> list[ir.Graph]:
    """The graphs that the nodes of a graph hold."""
    return [inner for node in graph if _may_hold(node.domain, node.op_type) for inner in inner_graphs(node)]


@cache
def _may_hold(domain: str, op_type: str) -> bool:
    """Whether nodes of an op have to be searched for graphs: few standard ops take one."""
    if not onnx.defs.has(op_type, domain):
        return True
    kinds = {attribute.type for attribute in onnx.defs.get_schema(op_type, domain).attributes.values()}
    return not kinds.isdisjoint({onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS})
