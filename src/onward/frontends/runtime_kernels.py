"""What ONNX Runtime has kernels for: nodes of other dtypes are computed in a wider one that holds the same numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.replace import is_op, new_node, take_over
from onward.graph.walk import all_nodes
from onward.passes.cast_around import Typed, cast_around, typed

WIDER = {
    ir.DataType.BOOL: (ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT),
    ir.DataType.INT8: (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT),
    ir.DataType.UINT8: (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT),
    ir.DataType.INT16: (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT),
    ir.DataType.UINT16: (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT),
    ir.DataType.INT32: (ir.DataType.INT64, ir.DataType.DOUBLE),
    ir.DataType.UINT32: (ir.DataType.INT64, ir.DataType.DOUBLE),
    ir.DataType.UINT64: (ir.DataType.INT64,),
    ir.DataType.FLOAT16: (ir.DataType.FLOAT,),
    ir.DataType.BFLOAT16: (ir.DataType.FLOAT,),
    ir.DataType.FLOAT: (ir.DataType.DOUBLE,),
}
"""Dtypes to compute in, the nearest first."""


@cache
def _kernels() -> dict[str, list[tuple[int, int, dict[str, frozenset[str]]]]]:
    """By op: the first and the last version, and the dtypes of each type variable."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    found: dict[str, list[tuple[int, int, dict[str, frozenset[str]]]]] = {}
    for kernel in runtime.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            kinds = {variable: frozenset(types) for variable, types in kernel.type_constraints.items()}
            found.setdefault(kernel.op_name, []).append((*kernel.version_range, kinds))
    return found


def make_runnable(model: ir.Model) -> None:
    """Give every node dtypes that ONNX Runtime has a kernel for, in place; raises where none does."""
    for node in list(all_nodes(model.graph)):
        if is_op(node, "Gather") and node.outputs[0].dtype == ir.DataType.STRING:
            _gather_strings(node)
    standard = [node for node in all_nodes(model.graph) if node.domain in ("", "ai.onnx")]
    cast_around(model, [wanted for node in standard if (wanted := _wider(node, model.opset_imports[""]))])
    keep_pads(model)
    keep_vectors(model)
    keep_sums(model)


def keep_pads(model: ir.Model) -> None:
    """Keep ONNX Runtime from joining what is padded with the pooling that follows, transposed in between or not.

    MaxPool would pad with the lowest number then, which is wrong wherever all of a window is below the padding, and
    neither takes pads as large as a window. A Pad whose axes are named is left alone, and before opset 18, where they
    cannot be, one that is reshaped to what it is.
    """
    for node in list(all_nodes(model.graph)):
        if node.op_type not in ("MaxPool", "AveragePool") or node.domain or node.inputs[0] is None:
            continue
        pad = node.inputs[0].producer()
        while pad is not None and pad.op_type in ("Identity", "Transpose") and pad.inputs[0] is not None:
            pad = pad.inputs[0].producer()
        if pad is None or pad.op_type != "Pad" or len(pad.inputs) > 3 or pad.graph is None:
            continue
        rank = len(node.attributes["kernel_shape"].as_ints()) + 2
        if model.opset_imports[""] >= 18:
            axes = _ints(f"{pad.name}/axes", range(rank))
            pad.graph.insert_before(pad, axes)
            pad.resize_inputs(4)
            pad.replace_input_with(3, axes.outputs[0])
        else:
            shape = _ints(f"{pad.name}/shape", [0] * rank)
            same = ir.Node("", "Reshape", [pad.outputs[0], shape.outputs[0]], num_outputs=1, name=f"{pad.name}/same")
            same.outputs[0].name = f"{pad.name}/same"
            same.outputs[0].type, same.outputs[0].shape = pad.outputs[0].type, pad.outputs[0].shape
            readers = list(pad.outputs[0].uses())
            pad.graph.insert_after(pad, [shape, same])
            for reader, place in readers:
                if reader is not same:
                    reader.replace_input_with(place, same.outputs[0])


def keep_vectors(model: ir.Model) -> None:
    """Let what was transposed be multiplied by a matrix of one column instead of a vector.

    ONNX Runtime joins a Transpose with the MatMul that follows, and forgets it where the second factor is a vector.
    It moves a Transpose behind sums and other nodes before that, so that it may stand anywhere before the product.
    """
    for node in list(all_nodes(model.graph)):
        if not is_op(node, "MatMul") or node.graph is None or node.inputs[0] is None or node.inputs[1] is None:
            continue
        vector = node.inputs[1]
        if vector.shape is None or len(vector.shape) != 1 or not _was_transposed(node.inputs[0]):
            continue
        old, last = node.outputs[0], _ints(f"{node.name}/last", [-1])
        shape = None if old.shape is None else ir.Shape([*old.shape, 1])
        matrix = ir.Value(name=f"{node.name}/matrix", type=vector.type, shape=ir.Shape([*vector.shape, 1]))
        column = ir.Value(name=f"{node.name}/column", type=old.type, shape=shape)
        flat = ir.Value(type=old.type, shape=old.shape)
        node.graph.insert_before(
            node,
            [
                last,
                ir.Node("", "Unsqueeze", [vector, last.outputs[0]], outputs=[matrix], name=f"{node.name}/matrix"),
                ir.Node("", "MatMul", [node.inputs[0], matrix], outputs=[column], name=node.name),
                ir.Node("", "Squeeze", [column, last.outputs[0]], outputs=[flat], name=f"{node.name}/vector"),
            ],
        )
        old.replace_all_uses_with(flat, replace_graph_outputs=True)
        flat.name = old.name
        node.graph.remove(node, safe=True)


def _was_transposed(value: ir.Value) -> bool:
    """Whether a value is made of one that was transposed."""
    seen: set[ir.Node] = set()
    found = [value.producer()]
    while found:
        node = found.pop()
        if node is None or node in seen:
            continue
        if is_op(node, "Transpose"):
            return True
        seen.add(node)
        found.extend(given.producer() for given in node.inputs if given is not None)
    return False


def keep_sums(model: ir.Model) -> None:
    """Let rows that may meet be added by ScatterElements, one after the other.

    ONNX Runtime's ScatterND adds, multiplies and compares in several threads at once, and loses what meets.
    """
    for node in list(all_nodes(model.graph)):
        if not is_op(node, "ScatterND") or node.attributes.get_string("reduction", "none") == "none":
            continue
        data, indices, updates = node.inputs
        assert data is not None and indices is not None and updates is not None
        depth = None if indices.shape is None else indices.shape[-1]
        if data.shape is None or not isinstance(depth, int) or depth == 0:
            continue
        sizes = [size for size in data.shape[1:depth] if isinstance(size, int)]
        if len(sizes) < depth - 1:
            continue
        made = _scattered_rows(node, data, indices, updates, depth, sizes)
        take_over(node.outputs[0], made)
        assert node.graph is not None
        node.graph.remove(node, safe=True)


def _scattered_rows(
    node: ir.Node, data: ir.Value, indices: ir.Value, updates: ir.Value, depth: int, sizes: Sequence[int]
) -> ir.Value:
    """What a ScatterND gives, of the first axes as one; `sizes` are those of these axes but for the first."""
    assert data.shape is not None and node.graph is not None
    count, name, graph = itertools.count(), node.outputs[0].name, node.graph
    rank = len(data.shape) - depth + 1

    def made(op_type: str, *inputs: ir.Value, like: ir.Value = indices, **attributes: Any) -> ir.Value:
        found = new_node(op_type, inputs, attributes, node, node)
        found.name = found.outputs[0].name = f"{name}/{op_type}_{next(count)}"
        found.outputs[0].type = like.type
        return found.outputs[0]

    def numbers(*values: int) -> ir.Value:
        constant = _ints(f"{name}/numbers_{next(count)}", values)
        graph.insert_before(node, constant)
        return constant.outputs[0]

    whole = made("Shape", data)
    places = indices
    if depth > 1:
        steps = [math.prod(sizes[axis:]) for axis in range(depth)]
        ends = made("Slice", whole, numbers(0), numbers(depth))
        is_below = made("Less", indices, numbers(0))
        is_below.type = ir.TensorType(ir.DataType.BOOL)
        counted = made("Where", is_below, made("Add", indices, ends), indices)
        places = made("ReduceSum", made("Mul", counted, numbers(*steps)), numbers(-1), keepdims=0)
    places = made("Reshape", places, numbers(-1, *[1] * (rank - 1)))
    rest = made("Slice", whole, numbers(depth), numbers(len(data.shape)))
    row = made("Concat", numbers(-1), rest, axis=0)
    rows = made("Reshape", updates, row, like=data)
    if rank > 1:
        places = made("Expand", places, made("Shape", rows))
    flat = made("Reshape", data, row, like=data)
    reduction = node.attributes.get_string("reduction")
    added = made("ScatterElements", flat, places, rows, like=data, axis=0, reduction=reduction)
    return made("Reshape", added, whole, like=data)


def _ints(name: str, numbers: Sequence[int]) -> ir.Node:
    """A constant vector as a node."""
    node = ir.Node("", "Constant", [], [ir.AttrInt64s("value_ints", list(numbers))], num_outputs=1, name=name)
    node.outputs[0].name = name
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(ir.DataType.INT64), ir.Shape([len(numbers)])
    return node


def _gather_strings(node: ir.Node) -> None:
    """Of several strings that stand at an index, ONNX Runtime's Gather gives the first only; its GatherND gives all."""
    data, indices = node.inputs
    axis = node.attributes.get_int("axis", 0)
    assert data is not None and indices is not None and node.graph is not None
    rank = None if data.shape is None else len(data.shape)
    if (
        data.shape is not None
        and axis >= -1
        and all(size == 1 for size in data.shape[axis + 1 if axis >= 0 else rank :])
    ):
        return
    if axis != 0:
        raise UnsupportedError(f"{node.name!r}: ONNX Runtime loses strings that are gathered along an axis inside")
    last = _ints(f"{node.name}/last", [-1])
    places = ir.Node("", "Cast", [indices], [ir.AttrInt64("to", int(ir.DataType.INT64))], name=f"{node.name}/places")
    places.outputs[0].name = places.name
    places.outputs[0].type, places.outputs[0].shape = ir.TensorType(ir.DataType.INT64), indices.shape
    shape = None if indices.shape is None else ir.Shape([*indices.shape, 1])
    each = ir.Value(name=f"{node.name}/each", type=ir.TensorType(ir.DataType.INT64), shape=shape)
    spread = ir.Node("", "Unsqueeze", [places.outputs[0], last.outputs[0]], outputs=[each], name=f"{node.name}/each")
    gathered = ir.Node("", "GatherND", [data, each], num_outputs=1, name=node.name)
    old, new = node.outputs[0], gathered.outputs[0]
    new.type, new.shape = old.type, old.shape
    node.graph.insert_before(node, [last, places, spread, gathered])
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    new.name = old.name
    node.graph.remove(node, safe=True)


def _wider(node: ir.Node, opset: int) -> tuple[Typed, ir.DataType] | None:
    """What of a node is to be computed in which dtype; None where it has a kernel as it is."""
    schema = onnx.defs.get_schema(node.op_type, opset)
    has_body = schema.has_function or schema.has_context_dependent_function
    if node.op_type == "Constant" or (has_body and node.op_type not in _kernels()):
        return None
    kinds = typed(node, schema)
    dtypes = {variable: kind.dtype for variable, kind in kinds.items()}
    if _runs(node.op_type, schema.since_version, dtypes):
        return None
    for variable, kind in kinds.items():
        for wider in WIDER.get(kind.dtype, ()):
            if _runs(node.op_type, schema.since_version, dtypes | {variable: wider}):
                return kind, wider
    if has_body:
        return None
    named = ", ".join(sorted({dtype.name.lower() for dtype in dtypes.values()}))
    raise UnsupportedError(f"{node.name!r}: ONNX Runtime has no kernel of {node.op_type} for {named}")


def _runs(op_type: str, version: int, kinds: dict[str, ir.DataType]) -> bool:
    for first, last, allowed in _kernels().get(op_type, ()):
        if first <= version <= last and all(
            _is_allowed(allowed[name], dtype) for name, dtype in kinds.items() if name in allowed
        ):
            return True
    return False


_NAMES = {ir.DataType.FLOAT: "float", ir.DataType.DOUBLE: "double"}


def _is_allowed(types: frozenset[str], dtype: ir.DataType) -> bool:
    return f"tensor({_NAMES.get(dtype, dtype.name.lower())})" in types
