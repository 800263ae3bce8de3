"""If, Loop, Scan and SequenceMap: functions within, handed to `tf.cond`, `tf.while_loop` or a plain loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import ENDLESS, condition_of, counters, hint_of, kind_of, row_shape
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, Ref, Var
from onward.backends.shared.control_flow import bind_index, changing, mapped, plain, test_of
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.target import dtype, ops, rule, tf
from onward.backends.tensorflow.traced_values import CARRIED, is_open, kind_of_branches, kind_of_type
from onward.spec.control_flow import If, Repeated, Scan


def _bound(e: Emitter, call: Expr, wanted: Sequence[tuple[ir.Value, ...]]) -> list[Expr]:
    """Variables for the results of a call, each named after the first of some values that has a name of its own."""
    targets = [Var(hint_of(*values), kind_of(values[0])) for values in wanted]
    if targets:
        e.assign(targets, call if len(targets) > 1 else call[0])
    return [Ref(target) for target in targets]


# If


@rule("If")
def if_(e: Emitter, condition: Expr, p: If) -> Any:
    then_branch, else_branch = p.then_branch, p.else_branch
    test = test_of(e, condition)
    if not isinstance(test, Expr):
        return tuple(e.graph(then_branch if test else else_branch))
    used = [i for i in range(len(e.node.outputs)) if e.used(i)]
    branches = []
    for hint, branch in (("yes", then_branch), ("no", else_branch)):
        with e.nested() as block:
            outputs = e.graph(branch)
        branches.append(e.define(hint, [], block, [plain(outputs[i]) for i in used]))
    is_scalar = isinstance(test, Arg) and e.rank(test) == 0
    ends = zip(then_branch.outputs, else_branch.outputs, e.node.outputs, strict=True)
    kinds = [kind_of_branches(yes, no, result.type) for yes, no, result in ends]
    kinds = [kinds[i] for i in used]
    if any(kind is not None for kind in kinds):
        call = ops.branch(test, *branches, kinds if len(used) > 1 else kinds[0])
    else:
        call = tf.cond(test, *branches) if is_scalar else ops.branch(test, *branches)
    names = [(e.node.outputs[i], then_branch.outputs[i], else_branch.outputs[i]) for i in used]
    found = _bound(e, call, names) if len(used) > 1 else [e.let(call, hint_of(*names[0]), kind_of(names[0][0]))]
    merged = dict(zip(used, found, strict=True))
    return [merged.get(i) for i in range(len(e.node.outputs))]


# Loops


def _carried(
    e: Emitter,
    formals: Sequence[ir.Value],
    initial: Sequence[Arg],
    results: Sequence[ir.Value],
    counted: dict[int, int],
) -> dict[int, Var]:
    """A parameter of the body for each part of the state that changes, by number, but for those `counted`."""
    states: dict[int, Var] = {}
    for i, formal, _ in changing(e, formals, initial, results, counted):
        states[i] = Var(hint_of(formal, results[i], *e.node.outputs[i : i + 1]), kind_of(formal))
        e.bind(formal, states[i])
        formal.meta[CARRIED] = True
    return states


def _shapes(formals: Sequence[ir.Value], initial: Sequence[Arg]) -> dict[str, Any]:
    """What is known of the shapes of a state in all trips; None for those that stay as they begin."""
    shapes: list[Any] = []
    for formal, start in zip(formals, initial, strict=True):
        dims = _dims(formal)
        kind = kind_of_type(formal.type)
        if kind is not None:
            shapes.append(kind)
        elif dims is not None and None not in dims and dims == _dims(start._value):
            shapes.append(None)
        elif dims is None:
            shapes.append(tf.TensorShape(None))
        else:
            shapes.append([d if isinstance(d, int) else None for d in dims])
    return {} if not any(s is not None for s in shapes) else {"shapes": shapes}


def _dims(value: ir.Value) -> list[int | str | None] | None:
    return None if value.shape is None else [d if isinstance(d, int) else d.value for d in value.shape]


def _rows(e: Emitter, results: Sequence[ir.Value], first: int) -> tuple[list[int], dict[str, Any]]:
    """Which outputs of the node from `first` on are collected and read, and the type of each."""
    used = [i for i in range(first, len(results)) if e.used(i)]
    specs = []
    for i in used:
        shape = row_shape(results[i])
        specs.append(
            tf.TensorSpec(None if shape is None else list(shape), dtype(results[i].dtype or ir.DataType.FLOAT))
        )
    return used, {"rows": specs} if used else {}


def _finals(
    e: Emitter, call: Expr, results: Sequence[ir.Value], initial: Sequence[Arg], states: dict[int, Var], used: list[int]
) -> list[Any]:
    """The outputs of the node: states, and rows, which follow each other in what a loop returns."""
    numbers = [*states, *used]
    outputs = e.node.outputs
    found = _bound(e, call, [(outputs[i], results[i]) for i in numbers])
    by_number = dict(zip(numbers, found, strict=True))
    for i in states:
        if isinstance(e.type(initial[i]), ir.OptionalType) and not isinstance(results[i].type, ir.OptionalType):
            by_number[i] = ops.element(by_number[i])
    return [by_number.get(i, initial[i] if i < len(initial) else None) for i in range(len(results))]


@rule("Loop")
def loop(e: Emitter, trip_count: Expr | None = None, condition: Expr | None = None, *initial: Arg, p: Repeated) -> Any:
    body, results, formals = p.body, p.body.outputs[1:], p.body.inputs[2:]
    counted = counters(e, formals, initial, results)
    states = _carried(e, formals, initial, results, counted)
    used, rows = _rows(e, results, len(initial))
    index = Var("i", "host")
    bind_index(e, index, body, counted)
    options: dict[str, Any] = {}
    limit = None if trip_count is None else scalar(e, trip_count)
    if isinstance(limit, Expr) or (limit is not None and limit < ENDLESS):
        options["count"] = limit
    start = condition_of(e, condition)
    if start is not True:
        options["running"] = start
    with e.nested() as block:
        proceed, *outputs = e.graph(body)
        test = condition_of(e, proceed)
    function = e.define(
        "body", [index, *states.values()], block, [test, *(plain(outputs[i]) for i in (*states, *used))]
    )
    options |= _shapes([formals[i] for i in states], [initial[i] for i in states]) | rows
    call = ops.loop(function, [initial[i] for i in states], **options)
    return _finals(e, call, results, initial, states, used)


@rule("Scan")
def scan(e: Emitter, *operands: Arg, p: Scan) -> Any:
    body, results = p.body, p.body.outputs
    count = len(operands) - p.num_scan_inputs
    initial, scanned = operands[:count], operands[count:]
    size = e.dim(scanned[0], p.input_axes[0])
    states = _carried(e, body.inputs[:count], initial, results, {})
    used, rows = _rows(e, results, count)
    index = Var("i", "host")
    with e.nested() as block:
        for k, (formal, x) in enumerate(zip(body.inputs[count:], scanned, strict=True)):
            part = Var(hint_of(formal), kind_of(formal))
            place = size - 1 - Ref(index) if p.input_directions[k] else Ref(index)
            e.assign(part, _part(x, p.input_axes[k], place))
            e.bind(formal, part)
        outputs = e.graph(body)
    function = e.define(
        "body", [index, *states.values()], block, [True, *(plain(outputs[i]) for i in (*states, *used))]
    )
    options = _shapes([body.inputs[i] for i in states], [initial[i] for i in states]) | rows
    call = ops.loop(function, [initial[i] for i in states], count=size, **options)
    finals = _finals(e, call, results, initial, states, used)
    for i in used:
        if p.output_directions[i - count]:
            finals[i] = tf.reverse(finals[i], [0])
        if p.output_axes[i - count]:
            finals[i] = ops.axis_moved(finals[i], p.output_axes[i - count])
    return finals


def _part(x: Expr, axis: int, place: Expr) -> Expr:
    """`x[:, place]`."""
    if axis >= 0:
        return x[(*[slice(None)] * axis, place)]
    return x[(..., place, *[slice(None)] * (-1 - axis))]


@rule("SequenceMap")
def sequence_map(e: Emitter, *operands: Arg, p: Repeated) -> Any:
    body = p.body
    sequences, items, unchanged = mapped(e, operands, body)
    results: list[Any] = list(unchanged)
    used = [i for i, known in enumerate(results) if known is None and e.used(i)]
    if not used:
        return results
    parameters = [Var(hint_of(formal), kind_of(formal)) for formal in items]
    for formal, parameter in zip(items, parameters, strict=True):
        e.bind(formal, parameter)
    with e.nested() as block:
        outputs = e.graph(body)
    function = e.define("body", parameters, block, [(*(plain(outputs[i]) for i in used),)])
    if any(map(is_open, sequences)):
        call = ops.map_open(function, sequences, [dtype(body.outputs[i].dtype or ir.DataType.FLOAT) for i in used])
    else:
        call = ops.map_sequences(function, sequences, len(used))
    found = _bound(e, call, [(e.node.outputs[i],) for i in used])
    for i, expr in zip(used, found, strict=True):
        results[i] = expr
    return results
