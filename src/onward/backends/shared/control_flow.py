"""If, Loop, Scan and SequenceMap, as far as every backend says them alike."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import condition_of, give_types, hint_of, kind_of, passed
from onward.backends.emit.emitter import Arg, Emitter, Hosted
from onward.backends.emit.expr import Expr, Ref, Var, lift, variables
from onward.backends.emit.statements import Block, read
from onward.graph.infer_bodies import TAKEN
from onward.graph.values import array
from onward.spec.control_flow import If


def plain(value: Any) -> Expr:
    return value._force() if isinstance(value, Arg) else lift(value)


def test_of(e: Emitter, condition: Expr) -> Any:
    """What an If asks: a Python bool if it is known now, otherwise the expression to test."""
    taken = e.node.meta.get(TAKEN)
    return condition_of(e, condition) if taken is None else taken


def changing(
    e: Emitter,
    formals: Sequence[ir.Value],
    initial: Sequence[Arg],
    results: Sequence[ir.Value],
    counted: Container[int] = (),
) -> Iterator[tuple[int, ir.Value, Arg]]:
    """The parts of a loop's state that change, but for those `counted`: number, input of the body, beginning."""
    give_types(formals, [a._value for a in initial])
    for i, (formal, start) in enumerate(zip(formals, initial, strict=True)):
        if i not in counted and results[i] is formal:
            e.bind_same(formal, start._value)
        elif i not in counted:
            yield i, formal, start


def bind_index(e: Emitter, index: Var, body: ir.Graph, counted: Mapping[int, int]) -> None:
    """Let the body of a Loop know the number of its trip, what counts like it, and that it is to run."""
    e.nonnegative.add(index)
    e.bind_host(body.inputs[0], array([Ref(index)], ()))
    for i, first in counted.items():
        e.bind_host(body.inputs[2 + i], array([Ref(index) + first if first else Ref(index)], ()))
    e.bind_host(body.inputs[1], array([True], ()))  # the body runs only while this holds


def mapped(e: Emitter, operands: Sequence[Arg], body: ir.Graph) -> tuple[list[Arg], list[ir.Value], list[Arg | None]]:
    """Of a SequenceMap: the sequences, the body's inputs for their elements, and outputs that are such a sequence."""
    sequences, items = [], []
    for operand, formal in zip(operands, body.inputs, strict=True):
        if isinstance(e.type(operand), ir.SequenceType):
            sequences.append(operand)
            items.append(formal)
        else:
            e.bind_same(formal, operand._value)
    given = map(passed, body.outputs)
    return sequences, items, [sequences[items.index(v)] if v in items else None for v in given]


def variable(e: Emitter, *values: ir.Value) -> Var:
    """A variable to be assigned in branches or loops, named after the first value that has a name of its own."""
    return e.fresh(hint_of(*values), kind_of(values[0]))


def if_(e: Emitter, condition: Expr, p: If) -> Any:
    """A branch where it is known which one is taken, else an `if` statement."""
    test = test_of(e, condition)
    if not isinstance(test, Expr):
        return tuple(e.graph(p.then_branch if test else p.else_branch))
    return if_now(e, test, p)


def if_now(e: Emitter, test: Expr, p: If) -> list[Any]:
    """An If as Python's own `if`, which gives Python numbers where both branches do."""
    used = [i for i in range(len(e.node.outputs)) if e.used(i)]
    blocks, results = [], []
    for branch in (p.then_branch, p.else_branch):
        with e.nested() as block:
            outputs = e.graph(branch)
            blocks.append(block)
            results.append(outputs)
    merged: list[Any] = [None] * len(e.node.outputs)
    for i in used:
        merged[i] = _merge(e, blocks, [outputs[i] for outputs in results], e.node.outputs[i])
    clauses: list[tuple[str, Any, Block]] = [("if", test, blocks[0])]
    if blocks[1].body:
        clauses.append(("else", None, blocks[1]))
    e.compound(*clauses)
    return merged


def _merge(e: Emitter, blocks: list[Block], outputs: list[Arg], target: ir.Value) -> Any:
    """One output of both branches: Python numbers if it is that in both, otherwise a variable assigned in each."""
    yes, no = (e.host(output) for output in outputs)
    if yes is not None and no is not None and yes.shape == no.shape and yes.size <= 8:
        items = []
        for pair in zip(yes.reshape(-1), no.reshape(-1), strict=True):
            if not any(isinstance(n, Expr) for n in pair) and pair[0] == pair[1]:
                items.append(pair[0])
                continue
            var = e.fresh("n", "host")
            for block, number in zip(blocks, pair, strict=True):
                _assign_in(e, block, var, number)
            items.append(Ref(var))
        return Hosted(array(items, yes.shape))
    var = variable(e, target, *(o._value for o in outputs))
    for block, output in zip(blocks, outputs, strict=True):
        _assign_in(e, block, var, output)
    return Ref(var)


def _assign_in(e: Emitter, block: Block, var: Var, value: Any) -> None:
    outer, e.block = e.block, block
    e.assign(var, value)
    e.block = outer


def assign_together(e: Emitter, following: dict[Var, Any]) -> None:
    """Assign the next state: line by line, or at once what needs each other's old state."""
    pending = {target: plain(value) for target, value in following.items()}
    pending = {t: v for t, v in pending.items() if not (isinstance(v, Ref) and v._var is t)}
    reads = {target: set(variables(value)) for target, value in pending.items()}
    while pending:
        free = next((t for t in pending if not any(t in reads[other] for other in pending if other is not t)), None)
        if free is None:
            e.assign(list(pending), tuple(pending.values()))
            return
        e.assign(free, pending.pop(free))


def carry(
    e: Emitter,
    formals: Sequence[ir.Value],
    initial: Sequence[Arg],
    results: Sequence[ir.Value],
    counted: Container[int] = (),
) -> dict[int, Var]:
    """Bind the state of a loop: a variable for each part that changes, by number, but for those `counted`."""
    states: dict[int, Var] = {}
    for i, formal, start in changing(e, formals, initial, results, counted):
        states[i] = variable(e, formal, results[i], *e.node.outputs[i : i + 1])
        e.assign(states[i], start)
        e.bind(formal, states[i])
    return states


def collect(e: Emitter, count: int, results: Sequence[ir.Value], empty: Any) -> dict[int, Var]:
    """What collects each output of the current node from `count` on that is read, by number: `empty` at first."""
    found = {}
    for i, result in enumerate(results, count):
        if e.used(i):
            found[i] = e.fresh(f"{hint_of(result, e.node.outputs[i]) or 'item'}_list", "object")
            e.assign(found[i], empty)
    return found


def is_read(var: Var, block: Block, outputs: Sequence[Arg]) -> bool:
    mentions = (v for statement in block.body for v in read(statement))
    return var in mentions or any(var in variables(output) for output in outputs)
