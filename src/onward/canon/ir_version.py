"""The IR version of a file: that of its opset, unless another is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import onnx
import onnx_ir as ir

from onward.errors import OnwardError, UnsupportedError
from onward.graph.walk import all_graphs
from onward.hub.write import SPARE_INFOS
from onward.model import Model

OLDEST = 3
_METADATA = 10
"""The first IR version with metadata of nodes, values and graphs, and with types of values in functions."""
_INITIALIZERS = 4
"""The first in which an initializer need not be an input."""


def at_ir_version(model: Model, wanted: int | None) -> list[str]:
    """Make `model` one that is written in IR version `wanted`, in place; tells what there is no place for.

    Unless one is wanted it is the lowest with the opset and all that the nodes and weights are: then the metadata of
    nodes and values, which were added late, are left out rather than raise it.
    """
    if wanted is not None and not OLDEST <= wanted <= onnx.IR_VERSION:
        raise OnwardError(f"IR version {wanted} cannot be written: give one from {OLDEST} to {onnx.IR_VERSION}")
    of_opset = wanted or model.ir_version or _of_opset(model.ir)
    dropped = []
    if of_opset < _METADATA and _has_metadata(model.ir):
        for owner in _owners(model.ir):
            owner.metadata_props.clear()
        dropped.append(f"metadata of nodes and values, for which IR version {of_opset} has no place")
    if of_opset < _METADATA and _forget_types(model.ir):
        dropped.append(f"types of values in functions, for which IR version {of_opset} has no place")
    if wanted is None:
        return dropped
    if wanted < _INITIALIZERS:
        graph = model.ir.graph
        graph.inputs.extend(value for value in graph.initializers.values() if not value.is_graph_input())
    needed = replace(model, ir_version=0).outline().ir_version
    if needed > wanted:
        raise UnsupportedError(
            f"IR version {wanted} cannot hold the model, which needs {needed}: its opset is {model.opset.get('')};"
            " give a higher --ir-version or a lower --opset"
        )
    model.ir_version = wanted
    model.ir.ir_version = wanted
    return dropped


def _of_opset(model: ir.Model) -> int:
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in model.opset_imports.items()]
    return int(onnx.helper.find_min_ir_version_for(imports, ignore_unknown=True))


def _owners(model: ir.Model) -> Iterator[ir.Graph | ir.Node | ir.Value]:
    for top in (model.graph, *(function.graph for function in model.functions.values())):
        for graph in all_graphs(top):
            yield graph
            yield from graph.inputs
            yield from graph.initializers.values()
            for node in graph:
                yield node
                yield from node.outputs


def keep_weights(model: Model, before: int) -> None:
    """Weights that had to be inputs in IR version `before` are no inputs where a caller could replace these."""
    if 0 < before < _INITIALIZERS <= model.outline().ir_version:
        graph = model.ir.graph
        graph.inputs[:] = [value for value in graph.inputs if not value.is_initializer()]


def _has_metadata(model: ir.Model) -> bool:
    return any(owner.metadata_props for owner in _owners(model))


def _forget_types(model: ir.Model) -> bool:
    """Take the types from the values of functions; whether there were any."""
    found = False
    for function in model.functions.values():
        found |= bool(function.graph.meta.pop(SPARE_INFOS, None))
        for value in (*function.inputs, *(value for node in function for value in node.outputs)):
            found |= value.type is not None or value.shape is not None
            value.type = value.shape = None
    return found
