"""Sequences whose elements are known one by one are replaced by these, so that gradients pass through tensors only."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.infer import infer
from onward.graph.rewriter import Rewriter, dims, input_of, is_used, needed
from onward.graph.walk import all_nodes, inner_graphs

MAKES = frozenset({"SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SplitToSequence"})
READS = frozenset({"SequenceAt", "SequenceLength", "ConcatFromSequence"})


def unpack_sequences(model: ir.Model) -> None:
    """Write tensors for sequences, in place, as far as lengths and positions are constants."""
    if any(node.op_type in MAKES and not node.domain for node in all_nodes(model.graph)):
        unpacker = _Unpacker(model)
        unpacker.graph(model.graph)
        infer(model)


class _Unpacker:
    def __init__(self, model: ir.Model) -> None:
        self.op = Rewriter(model)
        self.elements: dict[ir.Value, list[ir.Value]] = {}

    def graph(self, graph: ir.Graph) -> None:
        nodes = list(graph)
        for node in nodes:
            for inner in inner_graphs(node):
                self.graph(inner)
            if not node.domain:
                self._node(node)
        for node in reversed(nodes):
            if node.graph is graph and node.op_type in MAKES and not is_used(node.outputs[0]):
                graph.remove(node, safe=True)

    def _node(self, node: ir.Node) -> None:
        if node.op_type in MAKES or node.op_type == "Identity":
            made = self._made(node)
            if made is not None:
                self.elements[node.outputs[0]] = made
        elif node.op_type in READS and (given := self.elements.get(needed(node, 0))) is not None:
            self._read(node, given)

    def _made(self, node: ir.Node) -> list[ir.Value] | None:
        """The elements of the sequence that a node makes, if they are known."""
        if node.op_type == "SequenceEmpty":
            return []
        if node.op_type == "SequenceConstruct":
            return [value for value in node.inputs if value is not None]
        if node.op_type == "SplitToSequence":
            return self._split(node)
        known = self.elements.get(needed(node, 0))
        if known is None or node.op_type == "Identity":
            return known
        is_insert = node.op_type == "SequenceInsert"
        at = self._position(input_of(node, 2 if is_insert else 1), len(known), len(known) if is_insert else -1)
        if at is None:
            return None
        return [*known[:at], needed(node, 1), *known[at:]] if is_insert else [*known[:at], *known[at + 1 :]]

    def _position(self, value: ir.Value | None, count: int, default: int = 0) -> int | None:
        if value is None:
            return default % max(count, 1) if default < 0 else default
        number = self.op.read(value)
        if number is None:
            return None
        at = int(number.flat[0])
        at += count if at < 0 else 0
        return at if 0 <= at <= count else None

    def _split(self, node: ir.Node) -> list[ir.Value] | None:
        x, lengths = needed(node, 0), input_of(node, 1)
        axis, keepdims = (node.attributes.get_int(name, default) for name, default in (("axis", 0), ("keepdims", 1)))
        sizes = dims(x)
        length = None if sizes is None else sizes[axis]
        if lengths is None:
            parts = None if length is None else [1] * length
        else:
            given = self.op.read(lengths)
            if given is None or (given.ndim == 0 and length is None):
                return None
            if given.ndim:
                parts = [int(size) for size in given]
            else:
                step = int(given)
                parts = [min(step, (length or 0) - start) for start in range(0, length or 0, step)]
        if not parts:
            return None
        op = self.op.at(node)
        made = list(op.many(len(parts), "Split", x, op.ints(parts), axis=axis))
        return made if keepdims or lengths is not None else [op("Squeeze", part, op.ints([axis])) for part in made]

    def _read(self, node: ir.Node, known: list[ir.Value]) -> None:
        op = self.op.at(node)
        if node.op_type == "SequenceLength":
            op.replace(op.ints(len(known)))
        elif node.op_type == "SequenceAt":
            at = self._position(input_of(node, 1), len(known))
            if at is not None and at < len(known):
                op.replace(op("Identity", known[at]))
        elif known:
            axis = node.attributes.get_int("axis", 0)
            if node.attributes.get_int("new_axis", 0):
                known = [op("Unsqueeze", value, op.ints([axis])) for value in known]
            op.replace(op("Concat", *known, axis=axis))
