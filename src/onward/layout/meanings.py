"""Which tensors are meant channels first, and which channels last.

Convolutions and their like say it of their images, elementwise ops and their like carry it on, a Transpose between the
two layouts turns it round. A tensor of which nothing says anything counts as channels first,
and is stored as it is. What a Reshape makes of the axes of another tensor, and what is computed of that, may be stored
in an order of its own: the one that the other tensor has in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import onnx_ir as ir

from onward.graph.known import Known, dims_of
from onward.layout.change import Case, Change, Fixed, constant
from onward.layout.orders import MOVABLE, Layout, Order, identity, order_of, to_first, to_last
from onward.layout.reshapes import split_order
from onward.layout.roles import images_of
from onward.layout.rules import rule_of


def has_layout(value: ir.Value | None) -> bool:
    return value is not None and value.shape is not None and len(value.shape) in MOVABLE


def main_tensor(node: ir.Node) -> ir.Value | None:
    """The tensor by whose storage that of the others of a node is given, for nodes that have a rule."""
    rule = rule_of(node)
    if rule is None or not node.inputs or not node.outputs:
        return None
    candidates = [node.inputs[0]] if rule.main_is_input else [node.outputs[0]]
    if node.op_type == "Reshape":
        candidates.append(node.outputs[0])
    return next((v for v in candidates if has_layout(v)), None)


def change_of(node: ir.Node, known: Known, meaning: Layout, order: Order | None = None) -> Change | None:
    """How a node is written when its main tensor is stored the other way; None where it has to be as it is."""
    main, rule = main_tensor(node), rule_of(node)
    if main is None or rule is None:
        return None
    order = order or order_of(len(main.shape or ()), meaning, meaning.other)
    try:
        return rule.change(Case(node, known, main, meaning, order))
    except Fixed:
        return None


def permutation(node: ir.Node) -> Order | None:
    """The permutation of a Transpose of a tensor that has a layout, otherwise None."""
    if node.op_type != "Transpose" or node.domain or not has_layout(node.inputs[0]) or not has_layout(node.outputs[0]):
        return None
    x = node.inputs[0]
    assert x is not None and x.shape is not None
    perm = node.attributes.get("perm")
    return tuple(reversed(range(len(x.shape)))) if perm is None else tuple(perm.as_ints())


class Meanings:
    """The meaning of every tensor of a graph that has a layout."""

    def __init__(self, graph: ir.Graph, known: Known) -> None:
        self._parents: dict[ir.Value, tuple[ir.Value, bool]] = {}
        """To the parent, and whether it is meant the other way round."""
        self._said: dict[ir.Value, Layout] = {}
        self._own: dict[ir.Value, tuple[Layout, Order]] = {}
        """Of tensors with an order of their own: their meaning, and the order."""
        images = [value for node in graph for value in _images(node)]
        for value in images:
            self._say(value, Layout.FIRST)
        self._settled = {*images, *graph.inputs, *graph.outputs}
        self._alike: dict[ir.Value, list[ir.Value]] = {}
        weak: list[tuple[ir.Value, ir.Value]] = []
        for node in graph:
            for a, b in _carried(node, known):
                if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
                    self._join(a, b)
                    self._alike.setdefault(a, []).append(b)
                    self._alike.setdefault(b, []).append(a)
                else:
                    weak.append((a, b))
        for node in graph:
            self._transpose(node)
        for a, b in weak:
            self._join(a, b)
        for node in reversed(graph):
            self._merged(node)
        for node in graph:
            self._followed(node, known)

    def of(self, value: ir.Value) -> Layout:
        return self._own[value][0] if value in self._own else self._told(value) or Layout.FIRST

    def order(self, value: ir.Value, layout: Layout | None = None) -> Order:
        """How a tensor is stored in a layout; unless one is given, in the one that it does not have."""
        rank, meaning = len(value.shape or ()), self.of(value)
        if layout is meaning:
            return identity(rank)
        return self._own[value][1] if value in self._own else order_of(rank, meaning, meaning.other)

    def is_image(self, value: ir.Value) -> bool:
        """Whether anything in the graph says where the channels are."""
        return self._told(value) is not None

    def _told(self, value: ir.Value) -> Layout | None:
        root, turned = self._root(value)
        said = self._said.get(root)
        return said.other if said and turned else said

    def _root(self, value: ir.Value) -> tuple[ir.Value, bool]:
        path, turned = [], False
        while value in self._parents:
            parent, turn = self._parents[value]
            path.append((value, turned))
            turned ^= turn
            value = parent
        for passed, before in path:
            self._parents[passed] = value, turned ^ before
        return value, turned

    def _say(self, value: ir.Value, meaning: Layout) -> bool:
        """Note a meaning, unless the opposite is known; tells whether it holds."""
        root, turned = self._root(value)
        wanted = meaning.other if turned else meaning
        return self._said.setdefault(root, wanted) is wanted

    def _join(self, a: ir.Value, b: ir.Value, turned: bool = False) -> bool:
        """Let two tensors be meant alike, or opposite, unless they are known not to be; tells whether it holds."""
        (root, turn), (other, turn_other) = self._root(a), self._root(b)
        turned ^= turn ^ turn_other
        if root is other:
            return not turned
        said = self._said.get(root)
        if said is not None:
            theirs = said.other if turned else said
            if self._said.setdefault(other, theirs) is not theirs:
                return False
        self._parents[root] = other, turned
        return True

    def _transpose(self, node: ir.Node) -> None:
        perm = permutation(node)
        x = node.inputs[0] if perm else None
        if perm is None or x is None:
            return
        y, rank = node.outputs[0], len(perm)
        if rank == 3 and perm == to_last(rank):
            self._join(x, y, turned=True)
        elif perm in (to_last(rank), to_first(rank)):
            before = Layout.FIRST if perm == to_last(rank) else Layout.LAST
            if self._told(x) is not before.other and self._told(y) is not before:
                self._say(x, before)
                self._say(y, before.other)

    def _merged(self, node: ir.Node) -> None:
        """Before a Reshape that makes one axis of several, a tensor is best stored as its result is."""
        x, y = (node.inputs[0], node.outputs[0]) if node.op_type == "Reshape" and not node.domain else (None, None)
        if x is None or y is None or not has_layout(x) or not has_layout(y) or constant(x) is not None:
            return
        few, many = dims_of(y) or [], dims_of(x) or []
        if len(few) < len(many):
            with suppress(Fixed):
                self._store(x, self.of(y), split_order(self.order(y), few, many))

    def _followed(self, node: ir.Node, known: Known) -> None:
        """Let the results of a node be stored as its input is in memory."""
        perm, main = permutation(node), main_tensor(node)
        x = node.inputs[0] if node.inputs else None
        if x is None or constant(x) is not None:
            return
        if perm is not None and x in self._own:
            self._store(node.outputs[0], self.of(x), tuple(perm.index(axis) for axis in self.order(x)))
        elif main is x:
            change = change_of(node, known, self.of(x), self.order(x))
            for i, order in change.outputs.items() if change else ():
                self._store(node.outputs[i], self.of(x), order)

    def _store(self, value: ir.Value, meaning: Layout, order: Order) -> None:
        """Let a tensor and all that are meant alike have this order, unless one of them is settled otherwise."""
        if order == self.order(value) and meaning is self.of(value):
            return
        found, pending = {value}, [value]
        while pending:
            new = [v for v in self._alike.get(pending.pop(), ()) if v not in found]
            found.update(new)
            pending += new
        if not any(v in self._settled or v in self._own for v in found):
            self._own.update(dict.fromkeys(found, (meaning, order)))


def _images(node: ir.Node) -> Iterator[ir.Value]:
    images = images_of(node)
    if images is not None:
        values = [*(node.inputs[i] for i in images.inputs), *(node.outputs[i] for i in images.outputs)]
        yield from (value for value in values if value is not None and constant(value) is None)


def _carried(node: ir.Node, known: Known) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Pairs of tensors that are meant alike."""
    main = main_tensor(node)
    change = change_of(node, known, Layout.FIRST) or change_of(node, known, Layout.LAST)
    if main is None or change is None:
        return
    for value in [*(node.inputs[i] for i in change.inputs), *(node.outputs[i] for i in change.outputs)]:
        if value is not None and value is not main and constant(value) is None:
            yield main, value
