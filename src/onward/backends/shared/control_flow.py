"""If, Loop, Scan and SequenceMap, as far as every backend says them alike."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import condition_of, give_types, passed
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, Ref, Var, lift
from onward.graph.infer_bodies import TAKEN
from onward.graph.values import array


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
