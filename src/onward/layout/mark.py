"""What each node of a graph makes and wants, before it is decided who gets which layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from onward.graph.known import Known
from onward.layout.change import Aligned, Change, constant, is_plain
from onward.layout.meanings import Meanings, change_of, has_layout, main_tensor, permutation
from onward.layout.orders import Layout, Order, between, to_last
from onward.layout.partition import Partition, Side, cost_of
from onward.layout.roles import DOMAIN, Images, Roles, images_of


@dataclass(frozen=True)
class Mark:
    """A node that need not be computed on tensors as the graph has them."""

    meaning: Layout
    """Of its main tensor; stored otherwise, `change` says how the node is written."""
    change: Change | None = None
    images: Images | None = None
    """Of an op that the target has for channels last only."""
    perm: Order | None = None
    """Of a Transpose."""
    takes_any: bool = False
    """Whether the first input may be stored either way, whatever the outputs are."""


class Reader(NamedTuple):
    """Input `i` of `node`, which reads a tensor as `value`."""

    value: ir.Value
    node: ir.Node
    i: int
    wanted: Side | None
    """What decides in which layout; None where the node takes either."""


class Marked:
    """A graph of which it is known how each node can be computed."""

    def __init__(self, graph: ir.Graph, roles: Roles, inputs: dict[str, Layout], outputs: dict[str, Layout]) -> None:
        self.graph = graph
        self.roles = roles
        self.inputs = inputs
        self.outputs = outputs
        known = Known()
        for node in graph:
            known.node(node)
        self.meanings = Meanings(graph, known)
        self.same: dict[ir.Value, ir.Value] = {}
        """Results of transposes between the layouts, and the tensor that each is in memory, if stored in one layout."""
        self.marks: dict[ir.Node, Mark] = {}
        for node in graph:
            mark = self._mark(node, known)
            if mark is not None:
                self.marks[node] = mark

    def _mark(self, node: ir.Node, known: Known) -> Mark | None:
        images = images_of(node)
        if images is not None:
            return self._image_op(node, images)
        perm = permutation(node)
        if perm is not None:
            return self._transpose(node, perm)
        main = main_tensor(node)
        if main is None:
            return None
        meaning = self.meanings.of(main)
        change = change_of(node, known, meaning, self.order(main))
        if change is None or not self._fits(node, change, meaning):
            return None
        return Mark(meaning, change, takes_any=change.takes_any)

    def _image_op(self, node: ir.Node, images: Images) -> Mark | None:
        if node.op_type in self.roles.channels_last:
            return Mark(Layout.FIRST, images=images)
        if node.op_type not in self.roles.either:
            return None
        order = to_last(len(node.outputs[0].shape or ()))
        change = Change(dict.fromkeys(images.inputs, order), dict.fromkeys(images.outputs, order), domain=DOMAIN)
        return Mark(Layout.FIRST, change)

    def _transpose(self, node: ir.Node, perm: Order) -> Mark | None:
        """A Transpose between the layouts only gives a tensor another meaning; any other takes and gives either."""
        x, y = node.inputs[0], node.outputs[0]
        if x is None or constant(x) is not None:
            return None
        if self._moves_nothing(x, y, perm, Layout.FIRST) and self._moves_nothing(x, y, perm, Layout.LAST):
            self.same[y] = self.original(x)
            return None
        return Mark(self.meanings.of(y), perm=perm, takes_any=True)

    def _moves_nothing(self, x: ir.Value, y: ir.Value, perm: Order, layout: Layout) -> bool:
        """Whether a Transpose is no work when both its tensors are stored in this layout."""
        return is_plain(stored_permutation(perm, self.order(x, layout), self.order(y, layout)))

    def original(self, value: ir.Value) -> ir.Value:
        """The tensor of which this is the same in memory."""
        return self.same.get(value, value)

    def _fits(self, node: ir.Node, change: Change, meaning: Layout) -> bool:
        """Whether every tensor has an order that it can be stored in, when the main one is stored the other way."""
        ports = [(node.inputs[i], order) for i, order in change.inputs.items()]
        ports += [(node.outputs[i], order) for i, order in change.outputs.items()]
        for value, order in ports:
            if value is None or constant(value) is not None or is_plain(order):
                continue
            if self.meanings.of(value) is not meaning or order != self.order(value):
                return False
        return True

    def made(self, value: ir.Value) -> Side:
        """In which layout a value with a layout is made."""
        node, plain = value.producer(), self.meanings.of(value)
        if node is None:
            return self.inputs.get(value.name or "", plain)
        mark, i = self.marks.get(node), node.outputs.index(value)
        if mark is None:
            return plain
        if mark.images is not None:
            return Layout.LAST if i in mark.images.outputs else plain
        if mark.change is not None and is_plain(mark.change.outputs.get(i, ())):
            return plain
        return node

    def wanted(self, value: ir.Value, node: ir.Node, i: int) -> Side | None:
        """In which layout a node wants its input `i`; None where it takes either."""
        mark, plain = self.marks.get(node), self.meanings.of(value)
        if mark is None:
            return plain
        if mark.images is not None:
            return Layout.LAST if i in mark.images.inputs else plain
        if mark.takes_any and i == 0:
            return None
        if mark.change is not None and is_plain(mark.change.inputs.get(i, ())):
            return plain
        return node

    def readers(self) -> dict[ir.Value, list[Reader]]:
        """Every tensor with a layout that the graph makes, is given or takes from the graphs around it, and who reads
        it, under whichever name.
        """
        made = (value for node in self.graph for value in node.outputs)
        own = dict.fromkeys([*self.graph.inputs, *made])
        read = (value for node in self.graph for value in node.inputs if value is not None)
        found: dict[ir.Value, list[Reader]] = {}
        for value in own | dict.fromkeys(read):
            if has_layout(value) and constant(value) is None:
                found.setdefault(self.original(value), []).extend(self._readers(value, is_own=value in own))
        return found

    def _readers(self, value: ir.Value, is_own: bool) -> Iterator[Reader]:
        """Of a value from outside only those in this graph: any others read it as it is, and as it stays."""
        for node, i in value.uses():
            if node.outputs[0] not in self.same and (is_own or node.graph is self.graph):
                yield Reader(value, node, i, self.wanted(value, node, i))

    def given_out(self, value: ir.Value) -> Layout:
        """In which layout the graph gives a value out."""
        return self.outputs.get(value.name or "", self.meanings.of(value))

    def partition(self, preferred: Layout) -> dict[ir.Node, Layout]:
        """The layout in which each marked node stores its main tensor."""
        cut = Partition()
        given_out: dict[ir.Value, list[Layout]] = {}
        for value in self.graph.outputs:
            given_out.setdefault(self.original(value), []).append(self.given_out(value))
        for value, readers in self.readers().items():
            wanted = [reader.wanted for reader in readers if reader.wanted is not None]
            cut.value(self.made(value), [*wanted, *given_out.get(value, ())], cost_of(value, self.order(value)))
        for node, mark in self.marks.items():
            for i, operand in mark.change.operands.items() if mark.change else ():
                given = node.inputs[i] if i < len(node.inputs) else None
                if isinstance(operand, Aligned) and given is not None and _is_moved(given, operand.order):
                    order = aligned_order(operand.order, len(given.shape or ()))
                    cut.burden(node, mark.meaning.other, cost_of(given, order))
            if mark.change is not None and mark.change.burden:
                cut.burden(node, mark.meaning.other, mark.change.burden)
            if mark.perm is not None:
                self._own_transpose(cut, node, mark.perm)
        decided = cut.decide(preferred)
        return {node: decided.get(node, mark.meaning) for node, mark in self.marks.items()}

    def _own_transpose(self, cut: Partition, node: ir.Node, perm: Order) -> None:
        """A Transpose that is no work if both its tensors are stored in one of the layouts, and is otherwise."""
        x, y = node.inputs[0], node.outputs[0]
        free = [layout for layout in Layout if x is not None and self._moves_nothing(x, y, perm, layout)]
        if x is not None and len(free) == 1:
            cut.value(free[0], [self.made(self.original(x)), node], cost_of(x, perm))

    def order(self, value: ir.Value, layout: Layout | None = None) -> Order:
        """How a tensor is stored in a layout; unless one is given, in the one that it does not have."""
        return self.meanings.order(value, layout)


def stored_permutation(perm: Order, given: Order, wanted: Order) -> Order:
    """The permutation of a Transpose whose input and output are stored in these orders."""
    return between(tuple(perm.index(axis) for axis in given), wanted)


def _is_moved(value: ir.Value, order: Order) -> bool:
    """Whether an operand of lower rank needs a Transpose at run time to fit a result stored in this order."""
    if constant(value) is not None or value.shape is None:
        return False
    return not is_plain(aligned_order(order, len(value.shape)))


def aligned_order(order: Order, rank: int) -> Order:
    """The order of an operand of lower rank, whose axes are the last ones of the result."""
    missing = len(order) - rank
    return tuple(axis - missing for axis in order if axis >= missing)
