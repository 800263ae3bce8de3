"""How each op that can be computed in either layout is written in the other one: axes are renamed, vectors permuted.

A rule raises `Fixed` where that is not possible. Ops without a rule are computed on tensors as the graph has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import onnx_ir as ir

from onward.layout.change import Aligned, Case, Change, Fixed, is_plain, order_without
from onward.layout.orders import MOVABLE, moves_nothing
from onward.layout.partition import cost_of
from onward.layout.reshapes import reshape


@dataclass(frozen=True)
class Rule:
    change: Callable[[Case], Change]
    main_is_input: bool


RULES: dict[str, Rule] = {}


def rule_of(node: ir.Node) -> Rule | None:
    return RULES.get(f"{node.domain}::{node.op_type}" if node.domain else node.op_type)


def _rule(*ops: str, main: str = "input") -> Callable[[Callable[[Case], Change]], Callable[[Case], Change]]:
    def file(change: Callable[[Case], Change]) -> Callable[[Case], Change]:
        RULES.update(dict.fromkeys(ops, Rule(change, main == "input")))
        return change

    return file


UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu"),
    *("Clip", "Cos", "Cosh", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity"),
    *("IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink"),
    *("Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"),
)
"""Ops of the first input's numbers, each by itself."""
BROADCAST = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual"),
    *("Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor"),
)
"""Ops of numbers that stand at the same place in several inputs."""


@_rule(*UNARY, "onward::FakeQuantize")
def _unary(c: Case) -> Change:
    return c.following()


@_rule(*BROADCAST, main="output")
def _broadcast(c: Case) -> Change:
    change = Change(outputs={0: c.order})
    for i in range(len(c.node.inputs)):
        _operand(c, change, i)
    return change


def _operand(c: Case, change: Change, i: int) -> None:
    """An operand that is broadcast to the main tensor."""
    dims = c.dims(c.input(i))
    if len(dims) == c.rank:
        change.inputs[i] = c.order
    elif any(dim != 1 for dim in dims):
        change.operands[i] = Aligned(c.order)


@_rule("Expand", main="output")
def _expand(c: Case) -> Change:
    change = Change(outputs={0: c.order})
    _operand(c, change, 0)
    change.operands[1] = c.vector(1, c.order, before=1)
    return change


@_rule("Tile")
def _tile(c: Case) -> Change:
    return replace(c.following(), operands={1: c.vector(1, c.order)})


@_rule("Concat", main="output")
def _concat(c: Case) -> Change:
    return _axis_attribute(c, c.following(range(len(c.node.inputs))))


@_rule("Hardmax", "LogSoftmax", "LpNormalization", "Softmax", "TopK")
def _along_last(c: Case) -> Change:
    return _axis_attribute(c, c.following(), default=-1)


@_rule("Split")
def _along_first(c: Case) -> Change:
    return _axis_attribute(c, c.following())


@_rule("GatherElements", "ScatterElements")
def _elements(c: Case) -> Change:
    return _axis_attribute(c, c.following(range(len(c.node.inputs))))


def _axis_attribute(c: Case, change: Change, default: int = 0) -> Change:
    change.attributes["axis"] = c.stored(c.node.attributes.get_int("axis", default))
    return change


@_rule("CumSum", "CumProd")
def _cumulative(c: Case) -> Change:
    (axis,), given = c.numbers(1), c.dims(c.input(1))
    return replace(c.following(), operands={1: c.integers([c.stored(axis)], like=1).reshape([1] * len(given))})


@_rule("QuantizeLinear", "DequantizeLinear")
def _quantize(c: Case) -> Change:
    change = c.following()
    scale = c.dims(c.input(1))
    if c.node.attributes.get_int("block_size", 0) or len(scale) > 1:
        raise Fixed
    return _axis_attribute(c, change, default=1) if scale not in ([], [1]) else change


@_rule("Slice")
def _slice(c: Case) -> Change:
    if c.input(3) is not None:
        axes = c.numbers(3)
    else:
        (count,) = c.dims(c.input(1))
        if not isinstance(count, int):
            raise Fixed
        axes = list(range(count))
    return replace(c.following(), operands={3: c.integers([c.stored(axis) for axis in axes], like=1)})


@_rule("Pad")
def _pad(c: Case) -> Change:
    change = c.following()
    if c.input(3) is not None:
        change.operands[3] = c.integers([c.stored(axis) for axis in c.numbers(3)], like=3)
    else:
        change.operands[1] = c.vector(1, [*c.order, *(axis + c.rank for axis in c.order)])
    return change


@_rule(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)
def _reduce(c: Case) -> Change:
    """Up to opset 17 the axes of most of these are an attribute."""
    change = Change({0: c.order})
    axes = list(range(c.rank))
    if "axes" in c.node.attributes:
        axes = list(c.node.attributes["axes"].as_ints())
        change.attributes["axes"] = [c.stored(axis) for axis in axes]
    elif c.input(1) is not None:
        axes = c.numbers(1)
        change.operands[1] = c.integers([c.stored(axis) for axis in axes], like=1)
        if not axes:
            axes = [] if c.node.attributes.get_int("noop_with_empty_axes", 0) else list(range(c.rank))
    elif c.node.attributes.get_int("noop_with_empty_axes", 0):
        axes = []
    return _reduced(c, change, axes)


@_rule("ArgMax", "ArgMin")
def _arg(c: Case) -> Change:
    axis = c.node.attributes.get_int("axis", 0)
    return _reduced(c, Change({0: c.order}, attributes={"axis": c.stored(axis)}), [axis])


def _reduced(c: Case, change: Change, axes: list[int]) -> Change:
    removed = [] if c.node.attributes.get_int("keepdims", 1) else [axis % c.rank for axis in axes]
    return _removed(c, change, removed)


def _removed(c: Case, change: Change, axes: list[int]) -> Change:
    """The result has the axes that are left."""
    order = order_without(c.order, axes)
    if len(order) in MOVABLE:
        change.outputs[0] = order
    elif not is_plain(order):
        raise Fixed
    return change


@_rule("Squeeze")
def _squeeze(c: Case) -> Change:
    change, dims = Change({0: c.order}), c.dims(c.main)
    if c.input(1) is not None:
        axes = [axis % c.rank for axis in c.numbers(1)]
        change.operands[1] = c.integers([c.stored(axis) for axis in axes], like=1)
    elif all(isinstance(dim, int) for dim in dims):
        axes = [axis for axis, dim in enumerate(dims) if dim == 1]
    else:
        raise Fixed
    return _removed(c, change, axes)


@_rule("Unsqueeze", main="output")
def _unsqueeze(c: Case) -> Change:
    added = [axis % c.rank for axis in c.numbers(1)]
    order = order_without(c.order, added)
    change = Change(outputs={0: c.order}, operands={1: c.integers(sorted(c.stored(a) for a in added), like=1)})
    if len(order) in MOVABLE:
        change.inputs[0] = order
    elif not is_plain(order):
        raise Fixed
    return change


@_rule("Gather")
def _gather(c: Case) -> Change:
    axis, indices = c.node.attributes.get_int("axis", 0) % c.rank, c.dims(c.input(1))
    change = Change({0: c.order}, attributes={"axis": c.stored(axis)})
    if len(indices) > 1:
        raise Fixed
    return _removed(c, change, [] if indices else [axis])


@_rule("onward.channels::LayerNormalization", "onward.channels::MatMul")
def _along_channels(c: Case) -> Change:
    """By other ops: a convolution, and what a normalisation consists of, about as long as moving the tensor once."""
    if c.stored(c.rank - 1) != 1:
        raise Fixed
    burden = 1 if c.node.op_type == "MatMul" else cost_of(c.main, c.order)
    return replace(c.following(), attributes={"axis": 1}, burden=burden)


@_rule("Size")
def _size(c: Case) -> Change:
    return Change({0: c.order}, takes_any=True)


@_rule("Shape")
def _shape(c: Case) -> Change:
    """The numbers of the stored tensor, put in order."""
    end = c.node.attributes.get("end")
    axes = range(c.rank)[c.node.attributes.get_int("start", 0) : None if end is None else end.as_int()]
    places = [c.stored(axis) for axis in axes]
    change = Change({0: c.order}, takes_any=True)
    if places and places == list(range(places[0], places[-1] + 1)):
        change.attributes = {"start": places[0], "end": places[-1] + 1}
    elif places:
        change.attributes, change.picked = {"start": None, "end": None}, tuple(places)
    return change


@_rule("Flatten")
def _flatten(c: Case) -> Change:
    if c.node.attributes.get_int("axis", 1) != 1 or not moves_nothing(c.dims(c.main), c.order):
        raise Fixed
    return Change({0: c.order}, takes_any=True)


RULES["Reshape"] = Rule(reshape, main_is_input=True)
