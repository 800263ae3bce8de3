"""A loss that is no number: where it comes from, and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.training.runtime.session import open_session
from onward.training.step_graphs import LOSS, keep_outputs

Array = np.ndarray[Any, np.dtype[Any]]


class DivergedError(OnwardError):
    """The loss is no longer a number."""


def diagnosis(
    graph: ir.Model, given: Mapping[str, Array], data: Mapping[str, Array], loss: float, step: int, lr: float
) -> str:
    """Says what is known about a loss that is no number; the weights are those that gave it."""
    head = f"the loss is {loss} at step {step}"
    for name, array in given.items():
        bad = array.dtype.kind == "f" and int(array.size - np.isfinite(array).sum())
        if bad and name in data:
            return f"{head}: {bad} of {array.size} numbers of {name!r} in the batch are not finite; clean the data"
        if bad:
            return (
                f"{head}: the weight {name} has {bad} numbers that are not finite, so the step before went too far. "
                f"Try a smaller learning rate than {lr:g}, or clipped gradients (clip_norm=1)"
            )
    first = first_bad(graph, given)
    where = f"the first bad tensor is {first}" if first else "every weight is finite"
    return (
        f"{head}: {where}. Weights and data are finite. "
        f"Try a smaller learning rate than {lr:g}, clipped gradients (clip_norm=1), or data on a smaller scale"
    )


def first_bad(graph: ir.Model, given: Mapping[str, Array]) -> str | None:
    """The first tensor on the way to the loss that is not finite though all that it is computed from is."""
    model = graph.clone()
    keep_outputs(model, {LOSS})
    way = [node for node in before(model.graph.outputs[0]) if any(_is_float(output) for output in node.outputs)]
    for node in way:
        for output in node.outputs:
            if _is_float(output) and output.name and not output.is_graph_output():
                model.graph.outputs.append(output)
    try:
        session = open_session(model, None)
        names = [value.name for value in session.get_outputs()]
        feeds = {value.name: given[value.name] for value in session.get_inputs()}
        results = dict(zip(names, session.run(names, feeds), strict=True))
    except Exception:  # a second error would hide the first one
        return None
    finite = {name: bool(np.isfinite(array).all()) for name, array in results.items()}
    for node in way:
        for output in node.outputs:
            if not finite.get(output.name or "", True) and all(
                finite.get(value.name or "", True) for value in node.inputs if value is not None
            ):
                return f"{output.name} of {node.op_type}"
    return None


def before(value: ir.Value) -> list[ir.Node]:
    """The nodes that a value is computed by, in the order of the graph."""
    start = value.producer()
    if start is None or start.graph is None:
        return []
    found, waiting = {start}, [start]
    while waiting:
        for read in waiting.pop().inputs:
            node = None if read is None else read.producer()
            if node is not None and node not in found:
                found.add(node)
                waiting.append(node)
    return [node for node in start.graph if isinstance(node, ir.Node) and node in found]


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()
