"""Constants and casts."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import is_used, needed, put, set_inputs, take


@downgrade("CastLike", since=15)
def cast_like(node: ir.Node, op: Older) -> None:
    dtype = op.typed(needed(node, 1), "what it casts to")
    set_inputs(node, [needed(node, 0)])
    node.op_type = "Cast"
    put(node, to=dtype.value)


@downgrade("Constant", since=12)
def plain_constant(node: ir.Node, op: Older) -> None:
    """Before, all constants were tensors."""
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref() or name in ("value", "sparse_value"):
            continue
        take(node, name)
        if name.startswith("value_string"):
            texts = [attribute.value] if name == "value_string" else attribute.value
            data = np.array([t.encode() if isinstance(t, str) else t for t in texts], dtype=object)
            tensor: ir.TensorProtocol = ir.StringTensor(data.reshape(()) if name == "value_string" else data)
        else:
            tensor = ir.Tensor(np.array(attribute.value, np.int64 if "int" in name else np.float32))
        put_tensor(node, tensor)


@downgrade("Constant", since=11)
def dense_constant(node: ir.Node, op: Older) -> None:
    sparse = take(node, "sparse_value")
    if sparse is not None:
        put_tensor(node, ir.Tensor(sparse.numpy()))


@downgrade("Constant", since=9)
def float_constant(node: ir.Node, op: Older) -> None:
    """Before, only floats were constants; anything else is a weight."""
    tensor, y, graph = node.attributes["value"].value, node.outputs[0], node.graph
    if tensor.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16):
        return
    if not isinstance(graph, ir.Graph) or graph in op.functions:
        refuse("it is no float, in a function")
    name = op.names.value(y.name or "constant")
    held = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)
    tensor.name = name
    graph.register_initializer(held)
    if y.is_graph_output():
        op.replace(op("Identity", held))
    else:
        y.replace_all_uses_with(held)
        graph.remove(node, safe=True)


def put_tensor(node: ir.Node, tensor: ir.TensorProtocol) -> None:
    node.attributes["value"] = ir.AttrTensor("value", tensor)


@downgrade("Identity", since=14)
def of_tensors(node: ir.Node, op: Older) -> None:
    """A sequence is read where the copy was."""
    bypassed(node)


@downgrade("Identity", since=16)
def of_optionals(node: ir.Node, op: Older) -> None:
    bypassed(node)


def bypassed(node: ir.Node) -> None:
    x, y = needed(node, 0), node.outputs[0]
    if isinstance(x.type, ir.SequenceType | ir.OptionalType):
        if y.is_graph_output():
            refuse("it copies a sequence or an optional, which its graph gives out")
        y.replace_all_uses_with(x)
        if node.graph is not None and not is_used(y):
            node.graph.remove(node, safe=True)
