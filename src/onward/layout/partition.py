"""Where transposes go: each node is given a layout such that as few elements as possible are moved.

A value is transposed once if any of its readers wants it in another layout than the one it is made in. The choice of
layouts with the least cost is a minimum cut between *channels first* and *channels last*: exact, not a heuristic.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onward.graph.known import dims_of
from onward.layout.maxflow import SINK, SOURCE, Network
from onward.layout.orders import Layout, Order, moves_nothing

Side = Layout | ir.Node
"""What decides in which layout a value is made or wanted: it is given, or it is that of a node."""

EACH = 1000
"""Elements that one more transpose costs: fewer are better than smaller ones."""
UNKNOWN = 64
"""What an unknown dimension counts as; an unknown batch counts as one."""


def cost_of(value: ir.Value, order: Order) -> int:
    """The cost of storing a value in another order, in elements."""
    dims = dims_of(value) or []
    if moves_nothing(dims, order):
        return 1
    elements = 1
    for axis, dim in enumerate(dims):
        elements *= max(dim, 1) if isinstance(dim, int) else UNKNOWN if axis else 1
    return EACH + elements


class Partition:
    """Collects what is made and wanted, then decides."""

    def __init__(self) -> None:
        self._network = Network()
        self._places: dict[ir.Node, int] = {}
        self._total = 0
        self._values: list[tuple[int, list[int], int]] = []
        self._linked: dict[int, list[int]] = {}

    def value(self, made: Side, wanted: Iterable[Side], cost: int) -> None:
        """A value, transposed at `cost` if it is wanted in another layout than the one it is made in."""
        producer = self._place(made)
        consumers = list(dict.fromkeys(self._place(side) for side in wanted))
        consumers = [place for place in consumers if place != producer]
        if consumers:
            self._values.append((producer, consumers, cost))
            self._total += cost

    def burden(self, node: ir.Node, layout: Layout, cost: int) -> None:
        """What it costs if a node gets this layout."""
        self.value(node, [layout.other], cost)

    def _place(self, side: Side) -> int:
        if isinstance(side, Layout):
            return SOURCE if side is Layout.FIRST else SINK
        if side not in self._places:
            self._places[side] = self._network.node()
        return self._places[side]

    def decide(self, preferred: Layout) -> dict[ir.Node, Layout]:
        """The layout of each node; one that nothing ties to either layout is left out."""
        for producer, consumers, cost in self._values:
            self._connect(producer, consumers, cost)
        self._network.maximum_flow()
        if preferred is Layout.LAST:
            first = self._network.from_source()
        else:
            last = self._network.to_sink()
            first = {place for place in self._places.values() if place not in last}
        tied = self._tied()
        return {
            node: Layout.FIRST if place in first else Layout.LAST
            for node, place in self._places.items()
            if place in tied
        }

    def _connect(self, producer: int, consumers: list[int], cost: int) -> None:
        unlimited = self._total + 1
        for consumer in consumers:
            self._linked.setdefault(producer, []).append(consumer)
            self._linked.setdefault(consumer, []).append(producer)
        if len(consumers) == 1:
            self._network.edge(producer, consumers[0], cost)
            self._network.edge(consumers[0], producer, cost)
            return
        to_last, to_first = self._network.node(), self._network.node()
        self._network.edge(producer, to_last, cost)
        self._network.edge(to_first, producer, cost)
        for consumer in consumers:
            self._network.edge(to_last, consumer, unlimited)
            self._network.edge(consumer, to_first, unlimited)

    def _tied(self) -> set[int]:
        """The places from which there is any way to a node whose layout is given."""
        seen, pending = {SOURCE, SINK}, [SOURCE, SINK]
        while pending:
            for place in self._linked.get(pending.pop(), ()):
                if place not in seen:
                    seen.add(place)
                    pending.append(place)
        return seen
