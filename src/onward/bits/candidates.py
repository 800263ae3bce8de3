"""Which nodes of a model can compute in 16 bits, and which floats are to stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir

from onward.graph.replace import is_op
from onward.graph.trained import computes_with_integers
from onward.graph.walk import inner_graphs
from onward.passes.cast_around import Typed, typed
from onward.registry import cached_by_schema

HALVES = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}
SPELLED = {ir.DataType.FLOAT16: "tensor(float16)", ir.DataType.BFLOAT16: "tensor(bfloat16)"}

# fmt: off
KEPT = {
    "Cast", "Constant", "ConstantOfShape", "RandomNormal", "RandomUniform", "RandomNormalLike",
    "RandomUniformLike", "Bernoulli", "Multinomial", "EyeLike", "Range", "QuantizeLinear", "DequantizeLinear",
    "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "HannWindow", "HammingWindow", "BlackmanWindow",
    "MelWeightMatrix", "Optional", "OptionalGetElement", "OptionalHasElement", "NonMaxSuppression", "Upsample",
}
# fmt: on
"""Ops whose floats say what dtype comes out, how large something is, or what an integer stands for."""
SHAPES = ("Shape", "Size")
"""Ops that read no number."""
SIZES = {"Resize": (1, 2), "Pad": (), "OneHot": ()}
"""Inputs of other ops that are such floats."""


@dataclass(frozen=True)
class Candidate:
    """A node that can compute in 16 bits, with what of it would be."""

    node: ir.Node
    typed: tuple[Typed, ...]


def candidates(model: ir.Model, half: ir.DataType, now: ir.DataType = ir.DataType.FLOAT) -> Iterator[Candidate]:
    """Those of the main graph that are of a dtype now; what bodies compute stays, since it cannot be measured."""
    for node in model.graph:
        schema = _schema(node.domain, node.op_type, node.version or model.opset_imports.get(node.domain, 0))
        if schema is None or node.op_type in KEPT or node.op_type in SHAPES or any(inner_graphs(node)):
            continue
        if is_op(node, "Transpose") and any(is_op(use.node, "MatMul") for use in node.outputs[0].uses()):
            continue  # ONNX Runtime 1.31 ends its process on some of them in float16
        variables = [one for name, one in typed(node, schema).items() if _takes(schema, name, half)]
        sizes = SIZES.get(node.op_type, ())
        floats = tuple(
            replace(one, inputs=tuple(i for i in one.inputs if i not in sizes)) for one in variables if one.dtype == now
        )
        if any(one.inputs or one.outputs for one in floats):
            yield Candidate(node, floats)


def may_be_rounded(node: ir.Node, place: int) -> bool:
    """Whether the floats that a node reads there are numbers it computes with, not sizes, dtypes or scales."""
    if node.op_type in KEPT or computes_with_integers(node.op_type):
        return False
    return place not in SIZES.get(node.op_type, ())


@cached_by_schema
def _schema(domain: str, op_type: str, version: int) -> onnx.defs.OpSchema | None:
    if domain not in ("", "ai.onnx"):
        return None
    try:
        return onnx.defs.get_schema(op_type, version, "")
    except onnx.defs.SchemaError:
        return None


def _takes(schema: onnx.defs.OpSchema, variable: str, half: ir.DataType) -> bool:
    allowed = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable)
    return SPELLED[half] in allowed
