"""Training as a file: an inference model whose TrainingInfoProto holds the whole training step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.graph.held_weights import lift_constants
from onward.graph.walk import all_graphs
from onward.hub.large_tensors import Held, Holder, completed
from onward.hub.tensors import write_tensor
from onward.model import Model
from onward.model import load as load_model
from onward.spec.training import TRAINING
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.info.check import check
from onward.training.info.combined import combined, cut, hollow, standard_ops
from onward.training.info.foreign import from_others
from onward.training.info.initialization import initialization
from onward.training.info.preview_ops import uses_training_ops
from onward.training.info.whole_step import Step, all_names, whole_step
from onward.training.recipe.described import (
    KEY,
    Recipe,
    is_stored,
    read_loss,
    read_optimizer,
    read_schedule,
    recipes,
    without,
    write_loss,
    write_optimizer,
    write_schedule,
)
from onward.training.recipe.optimizers import AVERAGE, initial
from onward.training.trainable import LEARNING_RATE, LOSS, STEP, Trainable

__all__ = ["check", "load", "save", "to_model"]

Array = np.ndarray[Any, np.dtype[Any]]


def save(
    trainable: Trainable,
    path: str | os.PathLike[str],
    *,
    symbolic: bool = False,
    scratch: bool = False,
    external_data: bool | None = None,
) -> None:
    """Write `to_model` to a file; weights and state beside it with `external_data`, or if one file cannot hold them."""
    to_model(trainable, symbolic=symbolic, scratch=scratch).save(path, external_data=external_data)


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


def load(source: Any, *, index: int | None = None, initialize: bool = False) -> Trainable:
    """Read a model with training information, of Onward's or of others'.

    `index` says which of several infos; unless given, the last one that Onward wrote, or else the first. `initialize`
    runs its initialization, which is how training begins from scratch.
    """
    model = load_model(source)
    if not model.training_info:
        raise OnwardError(
            f"{model.name}: the model has no training information; onward.training.prepare makes it trainable"
        )
    if index is not None and not 0 <= index < len(model.training_info):
        raise OnwardError(f"there is no training info {index}; there are {len(model.training_info)}")
    graphs: dict[int, ir.Model] = {}
    if problems := check(model, graphs):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InvalidModelError(problems[0] + more)
    count = len(model.training_info)
    known = {i: recipe for i, recipe in recipes(model.ir.metadata_props).items() if i < count}
    number = index if index is not None else max(known, default=0)
    if number in known:
        made, files = _ours(model, number, known[number], graphs.get(number)), _files(known[number])
    else:
        made, files = from_others(model, number)
    if initialize:
        _initialize(made, model, number, files)
    return made


def _files(recipe: Recipe) -> dict[str, str]:
    """What the initializers of a file are called in a trainable model, where it is something else."""
    return {file: name for name, file in recipe.state.items()} | {recipe.step: STEP}


def _ours(model: Model, index: int, recipe: Recipe, known: ir.Model | None) -> Trainable:
    """`known` is the combined graph, if it is known from a check, in which case so are its types."""
    info = model.training_info[index]
    if known is None or uses_training_ops(known.graph):
        known = standard_ops(known or combined(model, index))
    whole = known
    weights = whole.graph.initializers
    bound = {entry.key: entry.value for entry in info.update_binding}
    wanted = [*recipe.parameters, *recipe.buffers, *recipe.state.values(), recipe.step]
    if missing := next((name for name in wanted if name not in bound or name not in weights), None):
        raise InvalidModelError(f"the metadata {KEY}{index} names {missing!r}, which no update is bound to")
    arrays = {name: _array(weights[name]) for name in wanted}
    parameters = {name: arrays[name] for name in recipe.parameters}
    grads = {file: f"{name}.grad" for name, file in recipe.parameters.items()}
    starts = {name: name for name in (*recipe.parameters, *recipe.buffers)}
    ends = {recipe.loss: LOSS, **grads, **{bound[name]: f"{name}.next" for name in recipe.buffers}}
    inputs = {value.name or "" for value in model.ir.graph.inputs} | set(recipe.labels)
    derive = cut(whole, starts, ends, inputs)
    optimizer, rules = read_optimizer(recipe.optimizer), recipe.read_rules()
    if is_stored(optimizer):
        starts = {name: name for name in recipe.parameters} | grads
        starts |= {file: name for name, file in recipe.state.items()}
        starts |= {bound[recipe.step]: STEP, LEARNING_RATE: LEARNING_RATE}
        ends = {bound[name]: f"{name}.next" for name in recipe.parameters}
        ends |= {bound[file]: f"{name}.next" for name, file in recipe.state.items()}
        update = cut(whole, starts, ends)
    else:
        update = None
    original = model.ir.clone()
    without(original.metadata_props, index)
    others = [other for i, other in enumerate(model.training_info) if i != index]
    return Trainable(
        Model(original, others, model.path, model.ir_version, model.data_files, model.held),
        derive,
        update,
        optimizer,
        parameters,
        {name: arrays[name] for name in recipe.buffers},
        {name: arrays[file] for name, file in recipe.state.items()},
        list(recipe.labels),
        int(arrays[recipe.step]),
        rules,
        recipe.clip_norm,
        recipe.clip_epsilon,
        recipe.accumulate,
        read_schedule(recipe.schedule),
        recipe.read_adapters(),
        read_loss(recipe.terms),
        recipe.read_penalties(),
    )


def _array(value: ir.Value) -> Array:
    assert value.const_value is not None
    return value.const_value.numpy()


def _initialize(made: Trainable, model: Model, index: int, files: Mapping[str, str]) -> None:
    """Run the initialization on ONNX Runtime, and put what it gives in its place."""
    import onnxruntime

    info = model.training_info[index]
    if not info.initialization.node and not info.initialization.initializer:
        return
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in model.opset.items()]
    graph = completed(info.initialization, model.held)
    proto = onnx.helper.make_model(graph, opset_imports=imports, ir_version=max(model.ir_version, 8))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found = dict(zip([value.name for value in session.get_outputs()], session.run(None, {}), strict=True))
    for entry in info.initialization_binding:
        name, array = files.get(entry.key, entry.key), found[entry.value]
        if name == STEP:
            made.step = int(array)
        for arrays in (made.parameters, made.buffers, made.state):
            if name in arrays:
                arrays[name] = array
    for name, array in made.parameters.items():
        if f"{name}.{AVERAGE}" in made.state:
            made.state[f"{name}.{AVERAGE}"] = array.copy()
