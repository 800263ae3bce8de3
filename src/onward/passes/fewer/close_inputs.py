"""Weights that a file lists as inputs, as old exporters did, are weights alone, which nobody replaces."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.rewriter import is_used
from onward.graph.trained import role


def close_inputs(model: ir.Model) -> int:
    """In place; returns how many went. Where some weights are inputs and others are not, those are meant to be open."""
    graph = model.graph
    listed = [value for value in graph.inputs if value.is_initializer() and role(value) is not None]
    if not listed or not all(value.is_graph_input() for value in graph.initializers.values()):
        return 0
    listed += [value for value in graph.inputs if value.is_initializer() and not is_used(value)]
    graph.inputs[:] = [value for value in graph.inputs if value not in listed]
    return len(listed)
