"""`--simplify`: the same model at its own opset, with fewer nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onward.advice.nearest import meant
from onward.errors import OnwardError, UnsupportedError
from onward.graph.constants import plain_constants
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.origin import KEY as ORIGIN
from onward.graph.scan import keep_ranks, ranks_of_results
from onward.graph.trained import mark_weights
from onward.graph.unused import remove_unused
from onward.graph.walk import all_graphs, all_nodes
from onward.model import Model
from onward.passes.fewer.close_inputs import close_inputs
from onward.passes.fewer.drop_copies import drop_copies
from onward.passes.fewer.fold_pads import fold_pads
from onward.passes.fewer.fold_scalings import fold_scalings
from onward.passes.fewer.hold_constants import hold_constants
from onward.passes.fewer.join_moves import join_moves
from onward.passes.fewer.merge_equal import merge_equal
from onward.passes.fewer.move_weights import move_weights
from onward.passes.fewer.name_attention import name_attention
from onward.passes.fewer.name_idioms import name_idioms
from onward.passes.fewer.plain_recurrence import plain_recurrence
from onward.passes.fewer.resolve_shapes import resolve_shapes
from onward.passes.fewer.take_branches import take_branches
from onward.passes.fold_constants import fold_constants
from onward.passes.simplify import PLAIN, simplify

OLDEST = 7
"""Before it, ops broadcast in other ways."""
OPEN = 4
"""The IR version from which on a caller may replace an initializer that is an input; before, each had to be one."""


def _neutral(model: ir.Model) -> int:
    return simplify(model, PLAIN) + drop_copies(model)


PASSES: dict[str, tuple[str, Callable[[ir.Model], int]]] = {
    "inputs": ("weights that are all listed as inputs, as old exporters did, are weights alone", close_inputs),
    "initializers": ("Constant nodes become initializers of the same names", hold_constants),
    "shapes": ("numbers that follow from known shapes become constants", resolve_shapes),
    "neutral": ("nodes that change nothing go: Identity, x + 0, x · 1, casts to the same type, Dropout", _neutral),
    "constants": ("what small constants alone decide is computed once", fold_constants),
    "branches": ("an If whose condition is known becomes the branch that is taken", take_branches),
    "moves": (
        "a Reshape, Transpose, Slice or Squeeze that moves nothing goes, and two in a row become one",
        join_moves,
    ),
    "weights": ("a Reshape or Transpose of a weight that nothing else reads is done to the weight", move_weights),
    "scalings": ("factors, offsets and BatchNormalization go into the weights of the layer before them", fold_scalings),
    "pads": ("zeros around the input of a convolution become its padding", fold_pads),
    "recurrence": (
        "recurrent layers start from zero by themselves, and read from the end by themselves",
        plain_recurrence,
    ),
    "idioms": (
        "formulas become the operator that the opset has for them: LayerNormalization, Gelu, HardSwish",
        name_idioms,
    ),
    "attention": ("softmax(q · kᵀ) · v becomes Attention, which opset 23 has", name_attention),
    "equal": ("nodes that compute the same become one", merge_equal),
}
"""By name: what a pass does, and the pass. They are applied in this order until nothing changes."""
ROUNDS = 10
GROWING = ("constants", "shapes")
"""Passes that put constants in the place of nodes. They are left out where the file would grow."""


@dataclass(frozen=True)
class Smaller:
    """A model with fewer nodes."""

    model: Model
    before: int
    """Nodes, those of graphs inside nodes included."""
    after: int


def smaller(model: Model, without: Collection[str] = ()) -> Smaller:
    """A copy with fewer nodes, of the same opset and with the same names of inputs, outputs and weights."""
    if unknown := [name for name in without if name not in PASSES]:
        raise OnwardError(f"there is no pass {unknown[0]!r}; there are {', '.join(PASSES)}{meant(unknown[0], PASSES)}")
    opset = model.opset.get("", model.opset.get("ai.onnx", OLDEST))
    if opset < OLDEST:
        raise UnsupportedError(f"the model is of opset {opset}, which is too old to be simplified: give a newer opset")
    if model.training_info:
        raise UnsupportedError("the model has training information, whose step names the values that would go")
    made = model.copy()
    graph = made.ir
    plain_constants(graph)
    old = set(all_nodes(graph.graph))
    is_fixed = 0 < made.ir_version < OPEN
    inputs = [value for value in graph.graph.inputs if not value.is_initializer()]
    if is_fixed:
        graph.graph.inputs[:] = inputs
    mark_weights(graph)
    if "inputs" not in without:
        close_inputs(graph)
    ends = {each: [(value.type, value.shape) for value in _ends(each)] for each in all_graphs(graph.graph)}
    described = {_place(value): (value.type, value.shape) for value in _made(graph)}
    held = [] if is_fixed else _hide_defaults(graph)
    chosen = [run for name, (_, run) in PASSES.items() if name not in without]
    for _ in range(ROUNDS):
        if "shapes" in without:
            infer(graph)  # others have to know of what types numbers are
        if not sum(run(graph) for run in chosen):
            break
        remove_unused(graph)
    remove_unused(graph)
    for value, tensor in held:
        value.const_value = tensor
    ranks = ranks_of_results(graph)
    for each in all_graphs(graph.graph):
        for value, declared in zip(_ends(each), ends[each], strict=True):
            value.type, value.shape = declared
    keep_ranks(ranks)
    if is_fixed:
        graph.graph.inputs.extend(graph.graph.initializers.values())
        if made.outline().ir_version >= OPEN:  # which the opset demands
            graph.graph.inputs[:] = inputs
    for value in _made(graph):
        if not value.is_graph_output():  # what was inferred takes room in the file, and may say less
            value.type, value.shape = described.get(_place(value), (None, None))
    for node in all_nodes(graph.graph):
        node.metadata_props.pop(ORIGIN, None)
    _name_apart(graph, old)
    made.path = None
    made.validate()
    after = sum(1 for _ in all_nodes(graph.graph))
    left = next((name for name in GROWING if name not in without), None)
    if left is not None and _size(made) > _size(model):
        return smaller(model, [*without, left])
    return Smaller(made, len(old), after)


def _size(model: Model) -> int:
    """About how many bytes its file has."""
    return int(model.outline().ByteSize()) + model.nbytes


def _name_apart(model: ir.Model, old: set[ir.Node]) -> None:
    """Nodes that came in have names of their own: what they stand for may have stayed."""
    names = Names(model)
    for graph in all_graphs(model.graph):
        taken = {node.name for node in graph if node in old}
        for node in graph:
            if node not in old and node.name:
                node.name = names.node(node.name) if node.name in taken else node.name
                taken.add(node.name)


def _ends(graph: ir.Graph) -> list[ir.Value]:
    return [*graph.inputs, *graph.outputs]


def _made(model: ir.Model) -> list[ir.Value]:
    return [value for node in all_nodes(model.graph) for value in node.outputs]


def _place(value: ir.Value) -> tuple[Any, str | None]:
    node = value.producer()
    return None if node is None else node.graph, value.name


def _hide_defaults(model: ir.Model) -> list[tuple[ir.Value, ir.TensorProtocol]]:
    """Take their numbers from inputs that have a default, which a caller may replace."""
    found = [(v, v.const_value) for v in model.graph.inputs if v.is_initializer() and v.const_value is not None]
    for value, _ in found:
        value.const_value = None
    return found
