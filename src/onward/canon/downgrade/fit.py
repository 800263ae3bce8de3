"""A node in the form that an older schema has: what says no more than a default is left out, types are cast around.

All that the schema itself tells is decided here; what has to be written in another way is in the families.
"""

from collections.abc import Iterator
from itertools import zip_longest

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema

from onward.canon.downgrade.registry import Older, Unsayable
from onward.canon.downgrade.schemas import default_of, versions_of
from onward.graph.rewriter import is_used, trim

T = ir.DataType
Option = OpSchema.FormalParameterOption

_FLOATS = {T.FLOAT16: (T.FLOAT, T.DOUBLE), T.BFLOAT16: (T.FLOAT, T.DOUBLE), T.FLOAT: (T.DOUBLE,)}
_INTEGERS = {
    T.INT8: (T.INT16, T.INT32, T.INT64),
    T.INT16: (T.INT32, T.INT64),
    T.INT32: (T.INT64,),
    T.UINT8: (T.UINT16, T.INT16, T.INT32, T.UINT32, T.INT64, T.UINT64),
    T.UINT16: (T.INT32, T.UINT32, T.INT64, T.UINT64),
    T.UINT32: (T.INT64, T.UINT64),
}
_WIDER = {**_FLOATS, **_INTEGERS}
"""The types that hold all numbers of another, in the order in which they are tried."""
_AS_FLOATS = {
    **dict.fromkeys((T.INT8, T.UINT8, T.INT16, T.UINT16), (T.FLOAT, T.DOUBLE)),
    **dict.fromkeys((T.INT32, T.UINT32), (T.DOUBLE,)),
    T.BOOL: (T.INT32, T.UINT8, T.FLOAT),
}
"""The same, for ops that only choose among the numbers that they are given."""

CHOOSING = frozenset(
    {
        *("ArgMax", "ArgMin", "Clip", "Compress", "Concat", "DepthToSpace", "Equal", "Expand", "Flatten", "Gather"),
        *(
            "GatherElements",
            "GatherND",
            "Greater",
            "GreaterOrEqual",
            "Identity",
            "Less",
            "LessOrEqual",
            "Max",
            "MaxPool",
        ),
        *("Min", "NonZero", "OneHot", "Pad", "Relu", "Reshape", "ReverseSequence", "Scatter"),
        *("ScatterElements", "ScatterND", "Sign", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK"),
        *("Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Abs", "Neg"),
    }
)
"""Ops whose results are numbers that they are given, or tell how these compare."""

EXACT = frozenset(
    {
        *("Cast", "CastLike", "Constant", "ConstantOfShape", "BitCast", "QuantizeLinear", "DequantizeLinear"),
        *(
            "QLinearConv",
            "QLinearMatMul",
            "ConvInteger",
            "MatMulInteger",
            "DynamicQuantizeLinear",
            "If",
            "Loop",
            "Scan",
        ),
        *("BitwiseAnd", "BitwiseOr", "BitwiseNot", "BitwiseXor", "Optional", "SequenceConstruct"),
    }
)
"""Ops in which the types say what is computed: nothing is cast around them."""


def fit(node: ir.Node, start: int, schema: OpSchema, op: Older) -> None:
    """Make `node`, written in opset `start`, one of `schema`; raises `Unsayable` where it says more than that can."""
    _attributes(node, start, schema)
    _inputs(node, schema)
    _outputs(node, schema)
    fit_types(node, schema, op)


def say_defaults(node: ir.Node, start: int, schema: OpSchema) -> None:
    """Give what `node` leaves to a default of its opset that is another one in `schema`."""
    for name in schema.attributes:
        meant = default_of(node.domain, node.op_type, start, name)
        if name in node.attributes or meant is None:
            continue
        other = schema.attributes[name].default_value
        if not other.name or onnx.helper.get_attribute_value(other) != onnx.helper.get_attribute_value(meant):
            node.attributes[name] = ir.serde.deserialize_attribute(meant)


def _first_with(node: ir.Node, attribute: str) -> int | None:
    """The first version that has an attribute."""
    found = (s.since_version for s in versions_of(node.domain, node.op_type) if attribute in s.attributes)
    return next(found, None)


def _attributes(node: ir.Node, start: int, schema: OpSchema) -> None:
    for name in [name for name in node.attributes if name not in schema.attributes]:
        given = node.attributes[name]
        default = default_of(node.domain, node.op_type, start, name)
        if given.is_ref():
            raise Unsayable(f"attribute '{name}' is a parameter of the function that it is in")
        if default is None or not _equal(given, default):
            raise Unsayable(f"attribute '{name}' is {_shown(given)}", _first_with(node, name))
        del node.attributes[name]
    for name, described in schema.attributes.items():
        if described.required and name not in node.attributes:
            raise Unsayable(f"attribute '{name}' has to be given there")


def _equal(given: ir.Attr, default: onnx.AttributeProto) -> bool:
    meant = onnx.helper.get_attribute_value(default)
    if isinstance(meant, bytes):
        meant = meant.decode()
    value = given.value
    return bool(list(value) == list(meant) if isinstance(value, list | tuple) else value == meant)


def _shown(attribute: ir.Attr) -> str:
    kinds = ir.AttributeType
    plain = (kinds.INT, kinds.FLOAT, kinds.STRING, kinds.INTS, kinds.FLOATS)
    return repr(attribute.value)[:80] if attribute.type in plain else f"of type {attribute.type.name.lower()}"


def _inputs(node: ir.Node, schema: OpSchema) -> None:
    values = trim(list(node.inputs))
    given = schema.inputs[len(values) : schema.min_input]
    if len(values) < schema.min_input and any(
        formal.option != Option.Optional for formal in given or [schema.inputs[-1]]
    ):
        raise Unsayable(f"it needs at least {schema.min_input} inputs there")
    if len(values) > schema.max_input:
        raise Unsayable(f"it has {len(values)} inputs, of {schema.max_input} at most there")
    for formal, value in zip(schema.inputs, values, strict=False):
        if formal.option == Option.Single and value is None:
            raise Unsayable(f"input '{formal.name}' has to be given there")
    if len(values) < len(node.inputs) or len(node.inputs) < schema.min_input:
        node.resize_inputs(max(len(values), schema.min_input))


def _outputs(node: ir.Node, schema: OpSchema) -> None:
    while len(node.outputs) > schema.max_output and not is_used(node.outputs[-1]):
        node.resize_outputs(len(node.outputs) - 1)
    if len(node.outputs) > schema.max_output:
        raise Unsayable(f"output {len(node.outputs) - 1} is used, of {schema.max_output} outputs there")


def spelled(type_: ir.TypeProtocol | None) -> str | None:
    """A type as schemas write it; None where it is not known."""
    if isinstance(type_, ir.SequenceType | ir.OptionalType):
        inner = spelled(type_.elem_type)
        word = "seq" if isinstance(type_, ir.SequenceType) else "optional"
        return None if inner is None else f"{word}({inner})"
    if isinstance(type_, ir.SparseTensorType) or type_ is None or type_.dtype == T.UNDEFINED:
        return None
    return f"tensor({type_.dtype.name.lower()})"


def _paired(formals: list[OpSchema.FormalParameter], count: int) -> Iterator[OpSchema.FormalParameter]:
    """The formal parameter of each of so many values."""
    last = formals[-1] if formals else None
    for formal, _ in zip_longest(formals[:count], range(count)):
        if (formal or last) is not None:
            yield formal or last


def fit_types(node: ir.Node, schema: OpSchema, op: Older) -> None:
    """Cast around where an element type is not allowed: to one that holds all its numbers, and back."""
    constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    sides = list(zip(node.inputs, _paired(schema.inputs, len(node.inputs)), strict=False))
    results = list(zip(node.outputs, _paired(schema.outputs, len(node.outputs)), strict=False))
    wanted: dict[str, ir.DataType] = {}
    for value, formal in [*sides, *results]:
        text = None if value is None else spelled(value.type)
        if value is None or text is None or formal.type_str in wanted:
            continue
        allowed = constraints.get(formal.type_str, {formal.type_str})
        if text not in allowed:
            found = _held_by(node, value, allowed)
            if found is None:
                raise Unsayable(f"'{formal.name}' is {text}", _first_of(node, text, formal))
            wanted[formal.type_str] = found
    if not wanted:
        return
    for index, (value, formal) in enumerate(sides):
        if value is not None and formal.type_str in wanted:
            node.replace_input_with(index, op("Cast", value, to=wanted[formal.type_str]))
    for value, formal in results:
        if formal.type_str in wanted and value.name:
            op.follow(value, "Cast", to=op.typed(value))
            value.type = ir.TensorType(wanted[formal.type_str])


def _held_by(node: ir.Node, value: ir.Value, allowed: set[str]) -> ir.DataType | None:
    if node.op_type in EXACT or node.domain or not isinstance(value.type, ir.TensorType):
        return None
    if node.op_type in ("ReduceMax", "ReduceMin") and not value.type.dtype.is_floating_point():
        return None  # of no elements they are the limit of the type
    wider = _WIDER.get(value.type.dtype, ())
    if node.op_type in CHOOSING:
        wider += _AS_FLOATS.get(value.type.dtype, ())
    return next((t for t in wider if f"tensor({t.name.lower()})" in allowed), None)


def _first_of(node: ir.Node, text: str, formal: OpSchema.FormalParameter) -> int | None:
    """The first version that takes a type."""
    for schema in versions_of(node.domain, node.op_type):
        constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        known = [f for f in (*schema.inputs, *schema.outputs) if f.name == formal.name]
        if any(text in constraints.get(f.type_str, (f.type_str,)) for f in known):
            return int(schema.since_version)
    return None
