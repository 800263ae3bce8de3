"""What the schemas of the installed onnx package say of the versions of an op."""

import onnx
from onnx.defs import OpSchema

from onward.registry import cached_by_schema


@cached_by_schema
def schema_at(domain: str, op_type: str, opset: int) -> OpSchema | None:
    """The schema of an op in an opset; None where the opset does not have it."""
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None


@cached_by_schema
def versions_of(domain: str, op_type: str) -> tuple[OpSchema, ...]:
    """All versions of an op, the oldest first."""
    found: list[OpSchema] = []
    newest = schema_at(domain, op_type, 10**6)
    while newest is not None:
        found.append(newest)
        newest = schema_at(domain, op_type, newest.since_version - 1) if newest.since_version > 1 else None
    return tuple(reversed(found))


@cached_by_schema
def default_of(domain: str, op_type: str, opset: int, name: str) -> onnx.AttributeProto | None:
    """What an attribute is where it is not given; None where it has no default."""
    schema = schema_at(domain, op_type, opset)
    if schema is None or name not in schema.attributes:
        return None
    proto = schema.attributes[name].default_value
    return proto if proto.name else None
