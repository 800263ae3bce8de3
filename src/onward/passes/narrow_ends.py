"""Inputs and outputs of 16 bits."""

from __future__ import annotations

from collections.abc import Container

import onnx_ir as ir

from onward.graph.names import Names
from onward.hub.write import OUTPUT_INFOS


def narrow_ends(model: ir.Model, half: ir.DataType, among: Container[str] | None = None) -> None:
    """Let the model take and give 16 bits where it takes and gives 32, in place, under the same names.

    `among` are the names of those that do; all unless given.
    """
    names = Names(model)

    def is_wide(value: ir.Value) -> bool:
        return value.dtype == ir.DataType.FLOAT and (among is None or value.name in among)

    for value in model.graph.inputs:
        if is_wide(value) and not value.is_initializer():
            _take(model, value, half, names)
    for place, value in enumerate(model.graph.outputs):
        if is_wide(value) and not value.is_graph_input():
            model.graph.outputs[place] = _give(model, value, half, names)
            model.graph.meta.get(OUTPUT_INFOS, {}).pop(place, None)  # it says 32 bits


def _take(model: ir.Model, value: ir.Value, half: ir.DataType, names: Names) -> None:
    """Who read it in 16 bits reads it as it is, and all others cast back."""
    wide = [use for use in value.uses() if not _is_cast(use.node, half)]
    for use in [use for use in value.uses() if _is_cast(use.node, half)]:
        use.node.outputs[0].replace_all_uses_with(value, replace_graph_outputs=True)
        assert use.node.graph is not None
        use.node.graph.remove(use.node, safe=True)
    value.type = ir.TensorType(half)
    if wide:
        cast = _cast(value, ir.DataType.FLOAT, names)
        model.graph.insert_before(model.graph[0], cast)
        for use in wide:
            use.node.replace_input_with(use.idx, cast.outputs[0])


def _give(model: ir.Model, value: ir.Value, half: ir.DataType, names: Names) -> ir.Value:
    cast, name = value.producer(), value.name
    if cast is not None and _is_cast(cast, ir.DataType.FLOAT) and cast.inputs[0] is not None:
        given = cast.inputs[0]
        if given.dtype == half and not given.is_graph_output() and not given.is_graph_input() and not value.uses():
            value.name, given.name = None, name
            model.graph.remove(cast)
            return given
    made = _cast(value, half, names)
    model.graph.append(made)
    value.name, made.outputs[0].name = made.outputs[0].name, name
    return made.outputs[0]


def _is_cast(node: ir.Node, to: ir.DataType) -> bool:
    return node.op_type == "Cast" and node.domain in ("", "ai.onnx") and node.attributes.get_int("to", 0) == to


def _cast(value: ir.Value, to: ir.DataType, names: Names) -> ir.Node:
    node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(to))], name=names.node(f"{value.name}_cast"))
    node.outputs[0].name, node.outputs[0].type = names.value(f"{value.name}_cast"), ir.TensorType(to)
    node.outputs[0].shape = value.shape
    return node
