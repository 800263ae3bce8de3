"""Inline: calls of the model's own functions become copies of their bodies.

Each node keeps the version that its function imported (`node.version`), so that a body written for another
opset than the model's is upgraded from its own.
"""

from collections.abc import Mapping
from typing import NamedTuple

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.gate.bounds import NODES
from onward.graph.names import Names
from onward.graph.origin import Origin, mark_origin, origin, set_origin
from onward.graph.walk import all_nodes
from onward.hub.functions import check_functions


def inline(model: ir.Model) -> None:
    """Replace every call of a function of `model` by its body, in place, and remove the functions."""
    if not model.functions:
        return
    most = check_functions(model)
    inliner = Inliner(model.functions, Names(model), most=most)
    nodes = list(all_nodes(model.graph))
    for node in nodes:
        mark_origin(node)
    pending = [node for node in nodes if node.op_identifier() in model.functions]
    while pending:
        pending += inliner.expand(pending.pop())
    for function in model.functions.values():
        for domain, version in function.opset_imports.items():
            model.opset_imports.setdefault(domain, version)
    model.functions.clear()


class _Call(NamedTuple):
    """What the names inside one call of a function stand for."""

    node: ir.Node
    origin: Origin
    opsets: Mapping[str, int]
    values: dict[ir.Value, ir.Value | None]
    attributes: Mapping[str, ir.Attr]


class Inliner:
    """Puts bodies in the place of calls of `functions`.

    `names_bodies`: the nodes of a body are named as origins, not the call; right for functions that the user wrote.
    `most` nodes may be made: a graph that is given to a function as an attribute may be in its body many times.
    """

    def __init__(
        self,
        functions: Mapping[ir.OperatorIdentifier, ir.Function],
        names: Names,
        *,
        names_bodies: bool = True,
        most: int | None = None,
    ) -> None:
        self._functions = functions
        self._names = names
        self._names_bodies = names_bodies
        self._most = most
        self._count = 0
        self._calls: list[ir.Node] = []
        self.created: list[ir.Node] = []
        """The nodes that the last call became."""

    def expand(self, node: ir.Node, captured: Mapping[ir.Value, ir.Value] | None = None) -> list[ir.Node]:
        """Put the body in the place of the call `node`; gives the calls that were in the body.

        `captured` tells what values that the body uses but does not define stand for.
        """
        function, graph = self._functions[node.op_identifier()], node.graph
        assert graph is not None
        if len(node.inputs) > len(function.inputs) or len(node.outputs) > len(function.outputs):
            raise InvalidModelError(f"{origin(node)}: it has more inputs or outputs than the function")
        given = [*node.inputs, *[None] * (len(function.inputs) - len(node.inputs))]
        defaults = {a.name: a for a in function.attributes.values() if a.value is not None}
        call = _Call(
            node,
            origin(node),
            {"" if d == "ai.onnx" else d: v for d, v in function.opset_imports.items()},
            {**(captured or {}), **dict(zip(function.inputs, given, strict=True))},
            {**defaults, **node.attributes},
        )
        self._calls = []
        body = [self._node(inner, call) for inner in function]
        graph.insert_before(node, body)
        self.created = body
        free = {output for inner in body for output in inner.outputs}
        for old, formal in zip(node.outputs, function.outputs, strict=False):
            if not old.name:
                continue
            new = call.values[formal]
            if new is None:
                raise InvalidModelError(f"{call.origin}: an output of the function is an input that is absent")
            if new not in free:
                copy = self._identity(new, call)
                graph.insert_before(node, copy)
                body.append(copy)
                new = copy.outputs[0]
            free.discard(new)
            new.type = old.type or new.type
            new.shape = old.shape or new.shape
            old.replace_all_uses_with(new, replace_graph_outputs=True)
            old.name, new.name = None, old.name
        graph.remove(node, safe=True)
        return self._calls

    def _identity(self, value: ir.Value, call: _Call) -> ir.Node:
        output = ir.Value(name=self._names.value(f"{value.name}_copy"))
        node = ir.Node("", "Identity", [value], outputs=[output], version=call.opsets.get("", 1))
        node.name = self._names.node(f"{call.origin.name}/Identity")
        set_origin(node, call.origin)
        return node

    def _node(self, node: ir.Node, call: _Call) -> ir.Node:
        self._count += 1
        if self._most is not None and self._count > 2 * self._most:
            raise InvalidModelError(f"{call.origin}: its functions become more than {self._most:,} nodes; {NODES.hint}")
        inputs = [None if value is None else call.values.get(value, value) for value in node.inputs]
        inner = origin(node)
        outputs = [self._value(output, call) for output in node.outputs]
        new = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            [found for attr in node.attributes.values() if (found := self._attribute(attr, call))],
            overload=node.overload,
            outputs=outputs,
            version=node.version or call.opsets.get(node.domain),
            name=self._names.node(f"{call.node.name or call.origin.name}/{node.name or inner.name}"),
            doc_string=node.doc_string,
            metadata_props={**call.node.metadata_props, **node.metadata_props},
        )
        if self._names_bodies:
            set_origin(new, Origin(f"{call.origin.name}/{inner.name}", inner.op_type, inner.domain))
        else:
            set_origin(new, call.origin)
        if new.op_identifier() in self._functions:
            self._calls.append(new)
        return new

    def _value(self, value: ir.Value, call: _Call) -> ir.Value:
        name = self._names.value(f"{call.origin.name}/{value.name}") if value.name else value.name
        new = ir.Value(name=name, type=value.type, shape=value.shape, const_value=value.const_value)
        new.metadata_props.update(value.metadata_props)
        call.values[value] = new
        return new

    def _attribute(self, attribute: ir.Attr, call: _Call) -> ir.Attr | None:
        """`attribute` with references resolved; None where it refers to one that the call leaves out."""
        if attribute.is_ref():
            assert attribute.ref_attr_name is not None
            given = call.attributes.get(attribute.ref_attr_name)
            if given is None:
                return None
            outside = call._replace(opsets={}, values={}, attributes={})
            return self._attribute(ir.Attr(attribute.name, given.type, given.value), outside)
        if attribute.type == ir.AttributeType.GRAPH:
            return ir.Attr(attribute.name, attribute.type, self._graph(attribute.as_graph(), call))
        if attribute.type == ir.AttributeType.GRAPHS:
            graphs = [self._graph(graph, call) for graph in attribute.as_graphs()]
            return ir.Attr(attribute.name, attribute.type, graphs)
        return attribute

    def _graph(self, graph: ir.Graph, call: _Call) -> ir.Graph:
        """A copy of a graph inside a function; its tensors are shared."""
        inputs = [self._value(value, call) for value in graph.inputs]
        initializers = [
            known if isinstance(known := call.values.get(value), ir.Value) else self._value(value, call)
            for value in graph.initializers.values()
        ]
        nodes = [self._node(node, call) for node in graph]
        own = {*inputs, *initializers, *(output for node in nodes for output in node.outputs)}
        outputs = []
        for value in graph.outputs:
            output = call.values.get(value, value)
            if output is None:
                raise InvalidModelError(f"{call.origin}: an output inside the function is an input that is absent")
            if output not in own:
                nodes.append(self._identity(output, call))
                output = nodes[-1].outputs[0]
            outputs.append(output)
        return ir.Graph(inputs, outputs, nodes=nodes, initializers=initializers, name=graph.name)
