"""What a model's functions become, counted before one is inlined: a file of 1 kB can claim billions of nodes."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.gate.bounds import NODES
from onward.hub.wording import quote

GROWTH = 4
"""How many times the nodes that a file has itself its functions may become."""
DEEPEST = 200
"""How deep functions may call one another: names grow with each level."""


def check_functions(model: ir.Model) -> int:
    """Refuse functions that call themselves, and those that grow without bound; gives the nodes there may be."""
    calls = {key: _ops(function.graph) for key, function in model.functions.items()}
    own = _ops(model.graph)
    inner = {key: {callee for callee in callees if callee in calls} for key, callees in calls.items()}
    try:
        order = list(graphlib.TopologicalSorter(inner).static_order())
    except graphlib.CycleError as error:
        cycle = " calls ".join(quote(_spelled(key)) for key in reversed(error.args[1]))
        raise InvalidModelError(f"functions of the model call themselves: {cycle}") from None
    size: dict[ir.OperatorIdentifier, int] = {}
    depth: dict[ir.OperatorIdentifier, int] = {}
    for key in order:
        size[key] = sum(size.get(callee, 1) for callee in calls[key])
        depth[key] = 1 + max((depth[callee] for callee in inner[key]), default=0)
        if depth[key] > DEEPEST:
            raise InvalidModelError(f"its functions call one another more than {DEEPEST} deep, {quote(_spelled(key))}")
    most = max(NODES.value, GROWTH * (len(own) + sum(map(len, calls.values()))))
    total = sum(size.get(key, 1) for key in own)
    if total > most:
        largest = max({key for key in own if key in size}, key=size.__getitem__)
        raise InvalidModelError(
            f"its functions would become {total:,} nodes when they are inlined, {size[largest]:,} of them for each call"
            f" of {quote(_spelled(largest))}, and {most:,} are allowed; {NODES.hint}"
        )
    return most


def _ops(graph: ir.Graph) -> list[ir.OperatorIdentifier]:
    return [node.op_identifier() for node in _nodes(graph)]


def _nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    pending = [graph]
    while pending:
        for node in pending.pop():
            yield node
            for attribute in node.attributes.values():
                if attribute.type is ir.AttributeType.GRAPH and not attribute.is_ref():
                    pending.append(attribute.value)
                elif attribute.type is ir.AttributeType.GRAPHS and not attribute.is_ref():
                    pending += attribute.value


def _spelled(key: ir.OperatorIdentifier) -> str:
    domain, name, overload = key
    return ".".join(part for part in (domain, name, overload) if part)
