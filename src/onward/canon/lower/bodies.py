"""Function bodies that schemas carry: ONNX's own definition of an op in terms of simpler ones."""

from typing import NamedTuple

import onnx
import onnx_ir as ir

from onward.graph.infer_bodies import kind_of
from onward.graph.walk import all_nodes, inner_graphs
from onward.hub.types import write_type
from onward.registry import cached_by_schema

RANKS = range(7)
"""Ranks tried for an input whose rank is not known: where the bodies differ, none can be chosen."""


def body_of(node: ir.Node) -> bytes | None:
    """The newest definition of `node` as a serialised `FunctionProto`.

    None if it has none, or one that depends on types that are not known.
    """
    if node.version is None:
        return None
    schema = _schema(node.domain, node.op_type, node.version)
    if schema is None:
        return None
    if schema.has_function:
        return bytes(schema.get_function_with_opset_version(max(schema.function_opset_versions)))
    return _body_for_types(node, schema)


@cached_by_schema
def _schema(domain: str, op_type: str, version: int) -> onnx.defs.OpSchema | None:
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _body_for_types(node: ir.Node, schema: onnx.defs.OpSchema) -> bytes | None:
    kinds = [kind_of(value) for value in node.inputs]
    if any(kind.type is None and value is not None for kind, value in zip(kinds, node.inputs, strict=True)):
        return None
    version = max(schema.context_dependent_function_opset_versions)
    are_ranks_known = all(kind.dims is not None for kind in kinds if kind.type is not None)
    bodies = set()
    try:
        proto = ir.serde.serialize_node(node).SerializeToString()
        for rank in [0] if are_ranks_known else RANKS:
            types = []
            for type_, dims in kinds:
                message = onnx.TypeProto()
                if type_ is not None:
                    write_type(message, type_, ir.Shape([None] * rank if dims is None else dims))
                types.append(message.SerializeToString())
            bodies.add(schema.get_context_dependent_function_with_opset_version(version, proto, types))
    except Exception:  # the schemas' own code refuses in many ways; all mean that there is no body
        return None
    return bodies.pop() or None if len(bodies) == 1 else None


class Definition(NamedTuple):
    function: ir.Function
    computes: tuple[bool, ...]
    """Of each output, whether the body computes it: one made for a node without an optional output may not."""

    def serves(self, node: ir.Node) -> bool:
        """Whether the body computes all that `node` gives."""
        return len(node.outputs) <= len(self.computes) and all(
            computed or not output.name for output, computed in zip(node.outputs, self.computes, strict=False)
        )


def definition(body: bytes) -> Definition:
    """A serialised body as a function. Outputs that it does not compute are its first input, to be well-formed."""
    proto = onnx.FunctionProto.FromString(body)
    made = {name for node in proto.node for name in node.output}.union(proto.input)
    computes = tuple(name in made for name in proto.output)
    for index, computed in enumerate(computes):
        if not computed:
            proto.output[index] = proto.input[0]
    return Definition(ir.serde.deserialize_function(proto), computes)


def captured_by(node: ir.Node, function: ir.Function) -> dict[ir.Value, ir.Value]:
    """What the values that a body uses but does not define stand for: those that graphs inside `node` capture.

    Such a body repeats the graph in an attribute of the node, and knows captured values by their names alone.
    """
    outside = {value.name: value for graph in inner_graphs(node) for value in _free(graph)}
    if not outside:
        return {}
    return {value: outside[value.name] for value in _free(function.graph) if value.name in outside}


def nodes_in(node: ir.Node) -> list[ir.Node]:
    """The nodes of the graphs inside `node`."""
    return [inner for graph in inner_graphs(node) for inner in all_nodes(graph)]


def _free(graph: ir.Graph) -> set[ir.Value]:
    """The values that a graph and those inside it use, and that none of them defines."""
    nodes = list(all_nodes(graph))
    graphs = [graph, *(inner for node in nodes for inner in inner_graphs(node))]
    own = {value for g in graphs for value in (*g.inputs, *g.initializers.values())}
    own.update(output for node in nodes for output in node.outputs)
    used = {value for node in nodes for value in node.inputs if value is not None}
    used.update(value for g in graphs for value in g.outputs)
    return used - own
