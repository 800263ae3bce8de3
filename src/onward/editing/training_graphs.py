"""Training information as graphs that can be compared."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir
from onnx import helper

from onward.editing.sides import fingerprint
from onward.graph.constants import plain_constants
from onward.hub.large_tensors import completed, held_by
from onward.model import Model, load
from onward.training.info.names import read_outside

PARTS = ("initialization", "algorithm")


def bindings(model: Model, index: int) -> dict[str, str]:
    """What is bound to what."""
    info = model.training_info[index]
    made = {f"initialization of {entry.key}": entry.value for entry in info.initialization_binding}
    return made | {f"update of {entry.key}": entry.value for entry in info.update_binding}


def algorithms(first: Model, second: Model, index: int) -> Iterator[tuple[str, ir.Graph, ir.Graph]]:
    """The graphs of one training info that are not the same, byte by byte."""
    for part in PARTS:
        if _bytes(first, index, part) != _bytes(second, index, part):
            yield part, _graph(first, index, part), _graph(second, index, part)


def _bytes(model: Model, index: int, part: str) -> bytes:
    graph = onnx.GraphProto()
    graph.CopyFrom(getattr(model.training_info[index], part))
    for tensor in graph.initializer:
        if (data := held_by(tensor, model.held)) is not None:
            tensor.ClearField("external_data")
            tensor.raw_data = fingerprint(data)
    return bytes(graph.SerializeToString(deterministic=True))


def _graph(model: Model, index: int, part: str) -> ir.Graph:
    """A graph of a training info by itself: what it reads of the model is an input."""
    graph = completed(getattr(model.training_info[index], part), model.held)
    for name in sorted(read_outside(graph)):
        graph.input.add(name=name)
    opsets = [helper.make_opsetid(domain, version) for domain, version in model.opset.items()]
    made = load(helper.make_model(graph, opset_imports=opsets, ir_version=max(model.ir_version, 8))).ir
    plain_constants(made)
    return made.graph
