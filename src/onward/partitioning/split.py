"""Divides a graph among a target and a fallback: each node in exactly one part, parts in an order that can be run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onward.model import Model
from onward.partitioning.graph import Graph, nbytes_of
from onward.partitioning.stages import EITHER, FALLBACK, TARGET, Stages, stages
from onward.verification.locate.cut import AS_INFERRED


@dataclass(frozen=True)
class Part:
    """Nodes that run together."""

    side: int
    nodes: list[ir.Node]
    """Its own nodes; those that compute sizes for it, and stand in other parts too, are not listed."""
    inputs: list[str]
    outputs: list[str]
    model: Model = field(repr=False)
    across: int
    """Bytes that come from other parts; open dimensions count once."""


def split(graph: Graph, refused: Collection[str], min_nodes: int = 1) -> list[Part]:
    """The parts of a graph, of which the target does not take the nodes named in `refused`.

    A part of the target with fewer than `min_nodes` nodes goes to the fallback.
    """
    sides = [FALLBACK if n.name in refused else EITHER if n in graph.sizes else TARGET for n in graph.nodes]
    while True:
        found = stages(sides, graph.reads, cost=lambda one: _across(graph, one))
        small = _small(graph, sides, found, min_nodes)
        if not small:
            return _parts(graph, sides, found)
        for place in small:
            sides[place] = FALLBACK


def _side(sides: Sequence[int], places: Sequence[int]) -> int:
    """Where sizes are all that is computed, the fallback does it."""
    return TARGET if any(sides[place] == TARGET for place in places) else FALLBACK


def _places(found: Stages) -> list[list[int]]:
    """The nodes of each stage."""
    made: list[list[int]] = [[] for _ in range(max(found, default=-1) + 1)]
    for place, stage in enumerate(found):
        made[stage].append(place)
    return made


def _small(graph: Graph, sides: Sequence[int], found: Stages, least: int) -> list[int]:
    """The nodes of the target in parts that are not worth their while."""
    counted = [[p for p in places if sides[p] == TARGET] for places in _places(found)]
    return [place for own in counted if 0 < len(own) < least for place in own]


def _across(graph: Graph, found: Stages) -> float:
    """Bytes that go from a part to another, once for each part that reads them; sizes cost nothing."""
    seen: set[tuple[ir.Value, int]] = set()
    number = dict(zip(graph.nodes, found, strict=True))
    for node, stage in number.items():
        for value in graph.cutter.reads(node):
            made = value.producer()
            if made in number and number[made] != stage and made not in graph.sizes:
                seen.add((value, stage))
    return float(sum(nbytes_of(value) for value, _ in seen))


def _parts(graph: Graph, sides: Sequence[int], found: Stages) -> list[Part]:
    places = _places(found)
    if not places:
        return []
    drafts = [_Draft(graph, _side(sides, own), [graph.nodes[place] for place in own]) for own in places]
    refused = {node for node, side in zip(graph.nodes, sides, strict=True) if side == FALLBACK}
    for draft in drafts:
        draft.compute_sizes(refused)
    needed = {name for draft in drafts for name in draft.taken} | {value.name or "" for value in graph.cutter.outputs}
    constant = [v.name or "" for v in graph.cutter.outputs if v not in graph.cutter.varying]
    home = next((draft for draft in drafts if draft.side == FALLBACK), drafts[-1])
    made = []
    for draft in drafts:
        outputs = [v.name or "" for node in draft.nodes for v in node.outputs if v.name in needed]
        made.append(draft.part(outputs + (constant if draft is home else [])))
    return [part for part in made if part.outputs]


class _Draft:
    """A part whose boundary is being settled."""

    def __init__(self, graph: Graph, side: int, nodes: list[ir.Node]) -> None:
        self.graph, self.side, self.nodes = graph, side, nodes
        own = set(nodes)
        varying = graph.cutter.varying
        read = [v for node in nodes for v in graph.cutter.reads(node) if v in varying and v.producer() not in own]
        self.taken: dict[str, ir.Value] = {value.name or "": value for value in read}
        """What it is given: the model's inputs, and results of other parts."""

    def compute_sizes(self, refused: Collection[ir.Node]) -> None:
        """Where it has the tensors of which sizes are taken, it computes them itself: they are known to it then."""
        here = {name for name, value in self.taken.items() if value.producer() not in self.graph.sizes}
        here |= {value.name or "" for value in self.graph.cutter.inputs}
        for name, value in list(self.taken.items()):
            if value.producer() in self.graph.sizes:
                roots, used = self._roots(value)
                if roots <= here and (self.side == FALLBACK or used.isdisjoint(refused)):
                    del self.taken[name]
                    self.taken |= {root: self.graph.cutter.values[root] for root in roots}

    def _roots(self, value: ir.Value) -> tuple[set[str], set[ir.Node]]:
        """The tensors whose sizes a value is computed from, and the nodes that do it."""
        roots: set[str] = set()
        nodes: set[ir.Node] = set()
        pending = [value]
        while pending:
            found = pending.pop()
            made = found.producer()
            if made not in self.graph.sizes:
                roots.add(found.name or "")
            elif made not in nodes:
                nodes.add(made)
                pending += [v for v in self.graph.cutter.reads(made) if v in self.graph.cutter.varying]
        return roots, nodes

    def part(self, outputs: list[str]) -> Part:
        model = self.graph.cutter.piece(outputs, dict.fromkeys(self.taken, AS_INFERRED))
        inputs = [value.name or "" for value in model.ir.graph.inputs]
        own = {value.name for value in self.graph.cutter.inputs}
        across = sum(nbytes_of(self.taken[name]) for name in inputs if name not in own)
        return Part(self.side, self.nodes, inputs, outputs, model, across)
