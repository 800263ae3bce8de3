"""Training as a file: an inference model whose TrainingInfoProto holds the whole training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.held_weights import lift_constants
from onward.graph.walk import all_graphs
from onward.hub.large_tensors import Held, Holder
from onward.hub.tensors import write_tensor
from onward.model import Model
from onward.spec.training import TRAINING
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.info.combined import hollow
from onward.training.info.initialization import initialization
from onward.training.info.whole_step import Step, all_names, whole_step
from onward.training.recipe.described import (
    KEY,
    Recipe,
    write_loss,
    write_optimizer,
    write_schedule,
)
from onward.training.recipe.optimizers import AVERAGE, initial

if TYPE_CHECKING:
    from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]


def to_model(trainable: Trainable, *, symbolic: bool = False, scratch: bool = False) -> Model:
    """An inference model with the training step in a TrainingInfoProto, behind those that the model had before.

    The algorithm is one graph of the whole step. It refers to weights of the inference graph by name, has the
    optimizer's state and the count of steps as initializers, and labels and the learning rate as inputs. `symbolic`:
    it has `Gradient` and the standard's optimizers, where they compute the same, instead of standard ops. `scratch`:
    the initialization gives parameters random numbers.
    """
    inference = differentiable(trainable.original)
    others = list(trainable.original.training_info)
    before, after = trainable.original.opset.get(""), inference.opset_imports[""]
    if others and before != after:
        raise UnsupportedError(f"the model has training information already, for opset {before} instead of {after}")
    now = {**trainable.weights(trainable.parameters), **trainable.buffers}
    lift_constants(inference, lambda value: value.name in now)
    weights = inference.graph.initializers
    apart = {name: array for name, array in trainable.buffers.items() if name not in weights}
    for name, array in now.items():
        if name not in apart:
            weights[name].const_value = ir.Tensor(array, name=name)
    step = whole_step(trainable, symbolic)
    bases = {name: step.model.graph.initializers[a.base] for name, a in trainable.adapters.items()}
    info, held = onnx.TrainingInfoProto(), dict(trainable.original.held)
    _write_algorithm(info.algorithm, step, inference.graph, {**trainable.parameters, **apart}, held)
    recipe = Recipe(
        step.loss.name or "",
        {name: value.name or "" for name, value in step.gradients.items()},
        write_optimizer(trainable.optimizer),
        step.count.name or "",
        {name: value.name or "" for name, value in step.state.items()},
        list(trainable.buffers),
        list(trainable.labels),
        {name: asdict(rule) for name, rule in trainable.rules.items()},
        trainable.clip_norm,
        trainable.accumulate,
        write_schedule(trainable.schedule),
        {name: {**asdict(a), "base": bases[name].name} for name, a in trainable.adapters.items()},
        write_loss(trainable.loss),
        [asdict(penalty) for penalty in trainable.penalties],
        trainable.clip_epsilon,
        {name: [value.name or "" for value in values] for name, values in step.rows.items()},
    )
    inference.metadata_props[f"{KEY}{len(others)}"] = recipe.dumps()
    for domain, version in step.model.opset_imports.items():
        inference.opset_imports.setdefault(domain, version)
    _bind(info.update_binding, {old.name or "": new.name or "" for old, new in step.changes})
    starts = {}
    for name, value in step.state.items():
        if (slot := name.rpartition(".")[2]) != AVERAGE:
            starts[value.name or ""] = trainable.state[name], initial(trainable.optimizer, slot)
    starts[step.count.name or ""] = np.zeros((), np.int64), 0.0
    names = [name for name in (*trainable.parameters, *trainable.buffers) if name in inference.graph.initializers]
    graph, bound = initialization(starts, {name: weights[name] for name in names}, scratch)
    info.initialization.CopyFrom(graph)
    _bind(info.initialization_binding, bound)
    original = trainable.original
    return Model(inference, [*others, info], None, original.ir_version, list(original.data_files), held)


def _bind(entries: Any, bindings: Mapping[str, str]) -> None:
    for key, value in bindings.items():
        entries.add(key=key, value=value)


def _write_algorithm(
    algorithm: onnx.GraphProto, step: Step, outer: ir.Graph, arrays: Mapping[str, Array], held: Held
) -> None:
    """Write the graph of a step behind the inference graph: it shares weights, and has other names else.

    `arrays` are the weights, some of which the inference graph may not have: adapters, counts.
    """
    graph = step.model.graph
    taken = all_names(outer)
    used = taken | all_names(graph)

    def rename(value: ir.Value) -> None:
        name = value.name or "value"
        number = 1
        while (new := f"step/{name}" + (f"_{number}" if number > 1 else "")) in used:
            number += 1
        used.add(new)
        value.name = new

    for name, value in list(graph.initializers.items()):
        if name in taken:
            graph.initializers.pop(name)
            twin = outer.initializers.get(name)
            if twin is not None and _same(value.const_value, twin.const_value):
                value.const_value = None
                graph.inputs.append(value)
            else:
                rename(value)
                graph.register_initializer(value)
    for inner in all_graphs(graph):
        own = [] if inner is graph else [*inner.inputs, *inner.initializers.values()]
        for value in (*own, *(output for node in inner for output in node.outputs)):
            if value.name in taken:
                rename(value)
    for value in [value for value in graph.inputs if value.name in arrays and value.name not in taken]:
        graph.inputs.remove(value)
        value.const_value = ir.Tensor(arrays[value.name or ""], name=value.name)
        graph.register_initializer(value)
    for node in graph:
        if node.domain == TRAINING and node.op_type == "Gradient":
            node.attributes["y"] = ir.AttrString("y", step.loss.name or "")
    large = hollow(graph)
    algorithm.CopyFrom(Model(step.model).to_proto().graph)
    own_inputs = [value for value in algorithm.input if value.name not in taken and value.name not in large]
    del algorithm.input[:]
    algorithm.input.extend(own_inputs)
    algorithm.name = "training step"
    for name, data in large.items():
        tensor = algorithm.initializer.add()
        write_tensor(tensor, data, Holder(held))
        tensor.name = name


def _same(a: ir.TensorProtocol | None, b: ir.TensorProtocol | None) -> bool:
    if a is None or b is None:
        return False
    return a is b or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
