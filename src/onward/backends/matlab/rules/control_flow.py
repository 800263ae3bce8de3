"""If, Loop and Scan as MATLAB's own `if`, `for` and `while`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import ENDLESS, condition_of, counters, hint_of, kind_of, row_shape
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, Helper, Name, Ref, Unary, Var, lift
from onward.backends.emit.expr import Sequence as Display
from onward.backends.matlab.target import ALL, CLASSES, axis_dim, moves, ops, rank_of, sizes
from onward.backends.shared.control_flow import (
    assign_together,
    bind_index,
    carry,
    collect,
    if_,
    is_read,
    mapped,
)
from onward.spec.control_flow import Repeated, Scan

NOTHING = Display((), "{}")
"""An empty cell array."""

moves("If")(if_)


def _note_ranks(formals: Sequence[ir.Value], initial: Sequence[Arg]) -> None:
    """The state of a loop has as many dimensions as it starts with, where the body does not say it."""
    for formal, start in zip(formals, initial, strict=False):
        if formal.shape is None and start._value.shape is not None:
            formal.shape = ir.Shape([None] * len(start._value.shape))


def append(e: Emitter, items: Var, value: Expr) -> None:
    """Put a value at the end of a cell array."""
    e.assign(items, Display((Ref(items), Display((value,), "{}")), "[]"))


def stacked(e: Emitter, items: Var, like: ir.Value, *, axis: int = 0, reverse: bool = False) -> Expr:
    """What a loop collected as one tensor with a new axis, which has its shape even where there is nothing."""
    rank = rank_of(e, like)
    dim = rank + 1 - axis if axis >= 0 else -axis
    known = [d or 0 for d in row_shape(like) or [None] * rank]
    known.insert(axis if axis >= 0 else axis + rank + 1, 0)
    kind = "cell" if like.dtype == ir.DataType.STRING else CLASSES[like.dtype or ir.DataType.FLOAT]
    elements: Expr = Ref(items)
    if reverse:
        elements = Name("fliplr")(elements)
    return ops.stack(elements, dim, rank, sizes(known), kind)


@moves("Loop")
def loop(e: Emitter, trip_count: Expr | None = None, condition: Expr | None = None, *initial: Arg, p: Repeated) -> Any:
    with e.together():
        return _loop(e, trip_count, condition, initial, p.body)


def _loop(
    e: Emitter, trip_count: Expr | None, condition: Expr | None, initial: Sequence[Arg], body: ir.Graph
) -> list[Any]:
    count, results = len(initial), body.outputs[1:]
    counted = counters(e, body.inputs[2:], initial, results)
    _note_ranks(body.inputs[2:], initial)
    states = carry(e, body.inputs[2:], initial, results, counted)
    lists = collect(e, count, results[count:], NOTHING)
    limit = None if trip_count is None else _count(e, trip_count)
    if not isinstance(limit, Expr) and limit is not None and limit >= ENDLESS:
        limit = None
    start = condition_of(e, condition)
    index = e.fresh("i", "host")
    bind_index(e, index, body, counted)
    running = e.fresh("running", "host")
    with e.nested() as block:
        proceed, *outputs = e.graph(body)
        test = condition_of(e, proceed)
        for i, items in lists.items():
            append(e, items, outputs[i])
        following: dict[Var, Any] = {var: outputs[i] for i, var in states.items()}
        if limit is None:
            if is_read(index, block, outputs):
                following[index] = Ref(index) + 1
            if test is not True:
                following[running] = test
        elif isinstance(test, Expr):
            test = e.let(test, "running", "host")
        assign_together(e, following)
        if limit is not None and test is not True:
            _leave_unless(e, test)
    if limit is None:
        for var, first in ((index, 0), (running, start)):
            if var in following:
                e.assign(var, first)
        e.compound(("while", start if test is True else Ref(running), block))
    else:
        trips: Any = limit if start is True else 0 if start is False else Helper("choose")(start, limit, 0)
        last = trips - 1
        e.compound(("for", lift(slice(0, last)), block), target=index)
    finals: list[Any] = [Ref(states[i]) if i in states else initial[i] for i in range(count)]
    return finals + [stacked(e, lists[i], results[i]) if i in lists else None for i in range(count, len(results))]


def _count(e: Emitter, x: Expr) -> Any:
    """A number of trips: known now, or as a double."""
    number = e.scalar(x, None)
    return Name("double")(x) if number is None else number


def _leave_unless(e: Emitter, test: Any) -> None:
    if not isinstance(test, Expr):
        e.keyword("break")
        return
    with e.nested() as leave:
        e.keyword("break")
    e.compound(("if", Unary("not", test), leave))


@moves("Scan")
def scan(e: Emitter, *operands: Arg, p: Scan) -> Any:
    body, axes, backward = p.body, p.input_axes, p.input_directions
    count = len(operands) - p.num_scan_inputs
    scanned = operands[count:]
    size = e.dim(scanned[0], axes[0])
    with e.together():
        _note_ranks(body.inputs[:count], operands[:count])
        states = carry(e, body.inputs[:count], operands[:count], body.outputs)
        lists = collect(e, count, body.outputs[count:], NOTHING)
        place = e.fresh("k", "host")
        with e.nested() as block:
            for i, (formal, operand) in enumerate(zip(body.inputs[count:], scanned, strict=True)):
                at = size + 1 - Ref(place) if backward[i] else Ref(place)
                var = Var(hint_of(formal), kind_of(formal))
                e.assign(var, item(e, operand, axes[i], at))
                e.bind(formal, var)
                if formal.shape is None:
                    formal.shape = ir.Shape([None] * (rank_of(e, operand) - 1))
            outputs = e.graph(body)
            for i, items in lists.items():
                append(e, items, outputs[i])
            assign_together(e, {var: outputs[i] for i, var in states.items()})
        e.compound(("for", lift(slice(1, size)), block), target=place)
    finals: list[Any] = [Ref(states[i]) if i in states else operands[i] for i in range(count)]
    ways = zip(body.outputs[count:], p.output_axes, p.output_directions, strict=True)
    return finals + [
        stacked(e, lists[i], result, axis=axis, reverse=bool(back)) if i in lists else None
        for i, (result, axis, back) in enumerate(ways, count)
    ]


def item(e: Emitter, x: Expr, axis: int, place: Expr) -> Expr:
    """A part of a tensor without the axis along which it was taken."""
    rank, dim = rank_of(e, x), axis_dim(e, x, axis)
    if dim < rank:
        return ops.item(x, dim, place, rank)
    return x[place] if rank == 1 else x[tuple([ALL] * (rank - 1) + [place])]


@moves("SequenceMap")
def sequence_map(e: Emitter, *operands: Arg, p: Repeated) -> Any:
    body = p.body
    sequences, formals, unchanged = mapped(e, operands, body)
    if None not in unchanged:
        return unchanged
    with e.together():
        lists = collect(e, 0, body.outputs, NOTHING)
        place = e.fresh("k", "host")
        with e.nested() as block:
            for formal, operand in zip(formals, sequences, strict=True):
                var = Var(hint_of(formal), kind_of(formal))
                e.assign(var, ops.element(operand, Ref(place)))
                e.bind(formal, var)
            outputs = e.graph(body)
            for i, items in lists.items():
                append(e, items, outputs[i])
        e.compound(("for", lift(slice(1, Name("numel")(sequences[0]))), block), target=place)
    return [Ref(lists[i]) if i in lists else None for i in range(len(body.outputs))]
