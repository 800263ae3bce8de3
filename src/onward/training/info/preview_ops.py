"""The ops of `ai.onnx.preview.training`: what they say, in standard ops.

Their optimizers are not those of `torch.optim`: Adam adds epsilon before the correction of the second moment, and
counts steps as the caller does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.graph.build import Builder, Tensor
from onward.graph.origin import origin
from onward.graph.replace import DOMAIN, new_node
from onward.graph.walk import all_nodes, inner_graphs
from onward.model import Model
from onward.passes.gradients import enclose_gradients
from onward.spec.training import TRAINING, Adagrad, Adam, Momentum
from onward.training.autodiff.prepare_graph import differentiable, lower_for_gradients
from onward.training.autodiff.reverse import gradients
from onward.training.recipe.optimizers import Moment, State, Update
from onward.training.recipe.user_models import adopt

DERIVATIVES = "Derivatives"
"""`onward::Derivatives(xs…, y)`: a Gradient node at the very tensors it names."""


def adam(
    op: Builder, rate: Tensor, count: Tensor, x: Tensor, g: Tensor, v: Tensor, h: Tensor, *, p: Adam
) -> list[Tensor]:
    g = g + x * p.norm_coefficient if p.norm_coefficient else g
    v = v * p.alpha + g * (1 - p.alpha)
    h = h * p.beta + g * g * (1 - p.beta)
    t = count.cast(ir.DataType.DOUBLE)
    correction = op.Sqrt(1 - op.Pow(op.like(p.beta, t), t)) / (1 - op.Pow(op.like(p.alpha, t), t))
    adjusted = rate.cast(x.dtype) * op.where(t > 0, correction, 1).cast(x.dtype)
    new = x - v * adjusted / (op.Sqrt(h) + p.epsilon)
    return [new * (1 - p.norm_coefficient_post) if p.norm_coefficient_post else new, v, h]


def adagrad(op: Builder, rate: Tensor, count: Tensor, x: Tensor, g: Tensor, h: Tensor, *, p: Adagrad) -> list[Tensor]:
    r = rate.cast(x.dtype)
    if p.decay_factor:
        r = r / (count.cast(x.dtype) * p.decay_factor + 1)
    g = g + x * p.norm_coefficient if p.norm_coefficient else g
    h = h + g * g
    return [x - g * r / (op.Sqrt(h) + p.epsilon), h]


def momentum(op: Builder, rate: Tensor, count: Tensor, x: Tensor, g: Tensor, v: Tensor, *, p: Momentum) -> list[Tensor]:
    g = g + x * p.norm_coefficient if p.norm_coefficient else g
    scaled = g
    if p.beta != 1:
        scaled = g * op.where(count.cast(ir.DataType.INT64) > 0, op.like(p.beta, x), 1)
    v = v * p.alpha + scaled
    return [x - (g + v * p.alpha if p.is_nesterov else v) * rate.cast(x.dtype), v]


FORMULAS: dict[str, tuple[type[Any], Callable[..., list[Tensor]], int]] = {
    "Adam": (Adam, adam, 4),
    "Adagrad": (Adagrad, adagrad, 3),
    "Momentum": (Momentum, momentum, 3),
}
"""What each optimizer means, its formula, and how many tensors it takes for each that is optimized."""


@dataclass(frozen=True)
class _Standard:
    """An optimizer of the standard as one of ours; `first` is what its T is at the first step."""

    by_element: ClassVar[bool] = True
    op_type: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    first: int

    @property
    def states(self) -> tuple[str, ...]:
        return self.slots

    @property
    def attributes(self) -> dict[str, Any]:
        """Of the node, but for weight decay."""
        raise NotImplementedError

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        count = now.step + (self.first - 1) if self.first != 1 else now.step
        meaning, formula, _ = FORMULAS[self.op_type]
        p = meaning(**self.attributes, norm_coefficient=now.decay)
        new, *after = formula(op, now.lr, count, w, g, *(state[slot] for slot in self.slots), p=p)
        return new, dict(zip(self.slots, after, strict=True))


@dataclass(frozen=True)
class OnnxAdam(_Standard):
    """Adam as `ai.onnx.preview.training` defines it."""

    name: ClassVar[str] = "onnx_adam"
    op_type: ClassVar[str] = "Adam"
    slots: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    first: int = 1
    lr: float = 1e-3
    alpha: float = 0.9
    beta: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    norm_coefficient_post: float = 0.0

    @property
    def attributes(self) -> dict[str, Any]:
        post = {"norm_coefficient_post": self.norm_coefficient_post}
        return {"alpha": self.alpha, "beta": self.beta, "epsilon": self.epsilon, **post}


@dataclass(frozen=True)
class OnnxAdagrad(_Standard):
    """Adagrad as `ai.onnx.preview.training` defines it."""

    name: ClassVar[str] = "onnx_adagrad"
    op_type: ClassVar[str] = "Adagrad"
    slots: ClassVar[tuple[str, ...]] = ("sum",)
    first: int = 0
    lr: float = 1e-2
    decay_factor: float = 0.0
    epsilon: float = 1e-10
    weight_decay: float = 0.0

    @property
    def attributes(self) -> dict[str, Any]:
        return {"decay_factor": self.decay_factor, "epsilon": self.epsilon}


@dataclass(frozen=True)
class OnnxMomentum(_Standard):
    """Momentum as `ai.onnx.preview.training` defines it."""

    name: ClassVar[str] = "onnx_momentum"
    op_type: ClassVar[str] = "Momentum"
    slots: ClassVar[tuple[str, ...]] = ("momentum_buffer",)
    first: int = 0
    lr: float = 1e-3
    alpha: float = 0.9
    beta: float = 1.0
    mode: Literal["standard", "nesterov"] = "standard"
    weight_decay: float = 0.0

    @property
    def attributes(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "beta": self.beta, "mode": self.mode}


def expand(model: Model) -> ir.Model:
    """A copy of the graph in which `Gradient` and the optimizers are standard ops."""
    graph = model.ir.clone()
    graph.opset_imports.setdefault("", 21)
    if _point_out(graph):
        graph.graph.sort()
    enclose_gradients(graph)
    made = differentiable(Model(graph))
    for node in _stray(made.graph):
        raise UnsupportedError(f"{origin(node)}: inside the body of another node it is not expanded")
    while (found := next(filter(_is_training, made.graph), None)) is not None:
        _replace(found, _expanded(made, found))
        made.graph.sort()
    made.opset_imports.pop(TRAINING, None)
    return made


def _point_out(model: ir.Model) -> bool:
    """Make the y of Gradient nodes an input of theirs, where they are about the very tensors they are given."""
    graph = model.graph
    found = [node for node in graph if node.op_type == "Gradient" and node.domain == TRAINING]
    if not found:
        return False
    named = {v.name: v for v in (*graph.inputs, *graph.initializers.values()) if v.name}
    made = {output.name: output for node in graph for output in node.outputs if output.name}
    for node in found:
        xs, zs = (list(node.attributes.get_strings(key, ())) for key in ("xs", "zs"))
        y = made.get(node.attributes.get_string("y", ""))
        if y is None or [named.get(name) for name in (*xs, *zs)] != list(node.inputs) or None in node.inputs:
            continue
        new = new_node(
            DERIVATIVES, [*node.inputs[: len(xs)], y], {}, node, node, domain=DOMAIN, outputs=len(node.outputs)
        )
        _rename(node, new.outputs)
        graph.remove(node, safe=True)
        made |= {output.name: output for output in new.outputs if output.name}
    return True


def _is_training(node: ir.Node) -> bool:
    ours = node.domain == DOMAIN and node.op_type in (DERIVATIVES, "Gradient")
    return ours or (node.domain == TRAINING and node.op_type in FORMULAS)


def _stray(graph: ir.Graph) -> Iterator[ir.Node]:
    """Training ops in bodies of other nodes."""
    for node in graph:
        for body in inner_graphs(node):
            if node.domain != DOMAIN:
                yield from filter(_is_training, body)
            yield from _stray(body)


def _expanded(model: ir.Model, node: ir.Node) -> Sequence[Tensor]:
    if node.domain == TRAINING:
        return _optimized(Builder(model), node)
    if node.op_type == DERIVATIVES:
        *given, y = node.inputs
        xs = [value for value in given if value is not None]
    else:
        xs, y = _inlined(model, node)
    assert y is not None
    y, xs = lower_for_gradients(model, y, xs)
    op = Builder(model)
    found = gradients(op, y, xs)
    return [op.zeros_like(op.tensor(x)) if g is None else g for x, g in zip(xs, found, strict=True)]


def _inlined(model: ir.Model, node: ir.Node) -> tuple[list[ir.Value], ir.Value]:
    """The body of an `onward::Gradient` in the graph around it, cut off from what its inputs depend on."""
    op = Builder(model)
    body = node.attributes["body"].as_graph().clone(allow_outer_scope_values=True)
    starts = [op.Identity(value).value for value in node.inputs]
    nodes, (y,) = adopt(op, body, starts)
    for inner in filter(_is_training, nodes):
        _replace(inner, _expanded(model, inner))
    return starts[: node.attributes.get_int("count", 0)], y


def _optimized(op: Builder, node: ir.Node) -> list[Tensor]:
    """Tensors come kind by kind, not one optimized tensor after the other."""
    meaning, formula, kinds = FORMULAS[node.op_type]
    given = [op.tensor(value) for value in node.inputs if value is not None]
    if len(given) != len(node.inputs) or len(given) < 2 + kinds or (len(given) - 2) % kinds:
        raise InvalidModelError(f"{origin(node)}: {len(given) - 2} tensors are not {kinds} for each optimized one")
    rate, count, *tensors = given
    size = len(tensors) // kinds
    results = [formula(op, rate, count, *tensors[i::size], p=meaning.of(node)) for i in range(size)]
    return [result[kind] for kind in range(kinds - 1) for result in results]


def _replace(node: ir.Node, results: Sequence[Tensor]) -> None:
    """Let tensors take the place of a node's outputs, by name as well."""
    op = results[0].op
    _rename(node, [op.Identity(result).value for result in results[: len(node.outputs)]])
    assert isinstance(node.graph, ir.Graph)
    node.graph.remove(node, safe=True)


def _rename(node: ir.Node, results: Sequence[ir.Value]) -> None:
    for old, new in zip(node.outputs, results, strict=True):
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name, new.name = None, old.name
        new.type, new.shape = new.type or old.type, new.shape or old.shape


def uses_training_ops(graph: ir.Graph) -> bool:
    """Whether there is a `Gradient` or an optimizer of the standard anywhere in a graph."""
    return any(node.domain == TRAINING for node in all_nodes(graph))
