"""Default attributes: after this pass a node says all that its schema leaves to be understood."""

from collections.abc import Iterable, Mapping

import onnx
import onnx_ir as ir

from onward.graph.walk import all_nodes
from onward.registry import cached_by_schema

UNSAID = frozenset({("Attention", "left_window_size"), ("Attention", "right_window_size")})
"""Attributes of opset 25 that ONNX Runtime 1.31 does not know and refuses. Left out, they mean no window."""


@cached_by_schema
def _defaults(domain: str, op_type: str, version: int) -> tuple[ir.Attr, ...]:
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return ()
    given = (attribute.default_value for attribute in schema.attributes.values())
    return tuple(
        ir.serde.deserialize_attribute(proto) for proto in given if proto.name and (op_type, proto.name) not in UNSAID
    )


def fill_defaults(model: ir.Model) -> None:
    """Give every node of a known domain the default attributes of its version, in place."""
    fill_nodes(all_nodes(model.graph), model.opset_imports)
    for function in model.functions.values():
        fill_nodes(all_nodes(function.graph), function.opset_imports)


def fill_nodes(nodes: Iterable[ir.Node], opsets: Mapping[str, int]) -> None:
    for node in nodes:
        version = node.version or opsets.get(node.domain)
        if version is not None:
            attributes = node.attributes
            for default in _defaults(node.domain, node.op_type, version):
                if default.name not in attributes:
                    attributes[default.name] = default
