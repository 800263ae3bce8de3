"""The graphs of training information, which are nodes of the same opset as the model's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx
import onnx_ir as ir

from onward.canon.downgrade import Mover, is_moved
from onward.graph.infer import infer
from onward.graph.origin import KEY
from onward.graph.walk import all_graphs, all_nodes
from onward.hub.read import Reader
from onward.hub.stored import Source
from onward.hub.weights import Weights
from onward.hub.write import Writer, write_value
from onward.model import Model


def names_in(infos: Iterable[onnx.TrainingInfoProto]) -> set[str]:
    """All names that training information may mean values of the model by."""
    found: set[str] = set()
    for info in infos:
        for binding in (*info.initialization_binding, *info.update_binding):
            found |= {binding.key, binding.value}
        for graph in (info.initialization, info.algorithm):
            for node in graph.node:
                found |= {*node.input, *node.output}
                for attribute in node.attribute:
                    found |= {text.decode(errors="replace") for text in (attribute.s, *attribute.strings)}
    return found


def moved_training(model: Model, wanted: Mapping[str, int], moved: ir.Model) -> list[onnx.TrainingInfoProto]:
    """Training information of `model` at the opsets wanted; its weights stay where they are."""
    infos = []
    for info in model.training_info:
        copy = onnx.TrainingInfoProto()
        copy.CopyFrom(info)
        for part in (copy.initialization, copy.algorithm):
            _move(part, model, wanted, moved)
        infos.append(copy)
    return infos


def _move(part: onnx.GraphProto, model: Model, wanted: Mapping[str, int], moved: ir.Model) -> None:
    graph = Reader(Weights(None, Source(b""))).graph(_open(part, model), {}, (), "training info")
    graph.opset_imports.update({"" if d == "ai.onnx" else d: v for d, v in model.ir.opset_imports.items()})
    alone = ir.Model(graph, ir_version=8)
    nodes = list(all_nodes(graph))
    for node in nodes:
        node.domain = "" if node.domain == "ai.onnx" else node.domain
        node.version = graph.opset_imports.get(node.domain)
    moving = [n for n in nodes if n.domain in wanted and n.version is not None and is_moved(n, wanted[n.domain])]
    if not moving:
        return
    mover = Mover(alone, wanted, infer(alone))
    for inner in all_graphs(moved.graph):
        mover.avoid(value.name for node in inner for value in node.outputs)
        mover.avoid(inner.initializers)
    mover.nodes(moving)
    for node in all_nodes(graph):
        node.metadata_props.pop(KEY, None)
    graph.opset_imports.update(wanted)
    written = Writer().model(alone).graph
    del part.node[:]
    part.node.extend(written.node)
    del part.value_info[:]


def _open(part: onnx.GraphProto, model: Model) -> onnx.GraphProto:
    """The nodes of a graph, with all that they read from elsewhere as inputs."""
    alone = onnx.GraphProto(name=part.name or "training", node=part.node, output=part.output)
    made = {name for node in part.node for name in node.output}
    known = {value.name: value for node in model.ir.graph for value in node.outputs}
    known |= {value.name: value for value in (*model.ir.graph.inputs, *model.ir.graph.initializers.values())}
    infos = {info.name: info for info in part.input}
    for tensor in part.initializer:
        infos[tensor.name] = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
    read = [*(name for node in part.node for name in _read(node)), *(out.name for out in part.output)]
    for name in dict.fromkeys([*infos, *read]):
        if name and name not in made:
            known_value = known.get(name)
            outer = onnx.ValueInfoProto(name=name)
            if known_value is not None:
                write_value(outer, known_value)
            alone.input.append(infos.get(name, outer))
    return alone


def _read(node: onnx.NodeProto) -> list[str]:
    """What a node and the graphs inside it read that these do not make."""
    found = list(node.input)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            own = {i.name for i in (*graph.input, *graph.initializer)} | {o for n in graph.node for o in n.output}
            found += [name for inner in graph.node for name in _read(inner) if name not in own]
            found += [out.name for out in graph.output if out.name not in own]
    return found
