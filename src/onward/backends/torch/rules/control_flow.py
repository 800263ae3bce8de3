"""If, Loop, Scan and SequenceMap as Python's own `if`, `for` and `while`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import ENDLESS, condition_of, counters, hint_of, kind_of, row_shape
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Conditional, Expr, Name, Ref, Unary, Var
from onward.backends.shared.control_flow import (
    assign_together,
    bind_index,
    carry,
    collect,
    if_,
    is_read,
    mapped,
    variable,
)
from onward.backends.shared.shape import subscript
from onward.backends.torch.rules.shape import integer, is_string
from onward.backends.torch.target import dtype, ops, rule, torch
from onward.errors import UnsupportedError
from onward.spec.control_flow import Repeated, Scan

DEEPEST = 20


# If


rule("If")(if_)


# Loops


def stacked(
    e: Emitter, items: Var, like: ir.Value, *, axis: int = 0, reverse: bool = False, never_empty: bool = False
) -> Expr:
    """The tensors that a loop collected as one tensor with a new axis, which has its shape even if there are none."""
    elements: Expr = Ref(items)[::-1] if reverse else Ref(items)
    options: dict[str, Any] = {"dim": axis} if axis else {}
    if like.dtype == ir.DataType.STRING:
        return ops.stack_strings(elements, _empty_shape(like, axis), axis)
    if never_empty:
        return torch.stack(elements, **options)
    of = dtype(like.dtype or ir.DataType.FLOAT)
    return ops.stack(elements, _empty_shape(like, axis), **options, dtype=of, device=e.device)


def _empty_shape(like: ir.Value, axis: int) -> tuple[int, ...]:
    """The shape of what a loop that never runs has collected: a dimension nobody knows is 0."""
    known = [d or 0 for d in row_shape(like) or ()]
    known.insert(axis if axis >= 0 else axis + len(known) + 1, 0)
    return tuple(known)


def refuse_depth(e: Emitter) -> None:
    """Python itself refuses to compile loops inside more than 20 others."""
    depth, block = 0, e.block
    while block.parent is not None:
        depth, block = depth + 1, block.parent
    if depth >= DEEPEST:
        raise UnsupportedError(f"{e.node.op_type}: it is nested in {depth} others, and Python allows {DEEPEST} at most")


@rule("Loop")
def loop(e: Emitter, trip_count: Expr | None = None, condition: Expr | None = None, *initial: Arg, p: Repeated) -> Any:
    with e.together():
        return _loop(e, trip_count, condition, initial, p.body)


def _loop(
    e: Emitter, trip_count: Expr | None, condition: Expr | None, initial: Sequence[Arg], body: ir.Graph
) -> list[Any]:
    refuse_depth(e)
    count, results = len(initial), body.outputs[1:]
    counted = counters(e, body.inputs[2:], initial, results)
    states = carry(e, body.inputs[2:], initial, results, counted)
    lists = collect(e, count, results[count:], [])
    limit = None if trip_count is None else integer(e, trip_count, "count")
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
            e.do(Ref(items).append(outputs[i]))
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
        trips = limit if start is True else 0 if start is False else Conditional(start, limit, 0)
        e.compound(("for", Name("range")(trips), block), target=index)
    never_empty = start is True and not isinstance(limit, Expr) and (limit is None or limit > 0)
    finals: list[Any] = [Ref(states[i]) if i in states else initial[i] for i in range(count)]
    return finals + [
        stacked(e, lists[i], results[i], never_empty=never_empty) if i in lists else None
        for i in range(count, len(results))
    ]


def _leave_unless(e: Emitter, test: Any) -> None:
    if not isinstance(test, Expr):
        e.keyword("break")
        return
    with e.nested() as leave:
        e.keyword("break")
    e.compound(("if", Unary("not", test), leave))


@rule("Scan")
def scan(e: Emitter, *operands: Arg, p: Scan) -> Any:
    body, axes, backward = p.body, p.input_axes, p.input_directions
    count = len(operands) - p.num_scan_inputs
    scanned = operands[count:]

    def item(x: Expr, i: int, place: Expr) -> Expr:
        found = subscript(x, {axes[i]: -1 - place if backward[i] else place}, e.rank(x))
        assert found is not None
        return found

    whole: Expr | None = None
    if p.num_scan_inputs == 1 and not is_string(e, scanned[0]):
        whole = scanned[0].unbind(axes[0])
        whole = Name("reversed")(whole) if backward[0] else whole
    size = e.dim(scanned[0], axes[0])
    with e.together():
        states = carry(e, body.inputs[:count], operands[:count], body.outputs)
        lists = collect(e, count, body.outputs[count:], [])
        each(e, body, body.inputs[count:], whole, scanned, item, size, states, lists)
    shape = e.shape(scanned[0])
    never_empty = shape is not None and bool(shape[axes[0]])
    finals: list[Any] = [Ref(states[i]) if i in states else operands[i] for i in range(count)]
    ways = zip(body.outputs[count:], p.output_axes, p.output_directions, strict=True)
    return finals + [
        stacked(e, lists[i], result, axis=axis, reverse=bool(back), never_empty=never_empty) if i in lists else None
        for i, (result, axis, back) in enumerate(ways, count)
    ]


@rule("SequenceMap")
def sequence_map(e: Emitter, *operands: Arg, p: Repeated) -> Any:
    body = p.body
    sequences, items, unchanged = mapped(e, operands, body)
    if None not in unchanged:
        return unchanged
    whole = sequences[0] if len(sequences) == 1 else None
    size = Name("len")(sequences[0])
    with e.together():
        lists = collect(e, 0, body.outputs, [])
        each(e, body, items, whole, sequences, lambda x, i, place: x[place], size, {}, lists)
    return [Ref(lists[i]) if i in lists else None for i in range(len(body.outputs))]


def each(
    e: Emitter,
    body: ir.Graph,
    formals: Sequence[ir.Value],
    whole: Expr | None,
    operands: Sequence[Arg],
    item: Callable[[Expr, int, Expr], Expr],
    size: Any,
    states: dict[int, Var],
    lists: dict[int, Var],
) -> None:
    """A `for` over the elements of operands: over `whole` itself, or over an index where there are several operands."""
    refuse_depth(e)
    target = e.fresh("i", "host")
    with e.nested() as block:
        if whole is not None:
            target = variable(e, formals[0])
            e.bind(formals[0], target)
        else:
            for i, (formal, operand) in enumerate(zip(formals, operands, strict=True)):
                var = Var(hint_of(formal), kind_of(formal))
                e.assign(var, item(operand, i, Ref(target)))
                e.bind(formal, var)
        outputs = e.graph(body)
        for i, items in lists.items():
            e.do(Ref(items).append(outputs[i]))
        assign_together(e, {var: outputs[i] for i, var in states.items()})
    e.compound(("for", whole if whole is not None else Name("range")(size), block), target=target)
