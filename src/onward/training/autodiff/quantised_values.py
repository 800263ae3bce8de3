"""Integers that stand for real numbers: what quantisation made, and what was computed from it.

Straight through, rounding counts as doing nothing. So the derivative with respect to such an integer is that of the
same formula on real numbers, and moving integers, or adding them up, is differentiated by the rules for real ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from onward.canon.lower import key_of
from onward.registry import cached_by_schema
from onward.training.autodiff.vjp import NO_GRADIENT

ROUNDS = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
"""Real numbers to integers, as the first output; others that give a scale and a zero point say what they stand for."""
POSITIONS = frozenset({"MaxPool", "TopK", "Unique"})
"""Outputs but the first say where, or how often."""
BITS = frozenset({"BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})
"""Have no gradient for plain integers; for those that stand for numbers, it would be silently lost."""


def is_float(value: ir.Value) -> bool:
    return value.dtype is None or value.dtype.is_floating_point()


def is_narrow(value: ir.Value) -> bool:
    """Whether a value is of a type that a gradient cannot have: integers, and floats of 8 bits and less."""
    return value.dtype is not None and (value.dtype.is_integer() or (is_float(value) and value.dtype.bitwidth <= 8))


def carriers(node: ir.Node, given: Sequence[ir.Value]) -> list[ir.Value]:
    """The outputs of a node that carry a gradient to what is `given` of the values it reads."""
    levels = any(not is_float(value) for value in given)
    if not given or (key_of(node) in NO_GRADIENT and not (levels and node.op_type in BITS)):
        return []
    return [output for output in node.outputs if is_float(output) or _is_level(node, output, levels)]


def _is_level(node: ir.Node, output: ir.Value, levels: bool) -> bool:
    if output.dtype is None or not output.dtype.is_integer():
        return False
    if node.op_type in ROUNDS:
        return output.index() == 0
    return levels and not (node.op_type in POSITIONS and output.index())


def same_kind(node: ir.Node) -> list[bool]:
    """For each input, whether it is always of the type of the first output."""
    kinds = _kinds("" if node.domain == "ai.onnx" else node.domain, node.op_type)
    if kinds is None:
        return [False] * len(node.inputs)
    given, made = kinds
    return [given[min(i, len(given) - 1)] == made for i in range(len(node.inputs))]


@cached_by_schema
def _kinds(domain: str, op_type: str) -> tuple[list[str], str] | None:
    """The type variables of the inputs, and of the first output."""
    if not onnx.defs.has(op_type, domain):
        return None
    schema = onnx.defs.get_schema(op_type, domain)
    return ([formal.type_str for formal in schema.inputs], schema.outputs[0].type_str) if schema.inputs else None
