"""Finds the nodes that a runtime does not take, by offering it stretches of the graph and halving those it refuses.

With few refusals that is a few compilations for each, of pieces that get smaller. Nodes that are alike are asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.walk import inner_graphs
from onward.model import Model
from onward.partitioning.graph import Graph
from onward.verification.locate.cut import AS_INFERRED

Offer = Callable[[Model], None]
"""Raises an `OnwardError` if a runtime does not take a model."""


def refused_by_trial(graph: Graph, nodes: Sequence[ir.Node], offer: Offer) -> dict[str, str]:
    """By the name of each node of a stretch that is refused by itself: what the runtime says."""
    return _Trial(graph, offer).refused(list(nodes))


def stretch(graph: Graph, nodes: Sequence[ir.Node]) -> Model:
    """The model of some nodes, whose inputs and results are what other nodes make and read of them."""
    own = set(nodes)
    varying = graph.cutter.varying
    read = {v.name or "": AS_INFERRED for n in nodes for v in graph.cutter.reads(n) if v in varying}
    made = [v for node in nodes for v in node.outputs if v.name]
    kept = [v.name or "" for v in made if v in graph.cutter.outputs or any(user not in own for user, _ in v.uses())]
    inner = {v.name for v in made}
    feeds = {name: given for name, given in read.items() if name not in inner}
    return graph.cutter.piece(kept or [v.name or "" for v in made], feeds)


class _Trial:
    def __init__(self, graph: Graph, offer: Offer) -> None:
        self._graph, self._offer = graph, offer
        self._known: dict[tuple[object, ...], str] = {}

    def refused(self, nodes: list[ir.Node]) -> dict[str, str]:
        found = {node.name or "": self._known[kind] for node in nodes if (kind := _kind(node)) in self._known}
        left = [node for node in nodes if node.name not in found]
        if not left:
            return found
        try:
            self._offer(stretch(self._graph, left))
        except OnwardError as error:
            if len(left) == 1:
                self._known[_kind(left[0])] = str(error)
                return {**found, left[0].name or "": str(error)}
            middle = len(left) // 2
            found |= self.refused(left[:middle])
            found |= self.refused(left[middle:])
        return found


def _kind(node: ir.Node) -> tuple[object, ...]:
    """What a runtime decides by: the op, its attributes, and the types and ranks of its inputs."""
    if any(True for _ in inner_graphs(node)):
        return (node,)
    attributes = tuple(sorted((a.name, str(a.value)) for a in node.attributes.values()))
    types = tuple((str(v.type), None if v.shape is None else len(v.shape)) if v else None for v in node.inputs)
    return (node.domain, node.op_type, attributes, types)
