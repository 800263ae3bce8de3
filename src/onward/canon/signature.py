"""Every node has as many inputs and outputs as its op takes: what comes later need not ask."""

from typing import NamedTuple

import onnx
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.graph.origin import origin
from onward.graph.walk import all_nodes
from onward.registry import cached_by_schema


class Signature(NamedTuple):
    fewest: int
    most: int
    needed: tuple[int, ...]
    """The inputs that must be there."""
    outputs: int
    attributes: tuple[str, ...]
    """The attributes that must be there."""


def check_signatures(model: ir.Model) -> None:
    """Raise `InvalidModelError` that names the first node of a known op that lacks an input, or has too many."""
    for node in all_nodes(model.graph):
        version = node.version or model.opset_imports.get(node.domain)
        expected = None if version is None else _signature(node.domain, node.op_type, version)
        if expected is not None:
            problem = _problem(node, expected)
            if problem:
                raise InvalidModelError(f"{origin(node)}: {problem}")


@cached_by_schema
def _signature(domain: str, op_type: str, version: int) -> Signature | None:
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    needed = tuple(i for i, formal in enumerate(schema.inputs) if formal.option == single)
    required = tuple(a.name for a in schema.attributes.values() if a.required)
    return Signature(schema.min_input, schema.max_input, needed, schema.max_output, required)


def _problem(node: ir.Node, expected: Signature) -> str:
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    if len(node.inputs) < expected.fewest or len(inputs) > expected.most:
        least = f"{expected.fewest}" if expected.fewest == expected.most else f"at least {expected.fewest}"
        takes = least if len(node.inputs) < expected.fewest else f"at most {expected.most}"
        return f"it has {len(inputs)} inputs, the op takes {takes}"
    absent = next((i for i in expected.needed if i < len(node.inputs) and node.inputs[i] is None), None)
    if absent is not None:
        return f"its input {absent} is missing"
    if len(node.outputs) > expected.outputs:
        return f"it has {len(node.outputs)} outputs, the op gives at most {expected.outputs}"
    missing = next((name for name in expected.attributes if name not in node.attributes), None)
    return f"its attribute {missing!r} is missing" if missing else ""
