"""Constant nodes: every way to write one becomes a tensor under `value`."""

import numpy as np
import onnx_ir as ir

from onward.graph.walk import all_nodes


def plain_constants(model: ir.Model) -> None:
    """Give sparse and string constants, in all graphs of the model, the one form that the other steps read."""
    for node in all_nodes(model.graph):
        if node.op_type != "Constant" or node.domain:
            continue
        tensor = _tensor(node)
        if tensor is not None:
            node.attributes.clear()
            node.attributes["value"] = ir.AttrTensor("value", tensor)


def tensor_of(node: ir.Node) -> ir.TensorProtocol | None:
    """What a Constant holds, under the name of its output; None where it is a parameter of a function."""
    given = node.attributes.get("value")
    if given is None:
        odd = _tensor(node)
        return ir.convenience.get_const_tensor(node.outputs[0]) if odd is None else odd
    if given.is_ref():
        return None
    tensor: ir.TensorProtocol = given.value
    tensor.name = node.outputs[0].name
    return tensor


def _tensor(node: ir.Node) -> ir.TensorProtocol | None:
    """The content of a form that is not read elsewhere, or None."""
    for name, attribute in node.attributes.items():
        match name:
            case _ if attribute.is_ref():
                return None
            case "sparse_value":
                sparse: ir.TensorProtocol = attribute.value
                return sparse
            case "value_string" | "value_strings":
                texts = [attribute.value] if name == "value_string" else attribute.value
                data = np.array([text.encode() for text in texts], dtype=object)
                return ir.StringTensor(data.reshape(()) if name == "value_string" else data, name=node.outputs[0].name)
    return None
