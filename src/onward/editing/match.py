"""Which node of one graph is which of another: by what they compute, by name, and by their neighbours."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

import onnx_ir as ir

from onward.editing.sides import Side, is_weak

Pairs = dict[ir.Node, ir.Node]
"""A node of the first graph, and its counterpart in the second."""


def match(first: Side, second: Side) -> Pairs:
    """The counterparts. What is computed alike comes first, since names of numbers shift when a node is put in."""
    found = _Matcher(first, second)
    found.by(lambda side, node: side.here[node])
    found.by(lambda side, node: side.after[node], only_single=True)
    found.by(lambda side, node: None if is_weak(node.name, node.op_type) else (node.name, *_op(node)))
    found.by(_weights, only_single=True)
    found.spread()
    found.by(lambda side, node: (node.name, *_op(node)) if node.name else None)
    found.by(lambda side, node: (*_made(node), *_op(node)) if _made(node) else None)
    found.spread()
    found.by(lambda side, node: _made(node) or None)  # another op in the same place
    found.spread()
    return found.pairs


def _op(node: ir.Node) -> tuple[str, str]:
    return node.domain, node.op_type


def _made(node: ir.Node) -> tuple[str, ...]:
    return tuple(value.name for value in node.outputs if value.name)


def _weights(side: Side, node: ir.Node) -> Hashable:
    """The op and the constants that are too large to be the same by accident."""
    known = ((i, side.constant(value)) for i, value in enumerate(node.inputs))
    large = [(i, side.numbers.of(tensor)) for i, tensor in known if tensor is not None and tensor.size > 16]
    return (*_op(node), *large) if large else None


class _Matcher:
    def __init__(self, first: Side, second: Side) -> None:
        self.first, self.second = first, second
        self.pairs: Pairs = {}
        self._taken: set[ir.Node] = set()
        self._fresh: deque[tuple[ir.Node, ir.Node]] = deque()

    def by(self, key: Callable[[Side, ir.Node], Hashable], only_single: bool = False) -> None:
        """Match nodes of equal keys: those of equal names, or whose results have, and the others in their order."""
        groups = self._groups(self.first, key, self.pairs), self._groups(self.second, key, self._taken)
        for found, nodes in groups[0].items():
            others = groups[1].get(found, [])
            if not others or (only_single and len(nodes) + len(others) > 2):
                continue
            self._match(nodes, others)

    @staticmethod
    def _groups(
        side: Side, key: Callable[[Side, ir.Node], Hashable], known: Iterable[ir.Node]
    ) -> dict[Hashable, list[ir.Node]]:
        made: dict[Hashable, list[ir.Node]] = {}
        done = set(known)
        for node in side.nodes:
            if node not in done and (found := key(side, node)) is not None:
                made.setdefault(found, []).append(node)
        return made

    def _match(self, nodes: list[ir.Node], others: list[ir.Node]) -> None:
        for names in (lambda node: (node.name, *_made(node)), lambda node: node.name, _made):
            known = {names(node): node for node in reversed(others) if node not in self._taken}
            for node in nodes:
                twin = known.pop(names(node), None) if names(node) and node not in self.pairs else None
                if twin is not None:
                    self._pair(node, twin)
        left = [node for node in nodes if node not in self.pairs]
        for node, twin in zip(left, [node for node in others if node not in self._taken], strict=False):
            self._pair(node, twin)

    def _pair(self, node: ir.Node, twin: ir.Node) -> None:
        self.pairs[node] = twin
        self._taken.add(twin)
        self._fresh.append((node, twin))

    def spread(self) -> None:
        """Match the neighbours of what is matched: the same op at the same place."""
        while self._fresh:
            node, twin = self._fresh.popleft()
            for value, other in zip(node.inputs, twin.inputs, strict=False):
                if value is None or other is None or value.index() != other.index():
                    continue
                one, two = value.producer(), other.producer()
                if one is not None and two is not None and self._is_free(one, two) and _op(one) == _op(two):
                    self._pair(one, two)
            for value, other in zip(node.outputs, twin.outputs, strict=False):
                self._spread_to_readers(value, other)

    def _is_free(self, node: ir.Node, twin: ir.Node) -> bool:
        known = node in self.first.order and twin in self.second.order
        return known and node not in self.pairs and twin not in self._taken

    def _spread_to_readers(self, value: ir.Value, other: ir.Value) -> None:
        readers = self._readers(value, self.first, self.pairs), self._readers(other, self.second, self._taken)
        for place, nodes in readers[0].items():
            if len(nodes) == len(readers[1].get(place, ())):
                self._match(nodes, readers[1][place])

    @staticmethod
    def _readers(value: ir.Value, side: Side, known: Iterable[ir.Node]) -> dict[Hashable, list[ir.Node]]:
        made: dict[Hashable, list[ir.Node]] = {}
        for node, index in value.uses():
            if node in side.order and node not in known:
                made.setdefault((index, *_op(node)), []).append(node)
        return {place: sorted(nodes, key=side.order.__getitem__) for place, nodes in made.items()}
