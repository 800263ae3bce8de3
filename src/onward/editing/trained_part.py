"""Training information of a part of a model, and of two models that become one."""

from __future__ import annotations

import onnx

from onward.hub.large_tensors import held_in, location_of
from onward.hub.wording import quote
from onward.model import Model
from onward.training.info.combined import values_of
from onward.training.info.names import Names, nodes_of, read_outside, reads
from onward.training.recipe.described import KEY, recipes


def trained_part(source: Model, part: Model) -> list[str]:
    """Give a part the training information that it has all values for; says what is left out."""
    here = values_of(part.ir.graph).keys()
    known = recipes(source.ir.metadata_props)
    remarks = []
    for index, info in enumerate(source.training_info):
        where = f"training info {index}" if len(source.training_info) > 1 else "the training information"
        missing = sorted(_needs(info) - here)
        if not missing:
            made = onnx.TrainingInfoProto()
            made.CopyFrom(info)
            if index in known:
                part.ir.metadata_props[f"{KEY}{len(part.training_info)}"] = known[index].dumps()
        else:
            what = f"{where} is left out: its algorithm needs {quote(missing[0])}, which the part does not have"
            kept = _initialization(info, set(part.ir.graph.initializers))
            remarks.append(f"{what}; how its weights begin is kept" if kept else what)
            if kept is None:
                continue
            made = kept
        part.training_info.append(made)
    used = {location_of(tensor) for tensor in held_in(part.training_info)}
    part.held = {place: tensor for place, tensor in source.held.items() if place in used}
    for domain in {node.domain for info in part.training_info for node in nodes_of(info)}:
        if domain in source.ir.opset_imports:
            part.ir.opset_imports.setdefault(domain, source.ir.opset_imports[domain])
    return remarks


def _needs(info: onnx.TrainingInfoProto) -> set[str]:
    """The values of the model's graph that training reads or changes."""
    own = Names.of(info.algorithm).all
    changed = {entry.key for entry in (*info.update_binding, *info.initialization_binding)}
    given = {entry.value for entry in info.update_binding}
    return (changed | given | read_outside(info.algorithm)) - own


def _initialization(info: onnx.TrainingInfoProto, weights: set[str]) -> onnx.TrainingInfoProto | None:
    """How the weights begin that are there; None if none of them does."""
    bound = [entry for entry in info.initialization_binding if entry.key in weights]
    if not bound:
        return None
    made = onnx.TrainingInfoProto()
    made.initialization.CopyFrom(info.initialization)
    made.initialization_binding.extend(bound)
    wanted = {entry.value for entry in bound}
    graph = made.initialization
    outputs = [value for value in graph.output if value.name in wanted]
    nodes = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            nodes.append(node)
            wanted.update(reads(node))
    tensors = [tensor for tensor in graph.initializer if tensor.name in wanted]
    for field, kept in (("output", outputs), ("node", nodes[::-1]), ("initializer", tensors)):
        copies = [type(item).FromString(item.SerializeToString()) for item in kept]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
    graph.ClearField("value_info")
    return made
