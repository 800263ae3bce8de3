"""Element types, as far as one look at each node gives them: old files often carry none between the nodes."""

from functools import cache
from typing import NamedTuple

import onnx
import onnx_ir as ir

from onward.registry import cached_by_schema


class _Signature(NamedTuple):
    """The type variable, or the type, of each formal input and output."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    open_input: bool
    open_output: bool


@cached_by_schema
def _signature(domain: str, op_type: str, version: int) -> _Signature | None:
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    ends = [p[-1] for p in (schema.inputs, schema.outputs) if p]
    if any(end.option == variadic and not end.is_homogeneous for end in ends):
        return None
    only = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}

    def type_of(text: str) -> str:
        return only[text][0] if len(only.get(text, ())) == 1 else text

    return _Signature(
        tuple(type_of(p.type_str) for p in schema.inputs),
        tuple(type_of(p.type_str) for p in schema.outputs),
        bool(schema.inputs) and schema.inputs[-1].option == variadic,
        bool(schema.outputs) and schema.outputs[-1].option == variadic,
    )


@cache
def _tensor_type(text: str) -> ir.DataType | None:
    """`tensor(int64)` as a type; None for a type variable or another kind of type."""
    name = text.removeprefix("tensor(").removesuffix(")").upper()
    return ir.DataType.__members__.get(name) if text.startswith("tensor(") else None


def _by_attribute(node: ir.Node) -> ir.DataType | None:
    """The type of the output where an attribute says it."""
    if node.op_type == "Constant":
        value = node.attributes.get("value")
        return None if value is None or value.is_ref() else _dtype_of(value)
    if node.op_type == "ConstantOfShape":
        value = node.attributes.get("value")
        return ir.DataType.FLOAT if value is None else None if value.is_ref() else _dtype_of(value)
    to = node.attributes.get("to")
    if node.op_type != "Cast" or to is None or to.is_ref():
        return None
    if isinstance(to.value, str):
        return ir.DataType.__members__.get(to.value.upper())
    return ir.DataType(to.value)


def _dtype_of(attribute: ir.Attr) -> ir.DataType:
    dtype: ir.DataType = attribute.value.dtype
    return dtype


def infer_types(node: ir.Node) -> None:
    """Set the element types of the outputs of `node` that are unknown and follow from its inputs."""
    unknown = [(i, o) for i, o in enumerate(node.outputs) if o.type is None]
    if not unknown or node.version is None:
        return
    if (dtype := _by_attribute(node)) is not None:
        node.outputs[0].type = ir.TensorType(dtype)
        return
    signature = _signature(node.domain, node.op_type, node.version)
    if signature is None:
        return
    bound: dict[str, ir.DataType] = {}
    formal = signature.inputs
    for index, value in enumerate(node.inputs):
        if index >= len(formal) and not signature.open_input:
            break
        if value is not None and isinstance(value.type, ir.TensorType):
            bound.setdefault(formal[min(index, len(formal) - 1)], value.type.dtype)
    for index, output in unknown:
        if index < len(signature.outputs) or signature.open_output:
            text = signature.outputs[min(index, len(signature.outputs) - 1)]
            found = bound.get(text) or _tensor_type(text)
            if found is not None:
                output.type = ir.TensorType(found)
