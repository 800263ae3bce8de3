"""The names in training information: what a graph of it reads, what it has itself, and the same under other names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
import onnx_ir as ir

from onward.spec.training import TRAINING

NAMING = ("xs", "zs", "y")
"""Attributes of `Gradient` that are names of values."""


@dataclass
class Names:
    """The names of a graph by what they are."""

    inputs: list[str]
    initializers: list[str]
    made: list[str]
    outputs: list[str]

    @classmethod
    def of(cls, graph: onnx.GraphProto | ir.Graph) -> Names:
        if isinstance(graph, ir.Graph):
            made = [value.name or "" for node in graph for value in node.outputs if value.name]
            ends = ([value.name or "" for value in values] for values in (graph.inputs, graph.outputs))
            inputs, outputs = ends
            return cls(inputs, list(graph.initializers), made, outputs)
        weights = [tensor.name for tensor in graph.initializer]
        weights += [tensor.values.name for tensor in graph.sparse_initializer]
        made = [name for node in graph.node for name in node.output if name]
        return cls([value.name for value in graph.input], weights, made, [value.name for value in graph.output])

    @property
    def all(self) -> set[str]:
        return {*self.inputs, *self.initializers, *self.made}


def reads(node: onnx.NodeProto) -> list[str]:
    """The values of the graph around that a node needs, those that its bodies capture included."""
    found = [name for name in node.input if name]
    for body in bodies(node):
        found += sorted(read_outside(body))
    return found


def read_outside(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph reads or gives out and does not have itself."""
    found = {name for node in graph.node for name in reads(node)} | {value.name for value in graph.output}
    return found - Names.of(graph).all


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_names(info: onnx.TrainingInfoProto) -> set[str]:
    """Every name that the algorithm or a graph inside it has."""
    return {name for graph in _graphs(info.algorithm) for name in Names.of(graph).all}


def nodes_of(info: onnx.TrainingInfoProto) -> Iterator[onnx.NodeProto]:
    """All nodes of both graphs, and of those inside them."""
    for part in (info.initialization, info.algorithm):
        for graph in _graphs(part):
            yield from graph.node


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    pending = [graph]
    while pending:
        found = pending.pop()
        yield found
        pending += [body for node in found.node for body in bodies(node)]


def renamed(
    info: onnx.TrainingInfoProto, names: Mapping[str, str], functions: Mapping[ir.OperatorIdentifier, str]
) -> onnx.TrainingInfoProto:
    """A copy whose values, and the functions that it calls, have other names. The initialization has its own scope."""
    copy = onnx.TrainingInfoProto()
    copy.CopyFrom(info)
    _rename(copy.algorithm, names, functions)
    _rename(copy.initialization, {}, functions)
    for entry in (*copy.initialization_binding, *copy.update_binding):
        entry.key = names.get(entry.key, entry.key)
    for entry in copy.update_binding:
        entry.value = names.get(entry.value, entry.value)
    return copy


def _rename(graph: onnx.GraphProto, names: Mapping[str, str], functions: Mapping[ir.OperatorIdentifier, str]) -> None:
    named: list[Any] = [*graph.input, *graph.output, *graph.value_info, *graph.initializer]
    named += [tensor.values for tensor in graph.sparse_initializer]
    for holder in named:
        holder.name = names.get(holder.name, holder.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = names.get(entry.value, entry.value)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.op_type = functions.get((node.domain, node.op_type, node.overload), node.op_type)
        if node.op_type == "Gradient" and node.domain == TRAINING:
            for attribute in node.attribute:
                if attribute.name in NAMING:
                    if attribute.HasField("s"):
                        attribute.s = _encoded(attribute.s, names)
                    attribute.strings[:] = [_encoded(text, names) for text in attribute.strings]
        for body in bodies(node):
            _rename(body, names, functions)


def _encoded(text: bytes, names: Mapping[str, str]) -> bytes:
    return names.get(text.decode(errors="replace"), "").encode() or text
