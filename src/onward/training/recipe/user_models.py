"""Models of the user's as parts of a training graph: a loss, an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import onnx_ir as ir

from onward.canon.upgrade import upgrade
from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor
from onward.graph.infer import infer
from onward.graph.walk import all_graphs, inner_graphs
from onward.model import Model, load
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.recipe.losses import Dims, Target
from onward.training.recipe.optimizers import Moment, State, Update


def adopt(op: Builder, body: ir.Graph, given: Sequence[ir.Value]) -> tuple[list[ir.Node], list[ir.Value]]:
    """Move the nodes of a graph that nobody else needs into the one of `op`, with `given` for its inputs.

    Gives the nodes, and what were the outputs.
    """
    for value, new in zip(body.inputs, given, strict=True):
        value.replace_all_uses_with(new, replace_graph_outputs=True)
    outputs = list(body.outputs)
    body.outputs.clear()
    for value in list(body.initializers.values()):
        body.initializers.pop(value.name or "")
        value.name = op.names.value(f"{op.scope}{value.name}")
        op.model.graph.register_initializer(value)
    nodes = list(body)
    for node in nodes:
        body.remove(node)
        node.name = op.names.node(f"{op.scope}{node.name or node.op_type}")
        for inner in (g for graph in inner_graphs(node) for g in all_graphs(graph)):
            _rename(op, [*inner.inputs, *inner.initializers.values(), *(o for n in inner for o in n.outputs)])
        _rename(op, node.outputs)
        op.graph.append(node)
        op.inference.node(node)
    return nodes, outputs


def _rename(op: Builder, values: Sequence[ir.Value]) -> None:
    for value in dict.fromkeys(values):
        if value.name:
            value.name = op.names.value(f"{op.scope}{value.name}")


@dataclass(frozen=True)
class Part:
    """A model that is written into others."""

    source: Any
    what: str

    @cached_property
    def model(self) -> Model:
        return load(self.source)

    @cached_property
    def _prepared(self) -> ir.Model:
        return differentiable(self.model)

    @property
    def inputs(self) -> list[ir.Value]:
        """Those that are no weights."""
        graph = self._prepared.graph
        return [value for value in graph.inputs if value.name not in graph.initializers]

    @property
    def outputs(self) -> list[ir.Value]:
        return list(self._prepared.graph.outputs)

    def write(self, op: Builder, given: Mapping[str, Tensor]) -> list[Tensor]:
        """Write its nodes with tensors for its inputs; gives its outputs."""
        copy = self._prepared.clone()
        own, version = copy.opset_imports.get("", 0), op.model.opset_imports[""]
        if own > version:
            raise OnwardError(f"the {self.what} is of opset {own}, newer than the model's {version}: convert the model")
        if own < version:
            upgrade(copy, version)
            infer(copy)
        for value in list(copy.graph.inputs):
            if value.name in copy.graph.initializers:
                copy.graph.inputs.remove(value)
        values = [given[value.name or ""].value for value in copy.graph.inputs]
        return [op.tensor(value) for value in adopt(op, copy.graph, values)[1]]


@dataclass(frozen=True)
class OnnxLoss:
    """A model as a loss: its first input, or the one called `prediction`, is the prediction, its first output the loss.

    Its other inputs become inputs of the training step. An output that is no scalar is averaged.
    """

    source: Any
    prediction: str | None = None
    part: Part = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", Part(self.source, "loss model"))

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        names = [value.name or "" for value in self.part.inputs]
        if not names or not self.part.outputs:
            raise OnwardError("a model that is a loss has an input for the prediction, and an output")
        own = self.prediction if self.prediction is not None else names[0]
        if own not in names:
            raise OnwardError(f"the loss model has no input {own!r}; it has {', '.join(names)}")
        given = {own: prediction}
        for value in self.part.inputs:
            if value.name != own:
                shape: Dims | None = op.tensor(value).dims
                given[value.name or ""] = target(value.name or "", value.dtype or ir.DataType.FLOAT, shape)
        found = self.part.write(op, given)[0]
        return found if found.rank == 0 else op.ReduceMean(found, keepdims=0)


@dataclass(frozen=True)
class OnnxOptimizer:
    """A model as an optimizer, parameter by parameter.

    Its inputs are called `w`, `g`, `lr`, and if it needs them `step` (int64, 1 at the first one) and `decay`; any other
    is a state, of the shape of the parameter, zero at first or `initial`. Its first output is the new `w`, then come
    the new states in the order of the inputs.
    """

    name: ClassVar[str] = "onnx"
    source: Any
    lr: float = 1e-3
    weight_decay: float = 0.0
    by_element: bool = False
    """Whether each element of a parameter goes its own way; steps are faster then."""
    initial: Mapping[str, float] = field(default_factory=dict)
    """What states start from that do not start from zero."""
    part: Part = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", Part(self.source, "optimizer model"))
        names = [value.name or "" for value in self.part.inputs]
        if missing := {"w", "g"} - set(names):
            raise OnwardError(f"the optimizer model has no input {sorted(missing)[0]!r}; it has {', '.join(names)}")
        if len(self.part.outputs) != 1 + len(self.states):
            count = len(self.part.outputs)
            raise OnwardError(f"the optimizer model has {count} outputs for w and the states {', '.join(self.states)}")

    @property
    def states(self) -> tuple[str, ...]:
        names = [value.name or "" for value in self.part.inputs]
        return tuple(name for name in names if name not in ("w", "g", "lr", "step", "decay"))

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        given = {"w": w, "g": g, "lr": now.lr.cast(w.dtype), "step": now.step, "decay": op.like(now.decay, w), **state}
        after, *states = self.part.write(op, given)
        return after, dict(zip(self.states, states, strict=True))
