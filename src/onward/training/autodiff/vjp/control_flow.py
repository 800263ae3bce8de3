"""Gradients of If, Loop and Scan.

A branch is run again inside the gradient's If. The rounds of a loop are walked backwards by a Scan over the states that
each began with, which the loop is made to give out; each is run again and differentiated. So the gradient consists of
the same three ops, and can be differentiated like them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.graph.rewriter import put
from onward.graph.scan import give
from onward.graph.walk import all_graphs
from onward.spec.control_flow import If, Repeated, Scan
from onward.training.autodiff.quantised_values import is_narrow
from onward.training.autodiff.reverse import Context, captured, dependents_of, reads, several_gradients
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.elementwise import constant_of


@vjp("If", of_levels=True)
def if_(c: Context, g: Tensor | None, condition: Tensor, p: If) -> Gradients:
    branches = (p.then_branch, p.else_branch)
    given = {i: slope for i in range(len(c.node.outputs)) if (slope := c.gradient(i)) is not None}
    wrt = [value for value in dict.fromkeys(v for b in branches for v in captured(b)) if c.wants(value)]
    refuse_sequences(c, [*wrt, *(c.node.outputs[i] for i in given)])
    refuse_levels(c, [*wrt, *(c.node.outputs[i] for i in given)])
    slopes = [_branch(c.op, branch, given, wrt) for branch in branches]
    found = c.op.many("If", len(wrt), condition, then_branch=slopes[0], else_branch=slopes[1])
    for value, gradient in zip(wrt, found, strict=True):
        c.capture(value, gradient)
    return None


def _branch(op: Builder, branch: ir.Graph, given: dict[int, Tensor], wrt: Sequence[ir.Value]) -> ir.Graph:
    """A branch that gives the gradients of what it captures."""
    graph = copied(op, branch)
    with op.inside(graph):
        ends = [(graph.outputs[i], _shaped(slope, op.tensor(graph.outputs[i]))) for i, slope in given.items()]
        found = several_gradients(op, ends, wrt)
        give(op, graph, [gradient or op.zeros_like(op.tensor(v)) for v, gradient in zip(wrt, found, strict=True)])
    return graph


def _shaped(slope: Tensor, like: Tensor) -> Tensor:
    """A gradient of a result, whose shape one branch may know better than both."""
    return slope if slope.dims == like.dims else slope.op.reshape_like(slope, like)


@dataclass(frozen=True)
class Row:
    """A tensor of which each round takes a slice."""

    tensor: Tensor
    axis: int = 0
    direction: int = 0


@vjp("Loop", of_levels=True)
def loop(
    c: Context, g: Tensor | None, trips: Tensor | None, condition: Tensor | None, *states: Tensor, p: Repeated
) -> Gradients:
    made = [(0, 0)] * (len(p.body.outputs) - 1 - len(states))
    found, _ = _Rounds(c, p.body, states, [], made, head=2, flags=1).gradients()
    return [None, None, *found]


@vjp("Scan", of_levels=True)
def scan(c: Context, g: Tensor | None, *inputs: Tensor, p: Scan) -> Gradients:
    split = len(inputs) - p.num_scan_inputs
    ways = zip(inputs[split:], p.input_axes, p.input_directions, strict=True)
    rows = [Row(tensor, axis, direction) for tensor, axis, direction in ways]
    made = list(zip(p.output_axes, p.output_directions, strict=True))
    found, taken = _Rounds(c, p.body, inputs[:split], rows, made, head=0, flags=0).gradients()
    return [*found, *taken]


class _Rounds:
    """A body that is run many times. Inputs: `head` others, states, rows. Outputs: `flags` others, states, rows.

    Of the rows that it makes, `made` has axis and direction.
    """

    def __init__(
        self,
        c: Context,
        body: ir.Graph,
        states: Sequence[Tensor],
        rows: Sequence[Row],
        made: Sequence[tuple[int, int]],
        *,
        head: int,
        flags: int,
    ) -> None:
        self.c, self.op, self.body, self.states, self.rows, self.made = c, c.op, body, states, rows, made
        self.head, self.flags = head, flags
        self.captured = [value for value in captured(body) if c.wants(value)]
        self.first_row = head + len(states)
        self.wanted_rows = [i for i, row in enumerate(rows) if c.wants(row.tensor.value)]
        self.wanted_states = sorted(self._wanted_states() & self._needed_states())
        refuse_sequences(c, [*body.inputs, *body.outputs, *self.captured])
        made_here = [output for i, output in enumerate(c.node.outputs) if c.gradient(i) is not None]
        carried = [body.inputs[head + i] for i in self.wanted_states]
        refuse_levels(c, [*made_here, *carried, *self.captured, *(rows[i].tensor.value for i in self.wanted_rows)])

    def _needed_states(self) -> set[int]:
        """States that something depends on that has a gradient, after any number of rounds."""
        made = [i for i in range(len(self.states), len(self.states) + len(self.made)) if self.c.gradient(i) is not None]
        needed = {i for i in range(len(self.states)) if self.c.gradient(i) is not None}
        while True:
            values = {self.body.outputs[self.flags + i] for i in (*needed, *made)}
            for node in reversed(self.body):
                if not values.isdisjoint(node.outputs):
                    values.update(reads(node))
            more = needed | {i for i in range(len(self.states)) if self.body.inputs[self.head + i] in values}
            if more == needed:
                return needed
            needed = more

    def _wanted_states(self) -> set[int]:
        """States that depend on what derivatives are taken with respect to, after any number of rounds."""
        start = [*self.captured, *(self.body.inputs[self.first_row + i] for i in self.wanted_rows)]
        wanted = {i for i, state in enumerate(self.states) if self.c.wants(state.value)}
        while True:
            reached, _ = dependents_of(self.body, [*start, *(self.body.inputs[self.head + i] for i in wanted)])
            after = self.body.outputs[self.flags : self.flags + len(self.states)]
            more = wanted | {i for i, value in enumerate(after) if value in reached}
            if more == wanted:
                return wanted
            wanted = more

    def gradients(self) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """The gradients of the initial states and of the rows; those of what is captured are given to the context."""
        c, op = self.c, self.op
        graph = copied(op, self.body)
        inputs = list(graph.inputs)
        given = [(i, slope) for i in range(len(self.made)) if (slope := c.gradient(len(self.states) + i))]
        wrt = [*(inputs[self.head + i] for i in self.wanted_states), *self.captured]
        wrt += [inputs[self.first_row + i] for i in self.wanted_rows]
        after = [op.input_like(graph.outputs[self.flags + i]) for i in self.wanted_states]
        outputs = [graph.outputs[self.flags + len(self.states) + i] for i, _ in given]
        slopes = [op.input_like(value) for value in outputs]
        with op.inside(graph):
            ends = [
                (graph.outputs[self.flags + i], op.tensor(value))
                for i, value in zip(self.wanted_states, after, strict=True)
            ]
            ends += [(value, op.tensor(slope)) for value, slope in zip(outputs, slopes, strict=True)]
            found = several_gradients(op, ends, wrt)
            split, end = len(self.wanted_states), len(self.wanted_states) + len(self.captured)
            # a state that the body does not read may begin in another shape than it has later
            carried = [f or op.zeros_like(op.tensor(v)) for f, v in zip(found[:split], after, strict=True)]
            captures = [(v, f) for v, f in zip(self.captured, found[split:end], strict=True) if f]
            taken = [(i, f) for i, f in zip(self.wanted_rows, found[end:], strict=True) if f]
            sums = [op.input_like(value) for value, _ in captures]
            carried += [op.tensor(total) + f for total, (_, f) in zip(sums, captures, strict=True)]
            give(op, graph, [*carried, *(f for _, f in taken)])
        scanned = self._needed(graph, inputs)
        graph.inputs[:] = [*after, *sums, *scanned, *slopes]
        rows = [*scanned.values(), *(Row(slope, *self.made[i]) for i, slope in given)]
        start = [_ranked_as(value, c.gradient_or_zero(i)) for i, value in zip(self.wanted_states, after, strict=True)]
        start += [op.zeros_like(op.tensor(value)) for value, _ in captures]
        backwards: dict[str, Any] = {
            "body": graph,
            "num_scan_inputs": len(rows),
            "scan_input_axes": [row.axis for row in rows],
            "scan_input_directions": [1 - row.direction for row in rows],
            "scan_output_axes": [self.rows[i].axis for i, _ in taken] or None,
            "scan_output_directions": [1 - self.rows[i].direction for i, _ in taken] or None,
        }
        feeds = [*start, *(row.tensor for row in rows)]
        if self.head and not self._runs_surely():
            results = self._unless_empty(rows[0].tensor, start, feeds, backwards)
        else:
            results = op.many("Scan", len(graph.outputs), *feeds, **backwards)
        for (value, _), gradient in zip(captures, results[split:], strict=False):
            c.capture(value, gradient)
        of_states = dict(zip(self.wanted_states, results, strict=False))
        of_rows = dict(zip((i for i, _ in taken), results[split + len(captures) :], strict=True))
        return [of_states.get(i) for i in range(len(self.states))], [of_rows.get(i) for i in range(len(self.rows))]

    def _runs_surely(self) -> bool:
        """Whether a Loop has a first round, as far as that is known."""
        return all(
            value is None
            or ((known := constant_of(self.op.tensor(value))) is not None and bool(known.astype(int).min() > 0))
            for value in self.c.node.inputs[:2]
        )

    def _unless_empty(
        self, counter: Tensor, start: Sequence[Tensor], inputs: Sequence[Tensor], backwards: dict[str, Any]
    ) -> list[Tensor]:
        """A Scan of no rounds, which ONNX Runtime refuses, leaves the states as they are."""
        op = self.op
        branches = [ir.Graph([], [], nodes=[], name=op.names.node(name)) for name in ("rounds", "no_rounds")]
        with op.inside(branches[0]):
            give(op, branches[0], op.many("Scan", len(start), *inputs, **backwards))
        with op.inside(branches[1]):
            give(op, branches[1], start)
        condition = op.Size(counter) > op.index(0)
        return op.many("If", len(start), condition, then_branch=branches[0], else_branch=branches[1])

    def _needed(self, graph: ir.Graph, inputs: Sequence[ir.Value]) -> dict[ir.Value, Row]:
        """What the rounds have to be given to be run again: by the inputs of the copy, as far as they are in use.

        One is always given, so that the number of rounds is known.
        """
        remove_unused(graph)
        if self.head:
            inputs[1].replace_all_uses_with(self.op.constant(np.asarray(True)).value, replace_graph_outputs=True)
        counter = 0 if self.head else self.first_row
        return {
            value: self.rows[i - self.first_row] if i >= self.first_row else Row(self._kept(self.body.inputs[i]))
            for i, value in enumerate(inputs)
            if value.uses() or i == counter
        }

    def _kept(self, value: ir.Value) -> Tensor:
        """What an input of the body is in each round, which the node is made to give."""
        node, body = self.c.node, self.body
        with self.op.inside(body):
            body.outputs.append(self.op.Identity(self.op.tensor(value)).value)
        for name in ("scan_output_axes", "scan_output_directions"):
            if name in node.attributes:
                put(node, **{name: [*node.attributes[name].as_ints(), 0]})
        return self.c.optional_output(len(body.outputs) - 1 - self.flags)


def _ranked_as(value: ir.Value, tensor: Tensor) -> Tensor:
    return tensor if value.shape is None else tensor.ranked(value.shape.rank())


def copied(op: Builder, graph: ir.Graph) -> ir.Graph:
    """A copy of a body under new names; what it captures is the same."""
    copy = graph.clone(allow_outer_scope_values=True)
    for inner in all_graphs(copy):
        values = [*inner.inputs, *inner.initializers.values(), *(v for node in inner for v in node.outputs)]
        for value in values:
            if value.name:
                value.name = op.names.value(value.name)
        for node in inner:
            node.name = op.names.node(node.name or node.op_type)
    copy.name = op.names.node(f"{graph.name or 'body'}/grad")
    return copy


def remove_unused(graph: ir.Graph) -> None:
    """Remove nodes that lead to no output of a body."""
    for node in reversed(graph):
        if not any(output.uses() or output.is_graph_output() for output in node.outputs):
            graph.remove(node, safe=True)


def refuse_sequences(c: Context, values: Sequence[ir.Value]) -> None:
    if any(value.type is not None and not isinstance(value.type, ir.TensorType) for value in values):
        raise c.refuse("a sequence or an optional is carried through")


def refuse_levels(c: Context, values: Sequence[ir.Value]) -> None:
    for value in values:
        if is_narrow(value):
            raise c.refuse(f"the quantised integers {value.name} are carried into a body, or out of it")
