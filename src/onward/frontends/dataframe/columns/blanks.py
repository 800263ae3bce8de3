"""Numbers that are missing where an integer has one value: NaN or 0 is added, where `Where` takes twice as long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.dataframe.tensors.lookup import encoded
from onward.graph.build import Builder, Tensor

Array = npt.NDArray[Any]
Null = tuple[ir.Value, int]
"""An int64 and the value of it that stands for a null."""
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}
NEVER = {"Less": 0, "LessOrEqual": -1, "Greater": 0, "GreaterOrEqual": 1, "Equal": 1}
"""What is added to a number so that it does not compare to the sum as this."""
EXACT = 2**53


class Blanks:
    """The tensors of NaN and 0 of a graph, each of which is made once."""

    def __init__(self, op: Builder) -> None:
        self.op = op
        self._made: dict[Null | tuple[Null, ...], Tensor] = {}

    def add(self, node: ir.Node) -> None:
        """Of a `Where` that has NaN where integers have their nulls, and else a number."""
        test, number, value = node.inputs
        if test is None or value is None or not is_nan(number):
            return
        nulls = _nulls(test)
        if not nulls or self._is_told(node, nulls, value) or not _is_plain(value):
            return
        blank = self._of(tuple(nulls))
        filled = self.op.tensor(value) + blank
        node.outputs[0].replace_all_uses_with(filled.value, replace_graph_outputs=True)
        if len(nulls) > 1 and any(use.node is not node for use in test.uses()):
            test.replace_all_uses_with(self.op.IsNaN(blank).value, replace_graph_outputs=True)

    def _of(self, nulls: tuple[Null, ...]) -> Tensor:
        if nulls not in self._made:
            *before, last = nulls
            one = self._made.get(last)
            if one is None:
                one = self._made[last] = encoded(self.op.tensor(last[0]), [last[1]], np.asarray([np.nan]), 0.0)
            self._made[nulls] = self._of(tuple(before)) + one if before else one
        return self._made[nulls]

    def _is_told(self, node: ir.Node, nulls: list[Null], value: ir.Value) -> bool:
        """Take NaN away where all that reads it compares with a constant: an integer compares by itself.

        What is computed of the null is known, and so is a constant for which the comparison does not hold there.
        """
        whole = _whole(value)
        if len(nulls) > 1 or node.outputs[0].is_graph_output() or whole is None:
            return False
        there = _computed(whole, *nulls[0])
        tests = [use.node for use in node.outputs[0].uses()]
        if there is None or not all(_is_test(test, node.outputs[0]) for test in tests):
            return False
        for test in tests:
            limit = int(number_of(test.inputs[1]) or 0)
            beside = self.op.like(limit, self.op.tensor(whole))
            if COMPARISONS[test.op_type](int(there[0]), limit):
                source, null = nulls[0]
                other = int(there[0]) + NEVER[test.op_type]
                beside = encoded(self.op.tensor(source), [null], np.asarray([other]), limit)
            test.replace_input_with(0, whole)
            test.replace_input_with(1, beside.value)
        return True


def _whole(value: ir.Value) -> ir.Value | None:
    """The int64 that was cast."""
    cast = value.producer()
    whole = None if cast is None or cast.op_type != "Cast" else cast.inputs[0]
    return whole if whole is not None and whole.dtype == ir.DataType.INT64 else None


def _is_test(node: ir.Node, value: ir.Value) -> bool:
    """Whether a node compares a value with a whole number, of which integers and floats think the same."""
    if node.op_type not in COMPARISONS or node.inputs[0] is not value:
        return False
    number = number_of(node.inputs[1])
    return number is not None and number.is_integer() and abs(number) < EXACT


def number_of(value: ir.Value | None) -> float | None:
    """The number of a constant of one element."""
    found = None if value is None or value.dtype == ir.DataType.STRING else value.const_value
    if found is None or value is None or found.size != 1 or value.is_graph_input():
        return None
    return float(found.numpy().reshape(-1)[0])


def is_nan(value: ir.Value | None) -> bool:
    number = number_of(value)
    return number is not None and np.isnan(number)


def _nulls(mask: ir.Value) -> list[Null]:
    """The integers whose nulls a mask tells, and nothing else; none if it tells more."""
    node = mask.producer()
    if node is None or node.op_type not in ("Equal", "Or"):
        return []
    left, right = node.inputs
    if left is None or right is None:
        return []
    if node.op_type == "Or":
        parts = _nulls(left), _nulls(right)
        return [*parts[0], *parts[1]] if all(parts) else []
    null = right.const_value
    if left.dtype != ir.DataType.INT64 or null is None or null.size != 1 or not _is_column(left):
        return []
    return [(left, int(null.numpy().reshape(-1)[0]))]


def _is_column(value: ir.Value) -> bool:
    return value.shape is not None and value.shape.rank() == 2


def _is_plain(value: ir.Value) -> bool:
    """Whether it is a float64 that is never -0.0: an integer that was cast, or of a table."""
    node = value.producer()
    if node is None or value.dtype != ir.DataType.DOUBLE or node.inputs[0] is None:
        return False
    if node.op_type == "Cast":
        return node.inputs[0].dtype is not None and node.inputs[0].dtype.is_integer()
    table = node.inputs[0].const_value if node.op_type in ("Gather", "GatherElements") else None
    return table is not None and not (np.signbit(table.numpy()) & (table.numpy() == 0)).any()


def _computed(value: ir.Value, source: ir.Value, number: int) -> Any:
    """What a value is where an integer that it is computed of alone has one value; None if that is not known."""
    if value is source:
        return np.asarray([number], np.int64)
    node = value.producer()
    if node is None:
        found = value.const_value
        is_number = found is not None and found.dtype in (ir.DataType.INT64, ir.DataType.DOUBLE) and found.size == 1
        return found.numpy().reshape(-1) if found is not None and is_number and not value.is_graph_input() else None
    if node.op_type not in ("Add", "Cast", "Div", "Mod", "Mul", "Sub") or node.domain:
        return None
    given: list[Any] = [None if each is None else _computed(each, source, number) for each in node.inputs]
    if any(each is None for each in given) or ("fmod" in node.attributes and node.attributes["fmod"].as_int()):
        return None
    if node.op_type == "Cast":
        target = ir.DataType(node.attributes["to"].as_int())
        return given[0].astype(target.numpy()) if target in (ir.DataType.INT64, ir.DataType.DOUBLE) else None
    return _arithmetic(node.op_type, *given)


def _arithmetic(op_type: str, a: Array, b: Array) -> Any:
    """As ONNX has it: quotients of integers are truncated, and remainders have the sign of the divisor."""
    if op_type in ("Add", "Mul", "Sub"):
        with np.errstate(over="ignore"):
            return {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract}[op_type](a, b)
    if a.dtype != np.int64 or b[0] in (0, -1):
        return None
    quotient = abs(int(a[0])) // abs(int(b[0])) * (1 if (a[0] < 0) == (b[0] < 0) else -1)
    return np.mod(a, b) if op_type == "Mod" else np.asarray([quotient], np.int64)
