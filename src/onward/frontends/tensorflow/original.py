"""A function of TensorFlow as TensorFlow runs it, for the check of what it was converted to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onward.formats import open_object
from onward.frontends.tensorflow.translate import ASSIGNMENTS
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.undisturbed import variables_kept


def runner(function: Any, values: Mapping[int, Any] | None) -> Run:
    """Runs a concrete function, whose variables hold other `values`, by their ids, for as long as it runs.

    What it assigns, it assigns anew in every run.
    """
    opened = open_object(function).run
    variables = list(function.graph.variables) if values or _assigns(function) else []

    def run(inputs: Inputs) -> Outputs:
        with variables_kept(variables):
            for variable in variables:
                if values and id(variable) in values:
                    variable.assign(values[id(variable)])
            return opened(inputs)

    return run if variables else opened


def _assigns(function: Any) -> bool:
    """Whether there is an assignment, in whatever function that is called."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for called in graph.library.function for node in called.node_def)]
    return any(node.op.startswith(ASSIGNMENTS) for node in nodes)
