"""How far a model that is computed in 8 bits may be from the original: a few steps of the grid of each output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

if TYPE_CHECKING:
    from onward.model import Model
    from onward.verification.results import OutputResult, Report

MOST = 4
"""Steps that rounding may add up to, in all layers together; one is what was seen."""
LEVELS = 127
"""Steps from zero to the largest number, where an output is not on a grid of its own."""
MOVES = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "Concat", "Split"}
"""Ops that leave numbers as they are."""


def beyond(report: Report, model: Model) -> str:
    """Which output is off by more than rounding in 8 bits explains, in a sentence; '' where none is."""
    grids = {value.name: grid for value in model.ir.graph.outputs if (grid := grid_of(value)) is not None}
    for side in report.sides:
        for output in (output for trial in side.trials for output in trial.outputs if output.status != "same"):
            if output.kind != "values":
                return f"{output.name}: {output.reason}"
            apart = _steps(output, grids.get(output.name))
            if not apart <= MOST:
                return f"{output.name} is off by {apart:.3g} steps of 8 bits, and rounding explains {MOST}"
    return ""


def _steps(output: OutputResult, grid: float | None) -> float:
    found = output.metrics
    if found.max_steps is not None:
        return float(found.max_steps)
    return found.max_abs_over_scale * LEVELS if grid is None else found.max_abs / grid


def grid_of(value: ir.Value) -> float | None:
    """The step from one number to the next of an output that is dequantised at last."""
    node = value.producer()
    while node is not None and node.op_type in MOVES and not node.domain and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    if node is None or node.op_type != "DequantizeLinear" or node.inputs[1] is None:
        return None
    scale = ir.convenience.get_const_tensor(node.inputs[1])
    return None if scale is None else float(np.max(scale.numpy()))
