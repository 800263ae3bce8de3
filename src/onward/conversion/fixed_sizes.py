"""Dynamic dimensions of a model with sizes that are given: some formats take no others."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onward.advice.nearest import meant
from onward.errors import OnwardError
from onward.graph.walk import all_graphs
from onward.model import Model


def with_sizes(model: Model, sizes: Mapping[str, int]) -> Model:
    """The same model for these sizes of its dynamic dimensions, by name."""
    made = model.copy()
    graph = made.ir
    dims = (dim for value in graph.graph.inputs if value.shape is not None for dim in value.shape)
    names = {dim.value for dim in dims if isinstance(dim, ir.SymbolicDim) and dim.value}
    for name in sizes:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise OnwardError(f"no input has a dynamic dimension {name!r}; there are: {known}{meant(name, names)}")
    for each in all_graphs(graph.graph):
        for value in [*each.inputs, *(value for node in each for value in node.outputs)]:
            if value.shape is not None:
                value.shape = ir.Shape(_sized(dim, sizes) for dim in value.shape)
    return made


def _sized(dim: int | ir.SymbolicDim, sizes: Mapping[str, int]) -> int | ir.SymbolicDim:
    return dim if isinstance(dim, int) or dim.value is None else sizes.get(dim.value, dim)
