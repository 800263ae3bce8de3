"""Nodes that a runtime refuses, or computes wrong, written in simpler ops, which it may take."""

from __future__ import annotations

from collections.abc import Collection

from onward.canon.defaults import fill_nodes
from onward.canon.lower import lower_nodes
from onward.canon.lower.registry import DIALECT
from onward.canon.upgrade import upgrade
from onward.graph.origin import origin, set_origin
from onward.model import Model
from onward.partitioning.graph import name_all

Pieces = dict[str, frozenset[str]]
"""By the name of a node: the names of those that it has become."""


def write_out(model: Model, names: Collection[str]) -> tuple[Model, Pieces]:
    """A model that is `ready`, in which each of these nodes that has a definition is replaced by it."""
    graph = model.ir.clone()
    if graph.opset_imports.get("", DIALECT) < DIALECT:
        upgrade(graph, DIALECT)
    chosen = [node for node in graph.graph if node.name in names]
    fill_nodes(chosen, graph.opset_imports)
    for node in chosen:
        set_origin(node, origin(node)._replace(name=node.name or ""))
    own = set(chosen)
    lower_nodes(graph, own.__contains__)
    name_all(graph.graph)
    pieces: Pieces = {}
    for node in graph.graph:
        if (name := origin(node).name) in names and node not in own:
            pieces[name] = pieces.get(name, frozenset()) | {node.name or ""}
    return Model(graph), pieces
