"""`onward.training.gradient`: a plain ONNX model that also gives derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import OnwardError
from onward.graph.build import Builder
from onward.model import Model, load
from onward.training.autodiff.prepare_graph import differentiable, lower_for_gradients
from onward.training.autodiff.reverse import gradients


def gradient(model: Any, of: str, wrt: Iterable[str], *, names: str = "{}.grad", zero: bool = False) -> Model:
    """The model with derivatives of the sum of `of` with respect to each of `wrt` as further outputs.

    Both are names of values: inputs, weights, or results in between. The derivative of `x` is called `x.grad`, or by
    the pattern `names`. One that `of` does not depend on is refused, or with `zero` a tensor of zeros.
    """
    graph = differentiable(load(model))
    y, *xs = (named(graph.graph, name) for name in (of, *wrt))
    y, xs = lower_for_gradients(graph, y, xs)
    op = Builder(graph)
    for x, found in zip(xs, gradients(op, y, xs), strict=True):
        if found is None and zero:
            found = op.zeros_like(op.tensor(x))
        if found is None:
            raise OnwardError(f"{of} does not depend on {x.name} through ops that have a derivative")
        result = op.Identity(found)
        result.value.name = op.names.value(names.format(x.name))
        graph.graph.outputs.append(result.value)
    common.RemoveUnusedNodesPass()(graph)
    return Model(graph)


def named(graph: ir.Graph, name: str) -> ir.Value:
    """A value of the main graph by its name."""
    for value in (*graph.inputs, *graph.initializers.values()):
        if value.name == name:
            return value
    for node in graph:
        for value in node.outputs:
            if value.name == name:
                return value
    raise OnwardError(f"the model has no value {name!r}")
