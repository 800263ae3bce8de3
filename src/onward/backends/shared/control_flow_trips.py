"""Loops with a condition that says no more than their trip count does, as TensorFlow's loops over time have it."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter

SAME = {"Identity", "Squeeze", "Unsqueeze", "Reshape"}
"""Ops that give the same number, in another shape."""
_D = ir.DataType
WIDE = {_D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE}
"""Types that hold every count of trips."""


def runs_to_the_end(e: Emitter, node: ir.Node, body: ir.Graph) -> bool:
    """Whether a Loop surely makes as many trips as its count says: its conditions compare counters with that count."""
    count, start = (*node.inputs, None, None)[:2]
    if count is None:
        return False
    formals, results = body.inputs[2:], body.outputs[1:]
    counters = {body.inputs[0]: 0}
    same = {}
    for given, formal, result in zip(node.inputs[2:], formals, results, strict=False):
        first = _integer(e, given)
        if result is formal and given is not None:
            same[formal] = given
        elif first is not None and _is_next(e, formal, result):
            counters |= {formal: first, result: first + 1}

    def is_true(value: ir.Value) -> bool:
        constant = e.constant_of(value)
        return constant is not None and bool(constant.all())

    def is_below_count(value: ir.Value | None, most: int) -> bool:
        test = None if value is None else value.producer()
        if test is None or test.domain not in ("", "ai.onnx"):
            return False
        if test.op_type in SAME:
            return is_below_count(test.inputs[0], most)
        if test.op_type == "And":
            return all(is_below_count(side, most) for side in test.inputs)
        if test.op_type != "Less" or _source(test.inputs[1], same) is not _source(count, same):
            return False
        left = _source(test.inputs[0], same)
        first = _integer(e, left) if most == 0 else counters.get(left) if left is not None else None
        return first is not None and first <= most

    if not is_below_count(body.outputs[0], 1):  # i + 1 is below the count after each trip i but the last
        return False
    return start is None or is_true(start) or is_below_count(start, 0)


def _is_next(e: Emitter, formal: ir.Value, result: ir.Value) -> bool:
    node = result.producer()
    if node is None or node.op_type != "Add":
        return False
    others = [v for v in node.inputs if v is not formal]
    return len(others) == 1 and _integer(e, others[0]) == 1


def _source(value: ir.Value | None, same: dict[ir.Value, ir.Value]) -> ir.Value | None:
    while value is not None:
        node = value.producer()
        if value in same:
            value = same[value]
        elif node is not None and node.domain in ("", "ai.onnx") and _keeps(node):
            value = node.inputs[0]
        else:
            return value
    return None


def _keeps(node: ir.Node) -> bool:
    return node.op_type in SAME or (node.op_type == "Cast" and node.attributes.get_int("to", 0) in WIDE)


def _integer(e: Emitter, value: ir.Value | None) -> int | None:
    constant = None if value is None else e.constant_of(value)
    if constant is None or constant.size != 1 or constant.dtype.kind not in "iuf":
        return None
    number = constant.reshape(-1)[0].item()
    return int(number) if number == int(number) else None
