"""A Loop as a function of one round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.graph.scan import give

Round = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor]]
"""Of the number of the round and the states: the states that follow."""


def loop(
    op: Builder,
    step: Round,
    states: Sequence[Tensor],
    *,
    rounds: Tensor | None = None,
    goes_on: Callable[[Sequence[Tensor]], Tensor] | None = None,
) -> list[Tensor]:
    """The states after so many rounds, a scalar of int64, or as long as `goes_on` says of them."""
    graph = ir.Graph([], [], nodes=[], name=op.names.node(f"{op.scope}round"))
    for dtype in (ir.DataType.INT64, ir.DataType.BOOL):
        graph.inputs.append(ir.Value(name=op.names.value("round"), type=ir.TensorType(dtype), shape=ir.Shape([])))
    graph.inputs.extend([op.input_like(state.value) for state in states])
    first = op.constant(np.asarray(True)) if goes_on is None else goes_on(states)
    with op.inside(graph):
        number, condition, *given = [op.tensor(value) for value in graph.inputs]
        found = list(step(number, given))
        give(op, graph, [condition if goes_on is None else goes_on(found), *found])
    return op.many("Loop", len(states), rounds, first, *states, body=graph)
