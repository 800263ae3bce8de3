"""What rules for nodes with graphs inside (If, Loop, Scan, SequenceMap) ask of these graphs, for any framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.graph.infer import DECLARED
from onward.graph.weight_names import is_automatic

LONGEST = 40
"""Characters of a name of the file that becomes a variable."""

ENDLESS = 2**31 - 1
"""A trip count as large as this or larger stands for 'until the condition is false'."""


def kind_of(value: ir.Value) -> str:
    """What a variable for this value holds: a tensor, or some other object."""
    is_tensor = isinstance(value.type, ir.TensorType) or value.type is None
    return "tensor" if is_tensor and value.dtype != ir.DataType.STRING else "object"


def hint_of(*values: ir.Value) -> str:
    """The first name that someone chose, unless it is too long to be read with ease."""
    return next((v.name for v in values if v.name and len(v.name) <= LONGEST and not is_automatic(v.name)), "")


def condition_of(e: Emitter, x: Expr | None) -> Any:
    """A condition as a Python bool if it is known now, otherwise as the expression to test."""
    if x is None:
        return True
    found = e.host(x)
    return x if found is None else found.reshape(-1)[0]


def give_types(formals: Sequence[ir.Value], actuals: Sequence[ir.Value | None]) -> None:
    """Bodies may leave the types of their inputs to be understood from what they are given."""
    for formal, actual in zip(formals, actuals, strict=True):
        if formal.type is None and actual is not None:
            formal.type = actual.type


def counters(
    e: Emitter, formals: Sequence[ir.Value], initial: Sequence[Arg], results: Sequence[ir.Value]
) -> dict[int, int]:
    """Which parts of a loop's state only count its trips, and where each begins; none that is read after the loop."""
    found: dict[int, int] = {}
    for i, (formal, start) in enumerate(zip(formals, initial, strict=True)):
        node = results[i].producer()
        if e.used(i) or node is None or node.op_type != "Add" or node.domain or formal not in node.inputs:
            continue
        steps = [v for v in node.inputs if v is not None and v is not formal]
        first = _integer(e, start._value)
        if first is not None and [_integer(e, v) for v in steps] == [1]:
            found[i] = first
    return found


def _integer(e: Emitter, value: ir.Value) -> int | None:
    items = e.host_of(value)
    return items.item() if items is not None and items.ndim == 0 and type(items.item()) is int else None


def row_shape(like: ir.Value) -> tuple[int | None, ...] | None:
    """The shape of what a loop collects in each trip, as far as it is known, or declared."""
    declared = like.meta.get(DECLARED)
    shape = like.shape if like.shape is not None else declared
    if shape is None:
        return None
    known = [d if isinstance(d, int) else None for d in shape]
    if declared is not None and len(declared) == len(known):
        known = [d or (n if isinstance(n, int) else d) for d, n in zip(known, declared, strict=True)]
    return tuple(known)


def passed(value: ir.Value) -> ir.Value:
    """The value that `value` is another name of."""
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
    return value
