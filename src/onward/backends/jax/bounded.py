"""Results that are filled up to a bound: how far the filled rows come, and who would take them for results.

The first rows of each are what ONNX gives, and how many these are is told beside the outputs. So what follows in a
model has to keep rows apart: each row of a result comes from the same row of what is filled up. All else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.origin import origin
from onward.layout.rules import BROADCAST, UNARY
from onward.spec.meaning import attributes

Rows = dict[int, ir.Node]
"""By axis, the node whose results are filled up along it."""
Rule = Callable[[ir.Node, list[Rows]], list[Rows] | None]
"""Given what is filled up of the inputs: what is of the outputs, or None where rows do not stay apart."""


def check_rows(graph: ir.Graph, bounded: list[ir.Node]) -> None:
    """Refuse a model that takes filled rows for results."""
    found: dict[ir.Value, Rows] = {}
    for node in bounded:
        if node.graph is not graph:
            raise UnsupportedError(
                f"bounds: {origin(node)} stands inside of a loop or branch, where the number of its results cannot be "
                "told: leave its bound out, and call the function without jit"
            )
    for node in graph:
        given = [found.get(value, {}) if value is not None else {} for value in node.inputs]
        filled = next((by for rows in (*given, *_captured(node, found)) for by in rows.values()), None)
        if filled is not None:
            key = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"
            rule = RULES.get(key)
            outputs = None if rule is None else rule(node, given)
            if outputs is None:
                raise UnsupportedError(
                    f"bounds: {origin(node)} would take rows for results of {origin(filled)} that are only filled in: "
                    f"end the model before it, or leave the bound of {origin(filled).name!r} out and call the function "
                    "without jit"
                )
            found |= {value: rows for value, rows in zip(node.outputs, outputs, strict=False) if rows}
        elif node in bounded:
            found |= _begun(node)


def _captured(node: ir.Node, found: dict[ir.Value, Rows]) -> Iterator[Rows]:
    """What the branches or the body of a node take from around it."""
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph().all_nodes():
                yield from (found[value] for value in inner.inputs if value in found)
            yield from (found[value] for value in attribute.as_graph().outputs if value in found)


def _begun(node: ir.Node) -> dict[ir.Value, Rows]:
    """The outputs of a node with a bound, and the axis along which they are filled up."""
    axis = attributes(node).get("axis")
    axes: list[int | None]
    match node.op_type:
        case "NonZero":
            axes = [1]
        case "Unique":
            axes = [_from_the_front(axis or 0, node.inputs[0]), 0, None, 0]
        case "Compress":
            axes = [_from_the_front(axis or 0, node.inputs[0])]
        case _:
            axes = [0]
    pairs = zip(node.outputs, axes, strict=False)
    return {value: {axis: node} for value, axis in pairs if axis is not None}


def _from_the_front(axis: int, value: ir.Value | None) -> int:
    if axis >= 0:
        return axis
    assert value is not None and value.shape is not None
    return axis + len(value.shape)


def _dims(value: ir.Value | None) -> list[int | None] | None:
    """The sizes of a value, None for each that is not known, or None where not even the rank is."""
    if value is None:
        return None
    constant = ir.convenience.get_const_tensor(value)
    shape = value.shape if constant is None else constant.shape
    return None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]


def _numbers(node: ir.Node, index: int) -> list[int] | None:
    """The numbers of an input, where they are known."""
    value = node.inputs[index] if index < len(node.inputs) else None
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(n) for n in tensor.numpy().reshape(-1)]


# What each op does with rows


def _unary(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    return None if any(given[1:]) else given[:1]


def _broadcast(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """What has no such axis, or one of size 1, is the same for each row."""
    shapes = [_dims(value) for value in node.inputs if value is not None]
    given = [rows for rows, value in zip(given, node.inputs, strict=True) if value is not None]
    if any(shape is None for shape in shapes):
        return None
    ranks = [len(shape or ()) for shape in shapes]
    found: Rows = {}
    for rows, rank in zip(given, ranks, strict=True):
        for axis, by in rows.items():
            if found.setdefault(axis - rank, by) is not by:
                return None
    for axis, by in found.items():
        for rows, shape, rank in zip(given, shapes, ranks, strict=True):
            is_one = -axis > rank or (shape or ())[axis] == 1
            if rows.get(axis + rank) is not by and not is_one:
                return None
    return [{axis + max(ranks): by for axis, by in found.items()}]


def _transpose(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    shape = _dims(node.inputs[0])
    order = attributes(node).get("perm") or (None if shape is None else range(len(shape))[::-1])
    return None if order is None else [{list(order).index(axis): by for axis, by in given[0].items()}]


def _reshape(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """The one axis that is filled up stays if there are as many elements before it, and after it, as there were."""
    before, after = _dims(node.inputs[0]), _dims(node.outputs[0])
    if before is None or after is None or any(given[1:]) or len(given[0]) != 1:
        return None
    [(axis, by)] = given[0].items()
    others = [before[:axis], before[axis + 1 :]]
    for place, dim in enumerate(after):
        sides = [after[:place], after[place + 1 :]]
        known = [part for part in (*others, *sides) if None not in part]
        if dim is None and len(known) == 4 and list(map(_product, others)) == list(map(_product, sides)):
            return [{place: by}]
    return None


def _product(dims: list[int | None]) -> int:
    return math.prod(dim or 0 for dim in dims)


def _gather(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """A filled place chooses something or other, in a row that is filled itself."""
    data, places = _dims(node.inputs[0]), _dims(node.inputs[1])
    if data is None or places is None:
        return None
    axis = attributes(node).get("axis", 0) % len(data)
    if axis in given[0]:
        return None
    kept = {old if old < axis else old + len(places) - 1: by for old, by in given[0].items()}
    return [kept | {axis + old: by for old, by in given[1].items()}]


def _gather_nd(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    places = _dims(node.inputs[1])
    if given[0] or places is None or len(places) - 1 in given[1]:
        return None
    return [given[1]]


def _slice(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """Along the axis itself, only the first rows."""
    shape, starts, ends = _dims(node.inputs[0]), _numbers(node, 1), _numbers(node, 2)
    axes, steps = _numbers(node, 3), _numbers(node, 4)
    if shape is None or any(given[1:]):
        return None
    if axes is None and len(node.inputs) > 3 and node.inputs[3] is not None:
        return None
    cut = [axis % len(shape) for axis in (range(len(starts or shape)) if axes is None else axes)]
    for place, axis in enumerate(cut):
        if axis in given[0]:
            steady = (steps is None and len(node.inputs) <= 4) or (steps is not None and steps[place] == 1)
            if starts is None or ends is None or starts[place] != 0 or ends[place] < 0 or not steady:
                return None
    return given[:1]


def _unsqueeze(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    shape, axes = _dims(node.inputs[0]), _numbers(node, 1)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    kept = [axis for axis in range(rank) if axis not in {a % rank for a in axes}]
    return [{kept[axis]: by for axis, by in given[0].items()}]


def _without(node: ir.Node, given: list[Rows], axes: list[int] | None, keeps: bool) -> list[Rows] | None:
    """Without the `axes`, or with size 1 there."""
    shape = _dims(node.inputs[0])
    if shape is None or axes is None or any(given[1:]):
        return None
    gone = {axis % len(shape) for axis in axes}
    if gone & given[0].keys():
        return None
    return [{axis if keeps else axis - sum(a < axis for a in gone): by for axis, by in given[0].items()}]


def _squeeze(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    return _without(node, given, _numbers(node, 1), keeps=False)


def _reduce(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    return _without(node, given, _numbers(node, 1) or None, keeps=bool(attributes(node).get("keepdims", 1)))


def _arg(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    told = attributes(node)
    return _without(node, given, [told.get("axis", 0)], keeps=bool(told.get("keepdims", 1)))


def _along(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """Ops that mix what stands along one axis, and keep the shape, or change it there."""
    default = {"Softmax": -1, "LogSoftmax": -1, "TopK": -1}.get(node.op_type, 0)
    found = _without(node, given, [attributes(node).get("axis", default)], keeps=True)
    return None if found is None else found * len(node.outputs)


def _concat(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    found = _without(node, given[:1], [attributes(node)["axis"]], keeps=True)
    return found if all(rows == given[0] for rows in given) else None


def _product_of(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """Rows of the first factor times one matrix."""
    left, right = _dims(node.inputs[0]), _dims(node.inputs[1])
    if left is None or right is None or len(left) < 2 or len(right) != 2 or any(given[1:]):
        return None
    if len(left) - 1 in given[0] or attributes(node).get("transA"):
        return None
    return given[:1]


def _shape(node: ir.Node, given: list[Rows]) -> list[Rows] | None:
    """Only where nobody asks for the size that is filled up to."""
    shape = _dims(node.inputs[0])
    if shape is None or attributes(node).keys() & {"start", "end"}:
        return None
    for user, index in node.outputs[0].uses():
        asked = _numbers(user, 1) if user.op_type == "Gather" and index == 0 else None
        if asked is None or {axis % len(shape) for axis in asked} & given[0].keys():
            return None
    return None if node.outputs[0].is_graph_output() else [{}]


REDUCTIONS = ("Max", "Min", "Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
RULES: dict[str, Rule] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BROADCAST, _broadcast),
    **dict.fromkeys((f"Reduce{word}" for word in REDUCTIONS), _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    **dict.fromkeys(("Softmax", "LogSoftmax", "TopK", "Split"), _along),
    **dict.fromkeys(("MatMul", "Gemm", "onward::Linear"), _product_of),
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Slice": _slice,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Concat": _concat,
    "Shape": _shape,
}
"""Ops that may keep rows apart."""
