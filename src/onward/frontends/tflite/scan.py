"""A step that is done again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

Step = Callable[..., tuple[Sequence[Tensor], Sequence[Tensor]]]
"""Takes a row and the states; gives the states that follow, and what is kept of each step."""


def scanned(
    op: Writer, rows: Tensor, states: Sequence[Tensor], step: Step, kept: int, backwards: bool = False
) -> list[Tensor]:
    """The states after a step for each row, which lie along the first axis, and what was kept, stacked the same way."""
    body = ir.Graph([], [], nodes=[], name=op.names.node("step"))
    inside = []
    of_row = None if rows.dims is None else rows.dims[1:]
    for value, dims in (*((state, state.dims) for state in states), (rows, of_row)):
        shape = None if dims is None else ir.Shape(dims)
        given = ir.Value(name=op.names.value("step"), type=ir.TensorType(value.dtype), shape=shape)
        body.inputs.append(given)
        inside.append(op.tensor(given))
    with op.inside(body):
        after, found = step(inside[-1], *inside[:-1])
        body.outputs.extend(op.Identity(result).value for result in (*after, *found))
    ways: dict[str, Any] = {"scan_input_directions": [1], "scan_output_directions": [1] * kept} if backwards else {}
    return op.many("Scan", len(states) + kept, *states, rows, body=body, num_scan_inputs=1, **ways)
