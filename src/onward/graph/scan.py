"""Writes a Scan as a function of one step, and what ONNX Runtime has to be told of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.graph.walk import all_nodes, inner_graphs

Step = Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]]
"""Of the states and a slice of each row: the new states, and a slice of each result."""


def scan(
    op: Builder, step: Step, states: Sequence[Tensor], rows: Sequence[Tensor], *, axis: int = 0, backwards: bool = False
) -> list[Tensor]:
    """The final states and the results, all along `axis`; from the last slice to the first with `backwards`."""
    graph = ir.Graph([], [], nodes=[], name=op.names.node(f"{op.scope}step"))
    graph.inputs.extend([op.input_like(state.value) for state in states])
    for row in rows:
        value = op.input_like(row.value)
        dims = row.value.shape
        value.shape = None if dims is None else ir.Shape([*dims[:axis], *dims[axis + 1 :]])
        graph.inputs.append(value)
    with op.inside(graph):
        given = [op.tensor(value) for value in graph.inputs]
        new, made = step(given[: len(states)], given[len(states) :])
        give(op, graph, [*new, *made])
    way = int(backwards)
    return op.many(
        "Scan",
        len(graph.outputs),
        *states,
        *rows,
        body=graph,
        num_scan_inputs=len(rows),
        scan_input_axes=[axis] * len(rows) if axis else None,
        scan_output_axes=[axis] * len(made) if axis and made else None,
        scan_input_directions=[way] * len(rows),
        scan_output_directions=[way] * len(made) or None,
    )


def give(op: Builder, graph: ir.Graph, results: Sequence[Tensor]) -> None:
    """Make tensors the outputs of a body: each has to be a value of its own, made inside."""
    given: list[ir.Value] = []
    for tensor in results:
        node = tensor.value.producer()
        is_own = node is not None and node.graph is graph and tensor.value not in given
        given.append(tensor.value if is_own else op.Identity(tensor).value)
    graph.outputs[:] = given


def ranks_of_results(model: ir.Model) -> dict[ir.Value, int]:
    """By result of each step of a Scan how many dimensions it has, as far as that is known."""
    scans = [node for node in all_nodes(model.graph) if node.op_type == "Scan"]
    results = [value for node in scans for body in inner_graphs(node) for value in body.outputs]
    return {value: len(value.shape) for value in results if value.shape is not None}


def keep_ranks(ranks: Mapping[ir.Value, int]) -> None:
    """Say them where the file says nothing: ONNX Runtime runs no Scan otherwise, and finds less in some opsets."""
    for value, rank in ranks.items():
        if value.shape is None:
            value.shape = ir.Shape([None] * rank)
