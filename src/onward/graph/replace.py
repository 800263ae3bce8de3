"""What passes that replace a group of nodes by one have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.origin import copy_origin
from onward.graph.rewriter import attribute
from onward.graph.walk import all_graphs

DOMAIN = "onward"
"""The domain of operators that exist only between passes and backends."""


def graphs(model: ir.Model) -> list[ir.Graph]:
    """The main graph and every graph inside it."""
    return list(all_graphs(model.graph))


def is_op(node: ir.Node | None, *op_types: str) -> bool:
    """Whether a node is one of the standard operators named."""
    return node is not None and node.op_type in op_types and node.domain in ("", "ai.onnx")


def made_by(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node that computes a value, if it is one of the standard operators named."""
    node = None if value is None else value.producer()
    return node if is_op(node, *op_types) else None


def only_user(value: ir.Value) -> ir.Node | None:
    """The one node that reads a value, or None where there are several, or the model gives it out."""
    uses = value.uses()
    return next(iter(uses)).node if len(uses) == 1 and not value.is_graph_output() else None


def constant(value: ir.Value | None) -> ir.TensorProtocol | None:
    return None if value is None else ir.convenience.get_const_tensor(value)


def shape_of(value: ir.Value | None) -> tuple[int | None, ...] | None:
    """The dimensions of a value, None for each unknown one."""
    if value is None:
        return None
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is not None:
        return tuple(tensor.shape.numpy())
    return None if value.shape is None else tuple(d if isinstance(d, int) else None for d in value.shape)


def permutation(transpose: ir.Node) -> list[int] | None:
    """The order in which a Transpose takes dimensions; None means reversed."""
    perm = transpose.attributes.get_ints("perm", None)
    return None if perm is None else list(perm)


def new_node(
    op_type: str,
    inputs: Sequence[ir.Value | None],
    attributes: Mapping[str, Any],
    main: ir.Node,
    before: ir.Node,
    *,
    domain: str = "",
    outputs: int = 1,
) -> ir.Node:
    """A node that stands for `main`, and belongs to the same module, put in front of `before`."""
    node = ir.Node(
        domain,
        op_type,
        inputs,
        [attribute(k, v) for k, v in attributes.items() if v is not None],
        num_outputs=outputs,
        name=main.name,
        metadata_props=dict(main.metadata_props),
    )
    copy_origin(node, main)
    assert before.graph is not None
    before.graph.insert_before(before, node)
    return node


def ints(values: Sequence[int], name: str, before: ir.Node) -> ir.Value:
    """A constant vector in the graph of a node, under a name like the one given."""
    graph = before.graph
    assert isinstance(graph, ir.Graph)
    while name in graph.initializers:
        name += "_"
    tensor = ir.tensor(np.array(values, np.int64), name=name)
    value = ir.Value(name=name, shape=ir.Shape([len(values)]), type=ir.TensorType(tensor.dtype), const_value=tensor)
    graph.register_initializer(value)
    return value


def take_over(old: ir.Value, new: ir.Value) -> None:
    """Let `new` have the name, the type and all readers of `old`."""
    new.type, new.shape = old.type, old.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    old.name, new.name = None, old.name


def remove_unread(nodes: Sequence[ir.Node]) -> None:
    """Remove those of the nodes, given in the order of the graph, whose results nobody reads (any more)."""
    for node in reversed(nodes):
        if node.graph is not None and not any(o.uses() or o.is_graph_output() for o in node.outputs):
            node.graph.remove(node, safe=True)
