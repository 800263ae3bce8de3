"""The graph that a training info means: the inference graph and its algorithm, one behind the other. Parts of it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import onnx_ir as ir
from onnx import helper
from onnx_ir.passes import common

from onward.errors import InvalidModelError
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.hub.large_tensors import held_by
from onward.hub.tensors import SparseTensor
from onward.model import Model, load
from onward.training.autodiff.prepare_graph import constant_weights
from onward.training.info.preview_ops import expand, uses_training_ops

FIELDS = ("node", "sparse_initializer", "input", "output", "value_info", "quantization_annotation")


LARGE = 1 << 16
"""Bytes of a tensor from which on it is not copied to protobuf and back."""


def combined(model: Model, index: int, outputs: Iterable[str] = ()) -> ir.Model:
    """The inference graph with the algorithm of one training info behind it; `outputs` are given out as well."""
    inference = model.ir.clone()
    held = hollow(inference.graph)
    proto = Model(inference, [], None, model.ir_version).to_proto()
    graph, algorithm = proto.graph, model.training_info[index].algorithm
    for name in FIELDS:
        getattr(graph, name).extend(getattr(algorithm, name))
    for tensor in algorithm.initializer:
        data = held_by(tensor, model.held)
        if data is None:
            graph.initializer.append(tensor)
        else:
            held[tensor.name] = data
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    listed = {value.name for value in graph.output}
    graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs if name not in listed)
    whole = load(proto).ir
    given = {value.name: value for value in whole.graph.inputs}
    for name, data in held.items():
        value = given[name]
        value.const_value = data
        whole.graph.inputs.remove(value)
        whole.graph.register_initializer(value)
    return whole


def hollow(graph: ir.Graph) -> dict[str, ir.TensorProtocol]:
    """Make large initializers inputs, in place; gives their data."""
    held = {}
    for name, value in list(graph.initializers.items()):
        data = value.const_value
        if data is None or isinstance(data, ir.StringTensor | SparseTensor) or data.nbytes < LARGE:
            continue
        held[name] = data
        graph.initializers.pop(name)
        value.const_value = None
        value.type, value.shape = ir.TensorType(data.dtype), ir.Shape(data.shape.numpy())
        if value not in graph.inputs:
            graph.inputs.append(value)
    return held


def standard_ops(whole: ir.Model) -> ir.Model:
    """A combined graph without ops of `ai.onnx.preview.training`, its types known."""
    if uses_training_ops(whole.graph):
        return expand(Model(whole))
    infer(whole)
    return whole


def values_of(graph: ir.Graph) -> dict[str, ir.Value]:
    """By name: inputs, initializers, and what nodes give."""
    values = [*graph.inputs, *graph.initializers.values(), *(o for node in graph for o in node.outputs)]
    return {value.name: value for value in values if value.name}


def cut(model: ir.Model, starts: Mapping[str, str], ends: Mapping[str, str], inputs: Container[str] = ()) -> ir.Model:
    """A copy of what computes `ends` from `starts`, each with its new name; `inputs` stay even if they are not read."""
    copy = model.clone()
    graph = copy.graph
    values = values_of(graph)
    if missing := next((name for name in (*starts, *ends) if name not in values), None):
        raise InvalidModelError(f"the training step has no value {missing!r}")
    results = [(values[name], new) for name, new in ends.items()]
    graph.outputs.clear()
    taken = []
    for name, new in starts.items():
        value = values[name]
        if value.producer() is not None:
            start = ir.Value(name=None, type=value.type, shape=value.shape)
            value.replace_all_uses_with(start)
        else:
            start = value
            graph.initializers.pop(name, None)
            start.const_value = None
            if start in graph.inputs:
                graph.inputs.remove(start)
        taken.append((start, new))
    graph.outputs.extend(value for value, _ in results)
    graph.inputs.extend(value for value, _ in taken)
    common.RemoveUnusedNodesPass()(copy)
    constant_weights(graph)
    for value in list(graph.inputs):
        if not value.uses() and value.name not in inputs and all(value is not start for start, _ in taken):
            graph.inputs.remove(value)
    _rename(copy, [*taken, *results])
    return copy


def _rename(model: ir.Model, wanted: list[tuple[ir.Value, str]]) -> None:
    """Give values names; others that have them get new ones."""
    owners = values_of(model.graph)
    names = Names(model)
    own = {value for value, _ in wanted}
    for _, new in wanted:
        other = owners.get(new)
        if other is not None and other not in own:
            other.name = names.value(f"{new}.other")
    for value, new in wanted:
        value.name = new
