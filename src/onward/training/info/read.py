"""A file of training as a trainable model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import InvalidModelError, OnwardError
from onward.hub.large_tensors import completed
from onward.model import Model
from onward.model import load as load_model
from onward.training.info.check import check
from onward.training.info.combined import combined, cut, standard_ops
from onward.training.info.foreign import from_others
from onward.training.info.preview_ops import uses_training_ops
from onward.training.recipe.caches import cache_names
from onward.training.recipe.described import (
    KEY,
    Recipe,
    is_stored,
    read_loss,
    read_optimizer,
    read_schedule,
    recipes,
    without,
)
from onward.training.recipe.optimizers import AVERAGE
from onward.training.step_graphs import LEARNING_RATE, LOSS, NUMBERS, ROWS, STEP
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]


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
    given = {recipe.rows[name][i]: f"{name}.{part}" for name in recipe.rows for i, part in enumerate((ROWS, NUMBERS))}
    ends |= given
    inputs = {value.name or "" for value in model.ir.graph.inputs} - cache_names(model.ir.graph) | set(recipe.labels)
    derive = cut(whole, starts, ends, inputs)
    optimizer, rules = read_optimizer(recipe.optimizer), recipe.read_rules()
    if is_stored(optimizer):
        starts = {name: name for name in recipe.parameters} | grads | given
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
        list(recipe.rows),
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
