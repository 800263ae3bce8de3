"""The ops of `onward.nhwc` in terms of standard ones: what they mean, and how a result of the pass can be run."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.origin import copy_origin
from onward.graph.walk import all_nodes
from onward.layout.orders import arranged, to_first, to_last
from onward.layout.roles import DOMAIN, IMAGE_OPS


def to_standard(model: ir.Model) -> None:
    """Replace each op of the domain, in place, by a Transpose of each image, the op, and a Transpose of its result."""
    names = Names(model)
    for node in [node for node in all_nodes(model.graph) if node.domain == DOMAIN]:
        graph = node.graph
        assert graph is not None
        node.domain = ""
        for i in IMAGE_OPS[node.op_type].inputs:
            image = node.inputs[i] if i < len(node.inputs) else None
            if image is not None and image.shape is not None:
                first = _transpose(image, to_first(len(image.shape)), node)
                first.name = names.value(f"{image.name}_first")
                graph.insert_before(node, _producer(first))
                node.replace_input_with(i, first)
        for i in IMAGE_OPS[node.op_type].outputs:
            image = node.outputs[i] if i < len(node.outputs) else None
            if image is not None and image.shape is not None:
                last = _transpose(image, to_last(len(image.shape)), node)
                image.replace_all_uses_with(last, replace_graph_outputs=True)
                _producer(last).replace_input_with(0, image)
                last.shape, image.shape = image.shape, ir.Shape(arranged(list(image.shape), to_first(len(image.shape))))
                last.name, image.name = image.name, names.value(f"{image.name}_first")
                graph.insert_after(node, _producer(last))
    model.opset_imports.pop(DOMAIN, None)


def _transpose(value: ir.Value, perm: tuple[int, ...], main: ir.Node) -> ir.Value:
    assert value.shape is not None
    node = ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", perm)])
    copy_origin(node, main)
    node.outputs[0].type, node.outputs[0].shape = value.type, ir.Shape(arranged(list(value.shape), perm))
    return node.outputs[0]


def _producer(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node
