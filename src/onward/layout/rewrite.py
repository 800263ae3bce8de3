"""Writes a graph anew for the layouts that were chosen: in place, each node keeps its name and its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.known import Dim, dims_of
from onward.graph.names import Names
from onward.graph.origin import copy_origin, mark_origin
from onward.graph.rewriter import attribute
from onward.layout.change import Aligned, Array, Change, Picked, constant, is_plain
from onward.layout.constants import Constants
from onward.layout.mark import Mark, Marked, aligned_order, stored_permutation
from onward.layout.orders import Layout, Order, arranged, between, identity, moves_nothing, to_last
from onward.layout.roles import DOMAIN

OPSET = 21
"""Of standard ops in a model that had none."""


class Rewriter:
    def __init__(self, model: ir.Model, marked: Marked, layouts: Mapping[ir.Node, Layout], names: Names) -> None:
        self._opsets = model.opset_imports
        self._graph = marked.graph
        self._marked = marked
        self._layouts = layouts
        self._names = names
        self._constants = Constants(model.graph, names)
        self._readers = marked.readers()
        self._stored = {value: self._decided(marked.made(value)) for value in self._readers}
        self._dims: dict[ir.Value, list[Dim]] = {value: dims_of(value) or [] for value in self._readers}
        """As the graph has them."""
        self._versions = {(value, layout): value for value, layout in self._stored.items()}
        self._taken: dict[ir.Node, tuple[Layout, Order]] = {}
        """How the first input of a node that takes either layout is stored."""

    def run(self) -> None:
        outputs = [self._marked.given_out(value) for value in self._graph.outputs]
        nodes = [node for node in self._graph if node in self._marked.marks]
        for value, readers in self._readers.items():
            for reader in readers:
                layout = self._stored[value] if reader.wanted is None else self._decided(reader.wanted)
                if reader.wanted is None:
                    self._taken[reader.node] = layout, self._marked.order(reader.value, layout)
                reader.node.replace_input_with(reader.i, self._version(value, layout))
        for value, layout in self._stored.items():
            value.shape = ir.Shape(arranged(self._dims[value], self._marked.order(value, layout)))
        for node in nodes:
            self._node(node, self._marked.marks[node])
        for i, layout in enumerate(outputs):
            self._output(i, layout)
        self._clear()

    def _decided(self, side: Layout | ir.Node) -> Layout:
        return side if isinstance(side, Layout) else self._layouts[side]

    def _version(self, value: ir.Value, layout: Layout) -> ir.Value:
        """A tensor as it is stored in a layout, moved once for all readers, behind the node that makes it."""
        if (value, layout) not in self._versions:
            given, wanted = (self._marked.order(value, at) for at in (layout.other, layout))
            dims, perm = arranged(self._dims[value], given), between(given, wanted)
            self._versions[value, layout] = self._moved(value, dims, perm, f"{value.name}_{layout.value}")
        return self._versions[value, layout]

    def _moved(self, value: ir.Value, dims: list[Dim], perm: Order, name: str) -> ir.Value:
        """A Transpose, or a Reshape where there is nothing to move."""
        result = arranged(dims, perm)
        unknown = [dim for dim in result if not isinstance(dim, int)]
        if moves_nothing(dims, perm) and len(unknown) <= 1 and 0 not in result:
            shape = np.array([dim if isinstance(dim, int) else -1 for dim in result], np.int64)
            return self._after(value, "Reshape", [self._constants.numbers(shape, f"{name}_shape")], {}, result, name)
        return self._after(value, "Transpose", [], {"perm": perm}, result, name)

    def _after(
        self,
        value: ir.Value,
        op_type: str,
        operands: Sequence[ir.Value],
        attributes: dict[str, Any],
        dims: Sequence[Dim],
        name: str,
    ) -> ir.Value:
        """What a new node behind the one that makes `value` makes of it."""
        self._opsets.setdefault("", OPSET)
        attrs = [attribute(key, item) for key, item in attributes.items()]
        producer = value.producer()
        node = ir.Node("", op_type, [value, *operands], attrs, name=self._names.node(f"{name}/{op_type}"))
        if producer is not None and producer.graph is self._graph:
            node.metadata_props.update(producer.metadata_props)
            copy_origin(node, producer)
            self._graph.insert_after(producer, node)
        elif len(self._graph):
            self._graph.insert_before(self._graph[0], node)
        else:
            self._graph.append(node)
        made = node.outputs[0]
        made.name, made.type, made.shape = self._names.value(name), value.type, ir.Shape(dims)
        return made

    def _node(self, node: ir.Node, mark: Mark) -> None:
        mark_origin(node)
        if mark.images is not None:
            self._move(node, DOMAIN)
            for i in mark.images.inputs:
                self._permute(node, i, to_last(len(self._shape(node.inputs[i]))))
        elif mark.perm is not None:
            wanted = self._marked.order(node.outputs[0], self._layouts[node])
            perm = stored_permutation(mark.perm, self._taken[node][1], wanted)
            node.attributes.clear()
            if is_plain(perm):
                node.op_type = "Identity"
            else:
                node.attributes["perm"] = ir.AttrInt64s("perm", perm)
        elif mark.change is not None:
            layout = self._taken.get(node, (mark.meaning,))[0] if mark.takes_any else self._layouts[node]
            if layout is not mark.meaning:
                self._apply(node, mark.change)

    def _move(self, node: ir.Node, domain: str) -> None:
        """Let a node be the op of another domain."""
        node.domain, node.version = domain, None
        self._opsets[domain] = 1

    def _apply(self, node: ir.Node, change: Change) -> None:
        if change.domain:
            self._move(node, change.domain)
        for i, order in change.inputs.items():
            self._permute(node, i, order)
        for i, operand in change.operands.items():
            if i >= len(node.inputs):
                node.resize_inputs(i + 1)
            node.replace_input_with(i, self._operand(node, i, operand))
        for name, item in change.attributes.items():
            node.attributes.pop(name, None)
            if item is not None:
                node.attributes[name] = attribute(name, item)
        if change.picked is not None:
            self._pick(node.outputs[0], change.picked)

    def _permute(self, node: ir.Node, i: int, order: Order) -> None:
        """Constants among the inputs that have an order of their own; all others are stored in it by now."""
        value = node.inputs[i]
        if value is not None and constant(value) is not None and not is_plain(order):
            node.replace_input_with(i, self._constants.permuted(value, order))

    def _operand(self, node: ir.Node, i: int, operand: Array | Picked | Aligned) -> ir.Value:
        if isinstance(operand, np.ndarray):
            return self._constants.numbers(operand, f"{node.outputs[0].name}_in{i}")
        value = node.inputs[i]
        assert value is not None
        if isinstance(operand, Picked):
            return value if is_plain(operand.indices) else self._picked(value, operand.indices)
        if constant(value) is not None:
            return self._constants.permuted(value, operand.order)
        return self._aligned(value, operand.order)

    def _picked(self, value: ir.Value, indices: tuple[int, ...]) -> ir.Value:
        numbers = self._constants.numbers(np.array(indices, np.int64), f"{value.name}_order")
        return self._after(value, "Gather", [numbers], {"axis": 0}, [len(indices)], f"{value.name}_picked")

    def _pick(self, vector: ir.Value, indices: tuple[int, ...]) -> None:
        """Let all readers of a vector read some of its elements."""
        readers = list(vector.uses())
        made = self._picked(vector, indices)
        vector.shape = ir.Shape([len(identity(max(indices) + 1))])
        for node, i in readers:
            node.replace_input_with(i, made)
        for i, value in enumerate(self._graph.outputs):
            if value is vector:
                self._give_out(i, made)

    def _aligned(self, value: ir.Value, order: Order) -> ir.Value:
        """An operand of lower rank with its axes where those of the stored result are."""
        dims = dims_of(value) or []
        perm, missing = aligned_order(order, len(dims)), len(order) - len(dims)
        if not is_plain(perm):
            dims = arranged(dims, perm)
            value = self._after(value, "Transpose", [], {"perm": perm}, dims, f"{value.name}_transposed")
        first = next(place for place, axis in enumerate(order) if axis >= missing)
        added = [place - first for place, axis in enumerate(order) if axis < missing and place > first]
        if not added:
            return value
        for place in added:
            dims = [*dims[:place], 1, *dims[place:]]
        axes = self._constants.numbers(np.array(added, np.int64), f"{value.name}_axes")
        return self._after(value, "Unsqueeze", [axes], {}, dims, f"{value.name}_aligned")

    def _output(self, i: int, layout: Layout) -> None:
        value = self._graph.outputs[i]
        original = self._marked.original(value)
        if original in self._stored:
            version = self._version(original, layout)
            if version is not value:
                self._give_out(i, version)

    def _give_out(self, i: int, version: ir.Value) -> None:
        """Let the graph give out another value under the name that its output has."""
        value, name = self._graph.outputs[i], self._graph.outputs[i].name
        if value.is_graph_input():
            raise UnsupportedError(f"{name!r} is an input and an output of the model, which cannot differ in layout")
        producer = version.producer()
        if producer is None or producer.graph is not self._graph or version.is_graph_output():
            version = self._after(version, "Identity", [], {}, dims_of(version) or [], f"{version.name}_same")
        self._graph.outputs[i] = version
        value.name = self._names.value(f"{name}_inner")
        version.name = name

    def _clear(self) -> None:
        """Remove the transposes that have become two names for one tensor, and the constants nobody reads any more."""
        for value in reversed(self._marked.same):
            node = value.producer()
            if node is not None and not value.uses():
                self._graph.remove(node, safe=True)
        self._constants.remove_replaced()

    @staticmethod
    def _shape(value: ir.Value | None) -> ir.Shape:
        assert value is not None and value.shape is not None
        return value.shape
