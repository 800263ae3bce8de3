"""Scans of JAX that are recurrent layers: cells of Flax, Equinox and Haiku, or written by hand, as one node each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from onward.frontends.jax.writer import Writer
from onward.frontends.recurrence.affine import Reader, Unread, source
from onward.frontends.recurrence.cells import Cells
from onward.frontends.recurrence.layer import Series, cleared
from onward.graph.build import Tensor


def recurrent(
    op: Writer, body: ir.Graph, initial: Sequence[Tensor], rows: Sequence[Tensor], backwards: bool
) -> list[Tensor] | None:
    """The results of a Scan, states and then what each round gives out, if it is a recurrent layer; else None.

    `initial` are the states before the first round, `rows` what it goes through; the inputs of `body` stand for them.
    """
    try:
        results = _results(op, body, initial, rows, backwards)
    except Unread:
        return None
    cleared(body)
    return results


def _results(
    op: Writer, body: ir.Graph, initial: Sequence[Tensor], rows: Sequence[Tensor], backwards: bool
) -> list[Tensor]:
    states, steps = body.inputs[: len(initial)], body.inputs[len(initial) :]
    outer = dict(zip(states, initial, strict=True))
    series = {step: row.value for step, row in zip(steps, rows, strict=True)}
    left = [source(value) for value in body.outputs]
    new = {state: value for state, value in zip(states, left, strict=False) if value is not state}
    kept = [state for state in new if any(node.op_type != "Identity" for node, _ in state.uses())]
    if not kept or any(state.dtype != ir.DataType.FLOAT for state in new):
        raise Unread
    single = op.tensor(kept[0]).rank == 1
    reader = Reader(op, body, series.get, single)
    layer, order, x = Cells(reader).layer(kept, new)
    shown = left[len(states) :]
    if set(new) != set(order) or any(value is not new[order[0]] for value in shown):
        raise Unread
    sizes = (op.tensor(x).dims or [])[1:-1]
    if any((op.tensor(state).dims or [])[:-1] != sizes for state in order):  # one is the same for a whole batch
        raise Unread
    first = [] if all(reader.zero(outer[state].value) for state in order) else [outer[state] for state in order]
    batch = [0] if single else []
    made = Series(
        op,
        replace(layer, backwards=backwards),
        op.unsqueeze(op.tensor(x), [1] * single),
        states=[op.unsqueeze(state, batch) for state in first],
    )
    last = dict(zip(order, (op.squeeze(state, batch) for state in made.last), strict=True))
    return [last.get(state, outer[state]) for state in states] + [op.squeeze(made.steps(), [1] * single)] * len(shown)
