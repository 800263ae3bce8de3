"""What a node of constants computes, where an opset has no words for the node."""

import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from onward.canon.downgrade.registry import Older
from onward.canon.downgrade.schemas import schema_at
from onward.graph.walk import inner_graphs

LARGEST = 2**20
"""Elements of a result that is written as a constant."""


def folded(node: ir.Node, op: Older) -> bool:
    """Replace `node` by constants if all that it reads is constant; tells whether it did."""
    arrays = [None if value is None else op.read(value) for value in node.inputs]
    given = zip(node.inputs, arrays, strict=True)
    if any(value is not None and array is None for value, array in given) or not _computes_alike(node):
        return False
    names = ["" if array is None else f"i{i}" for i, array in enumerate(arrays)]
    outputs = [f"o{i}" if value.name else "" for i, value in enumerate(node.outputs)]
    attributes = [ir.serde.serialize_attribute(a) for a in node.attributes.values()]
    proto = onnx.NodeProto(op_type=node.op_type, input=names, output=outputs, attribute=attributes)
    infos = [onnx.ValueInfoProto(name=name) for name in names if name]
    graph = onnx.helper.make_graph([proto], "one", infos, [onnx.ValueInfoProto(name=o) for o in outputs if o])
    opsets = [onnx.helper.make_opsetid("", node.version or 1)]
    try:
        found = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets)).run(
            None, {name: array for name, array in zip(names, arrays, strict=True) if name}
        )
    except Exception:  # the reference fails in many ways, all of which mean that the result is not known
        return False
    if any(not hasattr(array, "dtype") or array.dtype == object or array.size > LARGEST for array in found):
        return False
    results = iter(found)
    op.replace(*(op.constant(next(results)) if name else None for name in outputs))
    return True


def _computes_alike(node: ir.Node) -> bool:
    schema = schema_at(node.domain, node.op_type, node.version or 1)
    if schema is None or node.domain or any(True for _ in inner_graphs(node)):
        return False
    deterministic = onnx.defs.OpSchema.NodeDeterminism.Deterministic
    return bool(schema.node_determinism == deterministic) and not any(a.is_ref() for a in node.attributes.values())
