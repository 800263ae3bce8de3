"""If, Loop, Scan and SequenceMap: functions within, handed to `lax.cond`, `lax.scan` and `lax.while_loop`.

These compile what they are given, so that shapes and types have to stay. Where nothing says so, or where a number has
to be known when the function runs, a helper runs the functions as Python does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import ENDLESS, condition_of, hint_of, kind_of, row_shape
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Binary, Expr, Helper, Name, Ref, Var, lift, variables, walk
from onward.backends.emit.helpers import load_runtime
from onward.backends.emit.statements import Assign, Block, expressions, read
from onward.backends.jax.numbers import scalar
from onward.backends.jax.target import dtype, jnp, lax, ops, rule
from onward.backends.shared.control_flow import changing, if_now, mapped, plain, test_of
from onward.backends.shared.control_flow_trips import runs_to_the_end
from onward.graph.origin import origin
from onward.graph.values import array
from onward.spec.control_flow import If, Repeated, Scan

RUNTIME = "onward.backends.jax.runtime"


@cache
def _of_values() -> frozenset[str]:
    """Helpers that ask for the numbers of a tensor, which functions that are compiled cannot tell."""
    definitions = load_runtime(RUNTIME).definitions
    found, before = {"known", "branch", "loop"}, 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, definition in definitions.items() if definition.needs & found}
    return frozenset(found)


def _asks_for_values(*blocks: Block) -> bool:
    parts = (part for block in blocks for s in block.body for expr in expressions(s) for part in walk(expr))
    return any(isinstance(part, Helper) and part._name in _of_values() for part in parts)


def _dims(value: ir.Value) -> tuple[int | str, ...] | None:
    """The shape where each size is a number or a name."""
    if value.shape is None or not isinstance(value.type, ir.TensorType) or value.dtype == ir.DataType.STRING:
        return None
    dims = [d if isinstance(d, int) else d.value for d in value.shape]
    return None if None in dims else tuple(d for d in dims if d is not None)


def _are_alike(*values: ir.Value) -> bool:
    """Whether tensors surely have one shape and one type."""
    first = _dims(values[0])
    return first is not None and all(_dims(v) == first and v.dtype == values[0].dtype for v in values[1:])


def _bound(e: Emitter, call: Expr, wanted: Sequence[tuple[ir.Value, ...]]) -> list[Expr]:
    """Variables for the results of a call, each named after the first of some values that has a name of its own."""
    targets = [Var(hint_of(*values), kind_of(values[0])) for values in wanted]
    if len(targets) == 1:
        return [e.let(call[0], targets[0].hint, targets[0].kind)]
    if targets:
        e.assign(targets, call)
    return [Ref(target) for target in targets]


def _scalar(e: Emitter, x: Any) -> Any:
    """A tensor of one element without its axis."""
    return x if not isinstance(x, Arg) or e.rank(x) == 0 else x.reshape(())


# If


@rule("If")
def if_(e: Emitter, condition: Expr, p: If) -> Any:
    test = test_of(e, condition)
    if not isinstance(test, Expr):
        return tuple(e.graph(p.then_branch if test else p.else_branch))
    if e.host(condition) is not None:
        return if_now(e, test, p)
    used = [i for i in range(len(e.node.outputs)) if e.used(i)]
    functions, blocks = [], []
    for hint, branch in (("yes", p.then_branch), ("no", p.else_branch)):
        with e.nested() as block:
            outputs = e.graph(branch)
        functions.append(e.define(hint, [], block, [plain(outputs[i]) for i in used]))
        blocks.append(block)
    ends = [(p.then_branch.outputs[i], p.else_branch.outputs[i]) for i in used]
    if all(_are_alike(*pair) for pair in ends) and e.rank(condition) == 0 and not _asks_for_values(*blocks):
        call = lax.cond(test, *functions)
    else:
        call = ops.branch(test, *functions, str(origin(e.node)))
    names = [(e.node.outputs[i], *pair) for i, pair in zip(used, ends, strict=True)]
    found = _bound(e, call, names) if len(used) > 1 else [e.let(call, hint_of(*names[0]), kind_of(names[0][0]))]
    merged = dict(zip(used, found, strict=True))
    return [merged.get(i) for i in range(len(e.node.outputs))]


# Loops


def _carried(
    e: Emitter, formals: Sequence[ir.Value], initial: Sequence[Arg], results: Sequence[ir.Value]
) -> dict[int, Var]:
    """A variable of the body for each part of the state that changes, by number."""
    states: dict[int, Var] = {}
    for i, formal, _ in changing(e, formals, initial, results):
        states[i] = Var(hint_of(formal, results[i], *e.node.outputs[i : i + 1]), kind_of(formal))
        e.bind(formal, states[i])
    return states


def _is_read(var: Var, block: Block, results: Sequence[Expr]) -> bool:
    mentions = (v for statement in block.body for v in read(statement))
    return var in mentions or any(var in variables(result) for result in results)


def _together(items: Sequence[Any]) -> Any:
    """What `lax` takes as one argument: a tuple, or the only item."""
    return items[0] if len(items) == 1 else tuple(items) or None


def _apart(block: Block, whole: Var, parts: Sequence[Var]) -> Var:
    """The parameter for parts that are handed over together, which the function takes apart in its first line."""
    if len(parts) == 1:
        return parts[0]
    if parts:
        block.body.insert(0, Assign(list(parts), Ref(whole)))
    return whole


def _scanned(
    e: Emitter,
    block: Block,
    states: Mapping[int, Var],
    start: Sequence[Any],
    items: Sequence[Var],
    following: Sequence[Expr],
    rows: Sequence[Expr],
    names: Sequence[tuple[ir.Value, ...]],
    *xs: Any,
    **options: Any,
) -> list[Expr]:
    """`lax.scan`: the last state, and what each trip gave, stacked."""
    taken = _apart(block, Var("items", "object"), items)
    carry = _apart(block, Var("state", "object"), list(states.values()))
    body = e.define("body", [carry, taken], block, [lift(_together(following)), lift(_together(rows))])
    call = lax.scan(body, _together(start), *xs, **options)
    sides = [names[: len(states)], names[len(states) :]]
    wholes = [
        Var(hint_of(*side[0]), kind_of(side[0][0])) if len(side) == 1 else Var(hint, "object")
        for hint, side in zip(("state", "rows"), sides, strict=True)
    ]
    e.assign(wholes, call)
    found: list[Expr] = []
    for whole, side in zip(wholes, sides, strict=True):
        found += [Ref(whole)] if len(side) == 1 else _bound(e, Ref(whole), side)
    return found


def _repeated(
    e: Emitter,
    block: Block,
    states: Mapping[int, Var],
    start: Sequence[Any],
    index: Var,
    following: Sequence[Expr],
    running: Any,
    test: Any,
    limit: Any,
    names: Sequence[tuple[ir.Value, ...]],
) -> list[Expr]:
    """`lax.while_loop`: the last state. What decides how long it runs is carried before it."""
    counts = limit is not None or _is_read(index, block, following)
    asks = test is not True or running is not True
    parts = [*([index] if counts else []), *([Var("running", "host")] if asks else []), *states.values()]
    seen = [Var(part.hint, part.kind) for part in parts]
    with e.nested() as head:
        conditions: list[Expr] = [Ref(seen[int(counts)])] if asks else []
        conditions += [Binary("<", Ref(seen[0]), limit)] if limit is not None else []
        goes_on = conditions[0] if len(conditions) == 1 else conditions[0] & conditions[1] if conditions else lift(True)
    whole = _apart(head, Var("state", "object"), seen)
    check = e.define("goes_on", [whole], head, [goes_on])
    whole = _apart(block, Var("state", "object"), parts)
    values = [*([Ref(index) + 1] if counts else []), *([lift(test)] if asks else []), *following]
    body = e.define("body", [whole], block, values if len(values) > 1 else [lift(_together(values))])
    first = [*([0] if counts else []), *([running] if asks else []), *start]
    call = lax.while_loop(check, body, _together(first))
    targets: list[Any] = [None] * (len(parts) - len(states))
    targets += [Var(hint_of(*values), kind_of(values[0])) for values in names]
    if targets:
        e.assign(targets, call)
    return [Ref(target) for target in targets if target is not None]


def _looped(
    e: Emitter,
    block: Block,
    states: Mapping[int, Var],
    start: Sequence[Any],
    index: Var,
    results: Sequence[Expr],
    used: Sequence[ir.Value],
    **options: Any,
) -> Expr:
    """A loop of Python, or of `lax` where that turns out to be possible."""
    body = e.define("body", [index, *states.values()], block, results if len(results) > 1 else [lift((*results,))])
    if used:
        options["rows"] = [(_empty_shape(row), _dtype(row)) for row in used]
    if _asks_for_values(block):
        options["unrolled"] = True
    return ops.loop(body, list(start), str(origin(e.node)), **options)


def _empty_shape(row: ir.Value) -> tuple[int, ...]:
    """The shape of what a loop that never runs has collected: a dimension nobody knows is 0."""
    return (0, *(d or 0 for d in row_shape(row) or ()))


def _dtype(row: ir.Value) -> Expr:
    return Name("object") if row.dtype == ir.DataType.STRING else dtype(row.dtype or ir.DataType.FLOAT)


@rule("Loop")
def loop(e: Emitter, trip_count: Expr | None = None, condition: Expr | None = None, *initial: Arg, p: Repeated) -> Any:
    body, results, formals = p.body, p.body.outputs[1:], p.body.inputs[2:]
    states = _carried(e, formals, initial, results)
    used = [i for i in range(len(initial), len(results)) if e.used(i)]
    index = Var("i", "host")
    e.bind(body.inputs[0], index)
    e.bind_host(body.inputs[1], array([True], ()))  # the body runs only while this holds
    limit = None if trip_count is None else e.scalar(trip_count, 1)
    is_counted = limit is not None
    if trip_count is not None and limit is None:
        limit = scalar(e, trip_count, "count") if used else _scalar(e, trip_count)
    if not isinstance(limit, Expr) and limit is not None and limit >= ENDLESS:
        limit = None
    running = _scalar(e, condition_of(e, condition))
    with e.nested() as block:
        proceed, *outputs = e.graph(body)
        test = _scalar(e, condition_of(e, proceed))
        test = plain(test) if isinstance(test, Expr) else test
    if runs_to_the_end(e, e.node, body):
        running = test = True
    start = [initial[i] for i in states]
    following, rows = ([plain(outputs[i]) for i in numbers] for numbers in (states, used))
    names = [(e.node.outputs[i], results[i]) for i in (*states, *used)]
    is_fixed = all(_are_alike(initial[i]._value, formals[i], results[i]) for i in states)
    is_fixed = is_fixed and not _asks_for_values(block)
    if is_fixed and is_counted and limit is not None and running is True and test is True:
        xs = [jnp.arange(limit)] if isinstance(limit, Expr) or _is_read(index, block, [*following, *rows]) else []
        length = {} if xs else {"length": max(limit, 0)}
        found = _scanned(e, block, states, start, [index], following, rows, names, *xs, **length)
    elif is_fixed and not used:
        found = _repeated(e, block, states, start, index, following, running, test, limit, names)
    else:
        options: dict[str, Any] = {} if limit is None else {"count": limit}
        options |= {} if running is True else {"running": running}
        options |= {} if test is True else {"stops": True}
        flags = [] if test is True else [lift(test)]
        collected = [results[i] for i in used]
        call = _looped(e, block, states, start, index, [*flags, *following, *rows], collected, **options)
        found = _bound(e, call, names)
    by_number = dict(zip((*states, *used), found, strict=True))
    return [by_number.get(i, initial[i] if i < len(initial) else None) for i in range(len(results))]


@rule("Scan")
def scan(e: Emitter, *operands: Arg, p: Scan) -> Any:
    body, results = p.body, p.body.outputs
    count = len(operands) - p.num_scan_inputs
    initial, scanned = operands[:count], operands[count:]
    formals, elements = body.inputs[:count], body.inputs[count:]
    states = _carried(e, formals, initial, results)
    used = [i for i in range(count, len(results)) if e.used(i)]
    items = [Var(hint_of(formal), kind_of(formal)) for formal in elements]
    for formal, item in zip(elements, items, strict=True):
        e.bind(formal, item)
    with e.nested() as block:
        outputs = e.graph(body)
    start = [initial[i] for i in states]
    following, rows = ([plain(outputs[i]) for i in numbers] for numbers in (states, used))
    names = [(e.node.outputs[i], results[i]) for i in (*states, *used)]
    is_fixed = all(_are_alike(initial[i]._value, formals[i], results[i]) for i in states)
    is_text = any(v.dtype == ir.DataType.STRING for v in (*elements, *(results[i] for i in used)))
    ways = [p.output_directions[i - count] for i in used]
    is_backward = all(p.input_directions) and all(ways)
    whole = [_first(x, axis) for x, axis in zip(scanned, p.input_axes, strict=True)]
    if not is_backward:
        whole = [x[::-1] if back else x for x, back in zip(whole, p.input_directions, strict=True)]
    if is_fixed and not is_text and not _asks_for_values(block):
        option = {"reverse": True} if is_backward else {}
        found = _scanned(e, block, states, start, items, following, rows, names, _together(whole), **option)
    else:
        index, size = Var("i", "host"), e.dim(scanned[0], p.input_axes[0])
        place = size - 1 - Ref(index) if is_backward else Ref(index)
        block.body[:0] = [Assign([item], x[place]) for item, x in zip(items, whole, strict=True)]
        collected = [results[i] for i in used]
        call = _looped(e, block, states, start, index, [*following, *rows], collected, count=size)
        found = _bound(e, call, names)
        ways = [bool(back) for back in ways]
        is_backward = False
    by_number: dict[int, Any] = dict(zip((*states, *used), found, strict=True))
    for i, back in zip(used, ways, strict=True):
        axis = p.output_axes[i - count]
        by_number[i] = by_number[i][::-1] if back and not is_backward else by_number[i]
        by_number[i] = by_number[i] if axis == 0 else jnp.moveaxis(by_number[i], 0, axis)
    return [by_number.get(i, initial[i] if i < count else None) for i in range(len(results))]


def _first(x: Expr, axis: int) -> Expr:
    """With an axis as the first one."""
    return x if axis == 0 else jnp.moveaxis(x, axis, 0)


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
    function = e.define("body", parameters, block, [lift((*(plain(outputs[i]) for i in used),))])
    found = _bound(e, ops.map_sequences(function, sequences, len(used)), [(e.node.outputs[i],) for i in used])
    for i, expr in zip(used, found, strict=True):
        results[i] = expr
    return results
