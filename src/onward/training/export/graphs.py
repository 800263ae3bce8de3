"""Losses and optimizers that are known as graphs only: each is converted by the backend, as a module of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

from onward.backends.backend import Backend, Options
from onward.backends.emit import safetensors
from onward.backends.emit.custom_ops.rules import with_plugins
from onward.backends.emit.package import Source
from onward.graph.build import Builder, Tensor
from onward.model import Model
from onward.training.export.state import NotInWords, Place
from onward.training.info.combined import cut
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.step_graphs import LOSS, give_out
from onward.training.trainable import Trainable

Write = Callable[[BinaryIO], object]
LOSS_MODULE, UPDATE_MODULE = "loss", "optimizer"
STEP_MODULE, MOVE_MODULE, HELD_MODULE = "step", "update", "weights"
"""Of a training that is called as graphs: `step` has all up to the gradients, `update` makes of these a step, and
`weights` makes the model's weights of what a step changes."""
GIVEN = ("w", "g", "lr", "decay", "step")
"""What an optimizer is given of a weight, before its states."""
# fmt: off
BY_ELEMENT = frozenset([
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Constant", "Div", "Equal", "Erf", "Exp", "Floor",
    "Greater", "GreaterOrEqual", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min",
    "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sqrt", "Sub", "Sum",
    "Tanh", "Where",
])
# fmt: on
"""Ops that do not care in which order the elements of a tensor stand."""


@dataclass(frozen=True)
class LossGraph:
    """A loss that is a module, and what it is called with: kind (`output`, `batch` or `weight`), name, and its axes."""

    source: Source
    arguments: Sequence[tuple[str, str, tuple[int, ...] | None]]
    by_rows: bool = False
    """Whether each of the outputs that it is called with is known to have a row for each row of the data."""


@dataclass(frozen=True)
class Graphs:
    """How a framework converts a graph to a module beside the model, and calls it: as an object of a class."""

    backend: Backend

    def source(self, graph: ir.Model, name: str, draws: bool = False) -> Source:
        """`draws`: it draws random numbers."""
        graph.graph.name = name
        return self.backend.generate(Model(graph), Options(trainable=False))

    def traceable(self, source: Source) -> bool:
        """Whether the framework may compile it for fixed sizes of a batch."""
        return True

    def instance(self, name: str, source: Source) -> tuple[list[str], str]:
        """The imports of such a module, and what makes of it something to be called with the inputs of the graph."""
        load = f"make_{name}_graph" if _loads(source) else f"{name.capitalize()}Graph"
        own = f"from .{name} import {'load' if _loads(source) else 'Model'} as {load}"
        return [own], f"{name.upper()} = {load}()"


@dataclass(frozen=True)
class Modules:
    """The modules beside the model, by name."""

    sources: Mapping[str, Source]
    graphs: Graphs

    def instances(self) -> tuple[list[str], list[str]]:
        """The imports of all, and the constants that are made of them."""
        found = [self.graphs.instance(name, source) for name, source in self.sources.items()]
        return [line for lines, _ in found for line in lines], [line for _, line in found]

    def files(self) -> dict[str, Write | None]:
        found: dict[str, Write | None] = {}
        for name in (LOSS_MODULE, UPDATE_MODULE, STEP_MODULE, MOVE_MODULE, HELD_MODULE):
            source = self.sources.get(name)
            found[f"{name}.py"] = None if source is None else _text(name, source)
            held = None if source is None or not _loads(source) else _tensors(source)
            found[f"{name}_constants.safetensors"] = held
        return found

    def with_helpers(self, source: Source, runtime: str, about: str) -> Source:
        """The package of the model, with the helpers that these modules need too."""
        return helped(source, [one.model for one in self.sources.values()], runtime, about)


def helped(source: Source, more: Sequence[str], runtime: str, about: str) -> Source:
    """A package with the helpers that `more` modules beside the model call, as `ops.resize` or by an import."""
    if not more:
        return source
    texts = [source.model, *more]
    lines = [names for text in texts for names in re.findall(r"^from \.ops import (.+)$", text, re.M)]
    helpers = {name.strip() for line in lines for name in line.split(",")}
    helpers |= {name for text in texts for name in re.findall(r"(?<=\bops\.)\w+", text)}
    return replace(source, ops=with_plugins(runtime, helpers).source(helpers, about) if helpers else None)


def _text(name: str, source: Source) -> Write:
    text = source.model.replace("weights.safetensors", f"{name}_constants.safetensors")
    return lambda file: file.write(text.encode())


def _loads(source: Source) -> bool:
    """Whether it reads a file of tensors, be it an empty one."""
    return "def load" in source.model


def _tensors(source: Source) -> Write:
    return lambda file: safetensors.write(file, source.tensors, source.dtypes)


def loss_graph(
    trainable: Trainable, outputs: Mapping[str, ir.Value], places: Sequence[Place], graphs: Graphs
) -> LossGraph:
    """What computes the loss of the model's outputs, of the data, and of weights where it is about those too."""
    starts = {value.name or "": name for name, value in outputs.items()}
    graph = cut(trainable.gradients, starts, {LOSS: "loss"})
    held = {place.onnx_name: place for place in places}
    arguments: list[tuple[str, str, tuple[int, ...] | None]] = []
    for value in list(graph.graph.inputs):
        name = value.name or ""
        if name in graph.graph.initializers:
            continue
        if not value.uses() and not value.is_graph_output():
            graph.graph.inputs.remove(value)
        elif name in outputs:
            arguments.append(("output", name, None))
        elif name in held:
            arguments.append(("weight", held[name].name, axes_of(held[name], value)))
        elif name in trainable.buffers:
            raise NotInWords(f"the loss depends on {name!r}, which a step changes: it cannot be written apart")
        else:
            arguments.append(("batch", name, None))
    used = [name for kind, name, _ in arguments if kind == "output"]
    return LossGraph(graphs.source(graph, LOSS_MODULE), arguments, _by_rows(trainable, outputs, used))


def _by_rows(trainable: Trainable, outputs: Mapping[str, ir.Value], used: Sequence[str]) -> bool:
    """Whether the first size of these outputs has the name that the first size of all data has."""
    original = trainable.original.ir.graph
    said = {value.name or "": value for value in original.outputs}
    rows = {_rows(value) for value in original.inputs if not value.is_initializer()}
    return len(rows) == 1 and None not in rows and all(rows & {_rows(said[n]), _rows(outputs[n])} for n in used)


def _rows(value: ir.Value) -> str | None:
    """The name of the first size, where it has one."""
    first = value.shape[0] if value.shape else None
    return None if first is None or isinstance(first, int) else first.value


def axes_of(place: Place, value: ir.Value) -> tuple[int, ...] | None:
    """How the axes of a weight in the source are turned to be those of the file; None where they are the same."""
    assert value.shape is not None
    shape = tuple(int(str(d)) for d in value.shape)
    if place.shape == shape and np.array_equal(place.order, np.arange(place.order.size)):
        return None
    order = place.order.reshape(place.shape)
    for axes in permutations(range(len(shape))):
        turned = order.transpose(axes) if len(axes) == order.ndim else None
        if turned is not None and turned.shape == shape and np.array_equal(turned.reshape(-1), np.arange(order.size)):
            return axes
    raise NotInWords(f"the loss depends on {place.onnx_name!r}, whose elements stand in another order here")


def update_graph(optimizer: OnnxOptimizer, places: Sequence[Place], graphs: Graphs) -> Source:
    """The step of one weight: of `w`, `g`, `lr`, `decay`, `step` and the states, these and `w` after it."""
    graph = ir.Graph([], [], nodes=[], name=UPDATE_MODULE, opset_imports={"": 21})
    op = Builder(ir.Model(graph, ir_version=10, producer_name="onward"))
    scalars = {"lr": ir.DataType.FLOAT, "decay": ir.DataType.FLOAT, "step": ir.DataType.INT64}

    def given(name: str) -> Tensor:
        kind = ir.TensorType(scalars.get(name, ir.DataType.FLOAT))
        value = ir.Value(name=name, type=kind, shape=ir.Shape([]) if name in scalars else None)
        graph.inputs.append(value)
        return op.tensor(value)

    tensors = {name: given(name) for name in (*GIVEN, *optimizer.states)}
    after, *states = optimizer.part.write(op, tensors)
    for name, tensor in zip(("w", *optimizer.states), (after, *states), strict=True):
        give_out(op, tensor, f"{name}.next")
    if not _any_order(graph):
        moved = [p for p in places if not np.array_equal(p.order, np.arange(p.order.size))]
        if moved:
            raise NotInWords(
                f"the optimizer looks at a weight as a whole, and {moved[0].name} has its elements in another order"
            )
    return graphs.source(op.model, UPDATE_MODULE)


def _any_order(graph: ir.Graph) -> bool:
    """Whether it makes no difference in which order the elements of a weight stand."""
    reshaped = [node for node in graph if node.op_type == "Reshape" and node.inputs[0] in graph.inputs]
    sizes = [ir.convenience.get_const_tensor(node.inputs[1]) for node in reshaped if node.inputs[1] is not None]
    is_flat = bool(sizes) and all(size is not None and size.numpy().tolist() == [-1] for size in sizes)
    for node in graph:
        whole = node.op_type.startswith("Reduce") and (
            is_flat or (len(node.inputs) < 2 and "axes" not in node.attributes)
        )
        if not (node.op_type in BY_ELEMENT or whole or (is_flat and node.op_type in ("Reshape", "Shape"))):
            return False
    return True
