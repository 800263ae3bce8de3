"""The graph that a training info means: the inference graph and its algorithm, one behind the other. Parts of it."""

from __future__ import annotations

from collections.abc import Container, Mapping

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from onward.canon.infer import infer
from onward.canon.names import Names
from onward.errors import InvalidModelError
from onward.model import Model, load
from onward.training.standard import expand, uses_training_ops

FIELDS = ("node", "initializer", "sparse_initializer", "input", "output", "value_info", "quantization_annotation")


def combined(model: Model, index: int) -> onnx.ModelProto:
    """The inference graph with the algorithm of one training info behind it, as one model."""
    proto = Model(model.ir, [], None, model.ir_version).to_proto()
    for name in FIELDS:
        getattr(proto.graph, name).extend(getattr(model.training_info[index].algorithm, name))
    return proto


def standard_ops(proto: onnx.ModelProto) -> ir.Model:
    """A combined graph without ops of `ai.onnx.preview.training`, its types known."""
    whole = load(proto)
    if uses_training_ops(whole.ir.graph):
        return expand(whole)
    infer(whole.ir)
    return whole.ir


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
