"""Activation functions that files write out: Gelu, Swish, HardSwish, Mish and Sigmoid, which ONNX has names for."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any

import onnx_ir as ir

from onward.graph.facts import Facts, Number
from onward.graph.replace import graphs, is_op, made_by, new_node, only_user, remove_unread, take_over
from onward.graph.walk import all_nodes
from onward.passes.products import factors, is_close, scalar, without_factors

_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def fuse_activation(model: ir.Model, only: Container[str] | None = None) -> int:
    """Rewrites in place, to these operators `only` if some are given; returns how many were found."""
    facts, count = Facts(), name_sigmoids(model) if only is None or "Sigmoid" in only else 0
    for graph in graphs(model):
        for node in reversed(list(graph)):
            found = _match(node, facts) if is_op(node, "Mul", "Div") else None
            if found is not None and (only is None or found[0] in only):
                op_type, x, main, attributes = found
                new = new_node(op_type, [x], attributes, main, node)
                take_over(node.outputs[0], new.outputs[0])
                count += 1
    return count


def name_sigmoids(model: ir.Model) -> int:
    """Replaces 1 / (1 + exp(-x)), in place, whose derivative is NaN in pieces where exp(-x) is too large for a number.

    Sums and powers that someone else reads, too, stay as they are.
    """
    facts, count = Facts(), 0
    for node in list(all_nodes(model.graph)):
        parts = _sigmoid(node, facts)
        if parts is not None:
            new = new_node("Sigmoid", [_input(parts[0])], {}, node, node)
            take_over(node.outputs[0], new.outputs[0])
            remove_unread([*parts, node])
            count += 1
    return count


def _sigmoid(node: ir.Node, facts: Facts) -> list[ir.Node] | None:
    """The Neg, the Exp and the Add of a sigmoid that ends in this node."""
    if is_op(node, "Reciprocal"):
        divisor = node.inputs[0]
    elif is_op(node, "Div") and is_close(scalar(node.inputs[0], node.inputs[1], facts), 1.0):
        divisor = node.inputs[1]
    else:
        return None
    exp = made_by(_addend(divisor, 1.0, facts), "Exp")
    neg = None if exp is None else made_by(_input(exp), "Neg")
    add = made_by(divisor, "Add")
    if exp is None or neg is None or add is None:
        return None
    parts = [neg, exp, add]
    return parts if all(only_user(part.outputs[0]) for part in parts) else None


def _match(node: ir.Node, facts: Facts) -> tuple[str, ir.Value, ir.Node, dict[str, Any]] | None:
    """The operator that a product is, its input, the node it is named after, and its attributes."""
    values, scale = factors(node.outputs[0], facts)
    if len(values) != 2:
        return None
    double = node.outputs[0].dtype in (
        ir.DataType.DOUBLE,
        None,
    )  # where a constant of single precision shows in the result
    for x, other in (values, values[::-1]):
        main = other.producer()
        if main is None or main.domain not in ("", "ai.onnx"):
            continue
        if is_close(scale, 0.5) and main.op_type == "Add" and not double and (approximate := _gelu(main, x, facts)):
            return "Gelu", x, main, {"approximate": approximate}
        if is_close(scale, 1.0) and main.op_type == "Sigmoid":
            inner, alpha = without_factors(_input(main), facts)
            if _input(main) is x or (inner is x and isinstance(alpha, float) and not double):
                return "Swish", x, main, {"alpha": 1.0 if _input(main) is x else alpha}
        if is_close(scale, 1.0) and main.op_type == "HardSigmoid" and _input(main) is x:
            slope, offset = (main.attributes.get_float(k, d) for k, d in (("alpha", 0.2), ("beta", 0.5)))
            if is_close(slope, 1 / 6) and offset == 0.5 and not double:
                return "HardSwish", x, main, {}
        if is_close(scale, 1 / 6) and main.op_type == "Clip" and _is_relu6_of_shifted(main, x, facts) and not double:
            return "HardSwish", x, main, {}
        if is_close(scale, 1.0) and main.op_type == "Tanh":
            softplus = made_by(_input(main), "Softplus")
            if softplus is not None and _input(softplus) is x:
                return "Mish", x, main, {}
    return None


def _input(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def _addend(value: ir.Value | None, number: float, facts: Facts) -> ir.Value | None:
    """What a number is added to, or None where a value is no such sum."""
    add = made_by(value, "Add")
    if add is None:
        return None
    for index, other in ((0, 1), (1, 0)):
        if is_close(scalar(add.inputs[other], add.inputs[index], facts), number):
            return add.inputs[index]
    return None


def _gelu(one_plus: ir.Node, x: ir.Value, facts: Facts) -> str | None:
    """'none' or 'tanh' where x / 2 times this sum is that kind of Gelu."""
    inner = _addend(one_plus.outputs[0], 1.0, facts)
    erf, tanh = made_by(inner, "Erf"), made_by(inner, "Tanh")
    if erf is not None:
        value, scale = without_factors(_input(erf), facts)
        return "none" if value is x and is_close(scale, math.sqrt(0.5)) else None
    if tanh is not None:
        values, scale = factors(_input(tanh), facts)
        return "tanh" if _is_tanh_argument(values, scale, x, facts) else None
    return None


def _is_tanh_argument(values: list[ir.Value], scale: Number, x: ir.Value, facts: Facts) -> bool:
    """√(2/π) · (x + 0.044715 x³), or √(2/π) · x · (1 + 0.044715 x²)"""
    if not is_close(scale, _TANH_SCALE):
        return False
    if len(values) == 1 and (add := made_by(values[0], "Add")) is not None:
        for index, other in ((0, 1), (1, 0)):
            if add.inputs[index] is x and _is_power(add.inputs[other], x, 3, _TANH_CUBE, facts):
                return True
    if len(values) == 2 and x in values:
        (other_factor,) = [v for v in values if v is not x] or [x]
        return _is_power(_addend(other_factor, 1.0, facts), x, 2, _TANH_CUBE, facts)
    return False


def _is_power(value: ir.Value | None, x: ir.Value, exponent: int, scale: float, facts: Facts) -> bool:
    """Whether a value is scale · x^exponent."""
    if value is None:
        return False
    values, found = factors(value, facts)
    total = 0.0
    for part in values:
        power = made_by(part, "Pow")
        if part is x:
            total += 1
        elif (
            power is not None and _input(power) is x and isinstance(n := scalar(power.inputs[1], x, facts), int | float)
        ):
            total += n
        else:
            return False
    return total == exponent and is_close(found, scale)


def _is_relu6_of_shifted(clip: ir.Node, x: ir.Value, facts: Facts) -> bool:
    low, high = (facts.number(v) for v in (*clip.inputs[1:], None, None)[:2])
    return low == 0 and high == 6 and _addend(_input(clip), 3.0, facts) is x
