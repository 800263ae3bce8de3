"""A training that a framework has no words for goes on there all the same: its graphs are converted and called.

What ONNX Runtime runs in a step is at most two graphs: one from data to the loss, the gradients and the running
statistics, and one from the gradients to the weights and the optimizer's state after the step. A step that was
captured as a whole is the first alone. Each becomes a module beside the model, and so does what makes the model's
weights, in the layout that they have there, of what a step changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import onnx_ir as ir

from onward.backends.backend import Backend
from onward.backends.emit.package import Source
from onward.errors import UnsupportedError
from onward.graph.build import Builder, Tensor
from onward.graph.held_weights import homes, with_weights
from onward.graph.walk import all_nodes
from onward.spec.random import RANDOM
from onward.training.export.graphs import HELD_MODULE, MOVE_MODULE, STEP_MODULE, Graphs, Modules, Write
from onward.training.export.plan import README, WHOLE_STATE, dtype_of, now, without_caches, write
from onward.training.export.state import Place, places_in
from onward.training.export.whole_script import Framework, Script
from onward.training.recipe.caches import empty_caches
from onward.training.recipe.ctc import CTC
from onward.training.recipe.modes import inference_mode
from onward.training.step_graphs import give_out
from onward.training.trainable import Trainable

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Target:
    """A framework that graphs are called in."""

    model: Backend
    """What the model is converted by."""
    graphs: Graphs
    words: Framework
    runtime: str
    """Where its helpers lie."""
    about: str
    """What ops.py says of them."""


def write_whole_step(
    trainable: Trainable | Trainer,
    target: Target,
    why: str,
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    more: Callable[[Source], Mapping[str, Write | None]] = lambda source: {},
) -> Path:
    """Write a package whose train.py calls the graphs of the training; `why` there are no words for it.

    `more` are files of the model besides those that every package has.
    """
    given, lr = now(trainable)
    if any(isinstance(term.loss, CTC) and term.loss.concatenated for term in given.loss or ()):
        raise UnsupportedError("CTC labels that are concatenated cannot be cut into batches: use padded ones")
    source, places = _model(given, target.model)
    draws = any(_draws(node) for node in all_nodes(given.gradients.graph))
    graphs = {STEP_MODULE: given.gradients.clone()}
    if given.parameters:
        graphs[MOVE_MODULE] = given.update.clone()
    if places:
        graphs[HELD_MODULE] = held_graph(given, places)
    state = {**given.parameters, **given.state, **given.buffers}
    modules = Modules(
        {name: target.graphs.source(graph, name, draws and name == STEP_MODULE) for name, graph in graphs.items()},
        target.graphs,
    )
    fed = [value for value in graphs[STEP_MODULE].graph.inputs if _name(value) not in state]
    script = Script(
        data={_name(value): dtype_of(value) for value in fed if value.name not in given.labels},
        labels={_name(value): dtype_of(value) for value in fed if value.name in given.labels},
        outputs=[],
        terms=[],
        optimizer=given.optimizer,
        lr=lr,
        groups={},
        slots=[],
        steps=given.step,
        trains=True,
        clip_norm=None,
        clip_value=None,
        accumulate=given.accumulate,
        schedule=given.schedule,
        modules=modules,
        words=target.words,
        files=["weights.safetensors", *(["constants.safetensors"] if source.constants else [])],
        draws=draws,
        reads={name: [_name(v) for v in _inputs(graph)] for name, graph in graphs.items()},
        gives={name: [_name(v) for v in graph.graph.outputs] for name, graph in graphs.items()}
        | ({HELD_MODULE: [place.name for place in places]} if places else {}),
    )
    source = modules.with_helpers(source, target.runtime, target.about)
    readme = script.readme(why).replace("PACKAGE.train", f"{Path(out).absolute().name}.train", 1)

    def write_readme(file: BinaryIO) -> None:
        file.write(readme.encode())

    return write(
        source, script, script.text(), {WHOLE_STATE: state}, out, {README: write_readme, **more(source)}, force=force
    )


def _name(value: ir.Value) -> str:
    return value.name or ""


def _inputs(graph: ir.Model) -> list[ir.Value]:
    return [value for value in graph.graph.inputs if value.name not in graph.graph.initializers]


def _draws(node: ir.Node) -> bool:
    """Whether a node draws random numbers that no seed decides."""
    if node.domain not in ("", "ai.onnx") or "seed" in node.attributes:
        return False
    return node.op_type in RANDOM or (node.op_type == "Dropout" and len(node.inputs) > 2)


def _model(trainable: Trainable, backend: Backend) -> tuple[Source, list[Place]]:
    """The model that others use, with the weights as they are now, and where it has those that a step changes."""
    known = homes(trainable.original.ir.graph)
    held = {name: array for name, array in trainable.buffers.items() if name in known}
    held |= trainable.weights(trainable.parameters)
    model = with_weights(trainable.original, held)
    model.path = trainable.original.path
    if without_caches(trainable):
        empty_caches(model.ir)
    inference_mode(model.ir)
    trained = [name for name in held if name not in trainable.buffers]
    return places_in(model, held, trained or True, backend)


def held_graph(trainable: Trainable, places: Sequence[Place]) -> ir.Model:
    """What makes the weights of a model, by their names there, of what a step changes."""
    graph = ir.Graph([], [], nodes=[], name=HELD_MODULE, opset_imports={"": 21})
    op = Builder(ir.Model(graph, ir_version=10, producer_name="onward"))
    arrays = {**trainable.parameters, **trainable.buffers}
    made: dict[str, Tensor] = {}

    def given(name: str) -> Tensor:
        if name not in made:
            array = arrays[name]
            kind = ir.TensorType(ir.DataType.from_numpy(array.dtype))
            value = ir.Value(name=op.names.value(name), type=kind, shape=ir.Shape(array.shape))
            graph.inputs.append(value)
            made[name] = op.tensor(value)
        return made[name]

    for place in places:
        adapter = trainable.adapters.get(place.onnx_name)
        if adapter is None:
            weight = given(place.onnx_name)
        else:
            base = trainable.gradients.graph.initializers[adapter.base].const_value
            assert base is not None
            product = given(adapter.a) @ given(adapter.b) * adapter.scale
            weight = op.constant(base.numpy()) + (op.Transpose(product, perm=[1, 0]) if adapter.transposed else product)
        give_out(op, _moved(op, weight, place), place.name)
    return op.model


def _moved(op: Builder, weight: Tensor, place: Place) -> Tensor:
    """A weight with its elements where the model has them."""
    shape = [int(str(d)) for d in weight.dims or ()]
    elements = np.arange(place.order.size).reshape(shape)
    if np.array_equal(place.order, elements.reshape(-1)):
        return weight if tuple(shape) == place.shape else op.Reshape(weight, op.ints(list(place.shape)))
    for axes in permutations(range(len(shape))):
        turned = elements.transpose(axes)
        if np.array_equal(turned.reshape(-1), place.order):
            found = op.Transpose(weight, perm=list(axes))
            return found if turned.shape == place.shape else op.Reshape(found, op.ints(list(place.shape)))
    found = op.Gather(op.Reshape(weight, op.ints([-1])), op.constant(place.order.astype(np.int64)))
    return op.Reshape(found, op.ints(list(place.shape)))
