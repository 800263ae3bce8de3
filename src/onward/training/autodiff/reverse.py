"""Reverse-mode differentiation of a graph, written as standard ONNX nodes behind it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onward.canon.defaults import fill_nodes
from onward.canon.lower import key_of
from onward.errors import UnsupportedError
from onward.graph.build import Builder, Tensor
from onward.graph.origin import origin
from onward.graph.walk import all_graphs, inner_graphs
from onward.plugins.advice import next_rule
from onward.spec.meaning import parameters
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.quantised_values import carriers, is_float, is_narrow, same_kind
from onward.training.autodiff.stops import stops
from onward.training.autodiff.vjp import RULES, load_rules

Values = Sequence[ir.Value]
NUMBER = ir.DataType.FLOAT
"""What integers that stand for real numbers are computed with, and their gradients."""


class MissingGradient(UnsupportedError):
    """An op between a trainable weight and the loss has no gradient rule."""


def gradients(op: Builder, y: ir.Value, wrt: Values, seed: Tensor | None = None) -> list[Tensor | None]:
    """The gradients of `y` with respect to values of the same graph, None for one that `y` does not depend on.

    New nodes go to the end of `op.graph`. `seed` is the gradient of `y` itself: ones, unless given.
    """
    start = seed if seed is not None else op.filled(op.tensor(y), 1)
    return several_gradients(op, [(y, start)], wrt)


def several_gradients(op: Builder, ends: Sequence[tuple[ir.Value, Tensor]], wrt: Values) -> list[Tensor | None]:
    """As `gradients`, from several values whose gradients are given."""
    load_rules()
    tape = Tape(op, dependents_of(op.graph, wrt)[0])
    for value, gradient in ends:
        tape.add(value, gradient)
    nodes = on_the_way(op.graph, [value for value, _ in ends], wrt)
    require_rules(op.graph, nodes, wrt)
    fill_nodes(nodes, op.model.opset_imports)
    for node in reversed(nodes):
        tape.back(node)
    if tape.has_replaced:
        op.graph.sort()
    return [tape.gradient(value) for value in wrt]


class Tape:
    """The gradients found so far."""

    def __init__(self, op: Builder, reached: Container[ir.Value]) -> None:
        self.op = op
        self.reached = reached
        """The values that depend on what the derivatives are taken with respect to."""
        self.has_replaced = False
        """Whether forward nodes now depend on nodes behind them."""
        self._found: dict[ir.Value, list[Tensor]] = {}

    def add(self, value: ir.Value, gradient: Tensor) -> None:
        """A gradient has the dimensions of its value, also where inference did not find them."""
        if is_narrow(value):
            gradient = gradient.cast(NUMBER)
        own, known = gradient.value.shape, value.shape
        if own is not None and known is not None and own.rank() == known.rank():
            pairs = zip(own, known, strict=True)
            gradient.value.shape = ir.Shape([b if not isinstance(a, int) and a.value is None else a for a, b in pairs])
        self._found.setdefault(value, []).append(gradient)

    def gradient(self, value: ir.Value) -> Tensor | None:
        """The sum of what has come in for a value."""
        found = self._found.get(value)
        if not found:
            return None
        if len(found) > 1:
            found[:] = [self.op.total(found)]
        return found[0]

    def back(self, node: ir.Node) -> None:
        """Carry the gradients of a node's outputs to its inputs."""
        if all(self.gradient(output) is None for output in node.outputs):
            return
        rule = RULES.get(key_of(node))
        assert rule is not None, "see require_rules"
        outer, self.op.scope = self.op.scope, f"{node.name or node.op_type}/grad/"
        inputs = [None if value is None else self.op.tensor(value) for value in node.inputs]
        context = Context(self.op, node, self, rule.of_levels)
        given = inputs if rule.of_levels else context.as_numbers(inputs)
        found = rule.apply(context, self.gradient(node.outputs[0]), *given, **parameters(node))
        self.op.scope = outer
        if found is None or isinstance(found, Tensor):
            found = [found]
        for tensor, gradient in zip(inputs, found, strict=False):
            if tensor is not None and gradient is not None and tensor.value in self.reached:
                self.add(tensor.value, unbroadcast(gradient, tensor) if rule.broadcasts else gradient)


@dataclass(frozen=True)
class Context:
    """What a rule sees besides gradient, inputs and attributes."""

    op: Builder
    node: ir.Node
    tape: Tape
    of_levels: bool = False
    """Integers are seen as they are, not as the numbers that they are."""

    def as_numbers(self, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
        """What the node takes, integers that stand for real numbers, and those beside them, as such."""
        kinds = same_kind(self.node) if is_narrow(self.node.outputs[0]) else [False] * len(inputs)
        return [x.cast(NUMBER) if x is not None and same else x for x, same in zip(inputs, kinds, strict=True)]

    @property
    def y(self) -> Tensor:
        """The first output."""
        return self.output(0)

    def output(self, index: int) -> Tensor:
        found = self.op.tensor(self.node.outputs[index])
        stands_for_numbers = self.wants(found.value) and is_narrow(found.value)
        return found.cast(NUMBER) if stands_for_numbers and not self.of_levels else found

    def optional_output(self, index: int) -> Tensor:
        """An output that the op can give; the node is made to give it, if it did not yet."""
        node = self.node
        node.resize_outputs(max(index + 1, len(node.outputs)))
        if not node.outputs[index].name:
            for output in node.outputs:
                output.name = output.name or self.op.names.value(f"{node.name or node.op_type}_output")
            self.op.inference.node(node)
        return self.output(index)

    @property
    def can_replace(self) -> bool:
        """Whether the outputs may be computed by other nodes."""
        here = self.node.graph is self.op.graph
        return here and not any(output.is_graph_output() for output in self.node.outputs)

    def replace(self, index: int, tensor: Tensor) -> None:
        """Compute an output by other nodes, which keep what the gradient needs."""
        if index < len(self.node.outputs):
            self.node.outputs[index].replace_all_uses_with(tensor.value)
            self.tape.has_replaced = True

    def gradient(self, index: int) -> Tensor | None:
        """The gradient of an output; None where nothing depends on it."""
        return self.tape.gradient(self.node.outputs[index]) if index < len(self.node.outputs) else None

    def gradient_or_zero(self, index: int) -> Tensor:
        found = self.gradient(index)
        return found if found is not None else self.op.zeros_like(self.output(index))

    def wants(self, value: ir.Value) -> bool:
        """Whether the gradient of a value, one that a body captures perhaps, is of any use."""
        return value in self.tape.reached

    def capture(self, value: ir.Value, gradient: Tensor) -> None:
        """Give the gradient of a value that a body of the node reads from outside."""
        self.tape.add(value, gradient)

    def refuse(self, why: str) -> MissingGradient:
        """The error for a form of the op that the rule does not cover."""
        return MissingGradient(f"{origin(self.node)}: no gradient rule applies: {why}")


def on_the_way(graph: ir.Graph, ends: Iterable[ir.Value], wrt: Values) -> list[ir.Node]:
    """The nodes of a graph through which `ends` depend on `wrt`, in order; what a body captures counts as an input."""
    needed = set(ends)
    way = []
    for node in reversed(dependents_of(graph, wrt)[1]):
        if not needed.isdisjoint(node.outputs):
            needed.update(reads(node))
            way.append(node)
    return way[::-1]


def dependents_of(graph: ir.Graph, wrt: Values) -> tuple[set[ir.Value], list[ir.Node]]:
    """The values of a graph that depend on `wrt` by a way that has a derivative, and the nodes they come from."""
    reached = {value for value in wrt if is_float(value)}
    nodes = []
    for node in graph:
        if stops(node):
            continue
        if found := carriers(node, [value for value in reads(node) if value in reached]):
            reached.update(found)
            nodes.append(node)
    return reached, nodes


def require_rules(graph: ir.Graph, nodes: Sequence[ir.Node], wrt: Values) -> None:
    """Refuse a way that leads through an op without a rule; the message shows the way."""
    missing = next((node for node in nodes if RULES.get(key_of(node)) is None), None)
    if missing is None:
        return
    start = next(value for value in wrt if missing in dependents(graph, value))
    way = " → ".join(str(origin(node)) for node in path(graph, start, missing))
    raise MissingGradient(
        f"{key_of(missing)} has no gradient rule, and stands between {start.name} and the loss: {way}"
        f"{next_rule(key_of(missing))}"
    )


def reads(node: ir.Node) -> list[ir.Value]:
    """The values a node depends on, those that its bodies capture included."""
    found = [value for value in node.inputs if value is not None]
    for graph in inner_graphs(node):
        found += captured(graph)
    return found


def captured(graph: ir.Graph) -> list[ir.Value]:
    """The values from outside that a body, or one inside it, reads; each once."""
    graphs = list(all_graphs(graph))
    own = {value for g in graphs for value in (*g.inputs, *g.initializers.values())}
    own.update(output for g in graphs for node in g for output in node.outputs)
    read = [value for g in graphs for node in g for value in node.inputs if value is not None]
    read += [value for g in graphs for value in g.outputs]
    return [value for value in dict.fromkeys(read) if value not in own]


def dependents(graph: ir.Graph, start: ir.Value) -> dict[ir.Node, ir.Node | None]:
    """The nodes that depend on a value, each with one before it on the way from there."""
    made: dict[ir.Value, ir.Node | None] = {start: None}
    found: dict[ir.Node, ir.Node | None] = {}
    for node in graph:
        source = next((value for value in reads(node) if value in made), None)
        if source is not None:
            found[node] = made[source]
            made.update((output, node) for output in node.outputs)
    return found


def path(graph: ir.Graph, start: ir.Value, end: ir.Node) -> list[ir.Node]:
    """Nodes that lead from a value to a node that depends on it."""
    before = dependents(graph, start)
    way: list[ir.Node] = [end]
    while (node := before[way[-1]]) is not None:
        way.append(node)
    return way[::-1]
