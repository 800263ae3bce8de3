"""An op that an opset lacks, written by the body in its schema."""

import onnx_ir as ir

from onward.canon.inline import Inliner
from onward.canon.lower.bodies import Definition, body_of, captured_by, definition, nodes_in
from onward.graph.names import Names
from onward.graph.walk import all_nodes


class Bodies:
    def __init__(self, model: ir.Model, names: Names) -> None:
        self._calls: dict[ir.OperatorIdentifier, ir.Function] = {}
        self._inliner = Inliner(self._calls, names, names_bodies=False)
        self._definitions: dict[bytes, Definition] = {}

    def expand(self, node: ir.Node) -> list[ir.Node] | None:
        """Put the body of `node` in its place; gives its nodes, None where there is no body for all that it gives."""
        body = body_of(node)
        if body is None:
            return None
        known = self._definitions.get(body)
        if known is None:
            known = self._definitions[body] = definition(body)
        if not known.serves(node) or any(inner.op_type == node.op_type for inner in all_nodes(known.function.graph)):
            return None
        self._calls[node.op_identifier()] = known.function
        self._inliner.expand(node, captured_by(node, known.function))
        self._calls.clear()
        return [found for new in self._inliner.created for found in (new, *nodes_in(new))]
