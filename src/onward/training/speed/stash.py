"""What the way forward makes and the way back reads is held as bfloat16 in between: half the memory, fewer digits.

The way forward itself reads what it has computed, so that the loss is the same. Weights and the optimizer's state stay
as they are: a step is often smaller than bfloat16 can tell from nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx
import onnx.helper as oh
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.walk import all_nodes, inner_graphs
from onward.training.speed.families import Families, is_view
from onward.training.speed.lifetimes import reads
from onward.training.speed.recompute import AGAIN
from onward.training.speed.segments import ANEW

BFLOAT16 = "bfloat16"
LEAST = 4096
"""Elements of a tensor that is worth it."""
UNKNOWN = 32
"""What a dimension is taken for that a graph does not know, most often the size of a batch."""
NEAR = 8
"""Nodes in between for which a value is held as it is."""
COMPARES = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
ROUNDS = ("ArgMax", "ArgMin", "TopK", "Floor", "Ceil", "Round", "Mod", "MaxPool", "NonZero", "Unique", "QuantizeLinear")
"""What may be something else altogether for a number that is rounded; comparing with zero is not among it."""


def check_stash(dtype: str | None) -> None:
    if dtype not in (None, BFLOAT16):
        raise OnwardError(f"stash: values are held as bfloat16, or as they are, not as {dtype!r}")


def stash(graph: onnx.GraphProto, loss: str, values: Roundable) -> None:
    """Change a graph whose nodes are in order; they are in order again then."""
    families = Families(graph, ".held")
    turn = next(place for place, node in enumerate(graph.node) if loss in node.output)
    exact = _exact(graph.node[turn + 1 :], values)
    for place, node in enumerate(graph.node[:turn]):
        for name in node.output:
            family = None if is_view(node) else families.of(name)
            if family is not None and exact.isdisjoint(family) and not values.large.isdisjoint(family):
                _hold(families, family, place, turn)
    families.insert(graph)
    _remove_unread(graph)


def _remove_unread(graph: onnx.GraphProto) -> None:
    """Views on the way back, whose copies are read instead, would hold what they are views of."""
    read = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if not is_view(node) or node.output[0] in read:
            read.update(reads(node))
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))


def _exact(way_back: Sequence[onnx.NodeProto], values: Roundable) -> set[str]:
    """What may not be rounded, whatever it is called now, and what that is computed from on the way back."""
    found, signs = set(values.exact), set(values.signs)
    for node in reversed(way_back):
        if node.op_type in COMPARES + ROUNDS:
            found.update(set(node.input) - signs)
        for name in node.output:
            first = name.removesuffix(AGAIN).removesuffix(ANEW)
            if first != name and not signs.isdisjoint((first, name)):
                (signs if node.op_type == "Relu" else found).update(node.input)
            if not found.isdisjoint((first, name)):
                found.update(node.input)
    return found


def _hold(families: Families, family: dict[str, onnx.NodeProto | None], place: int, turn: int) -> None:
    name = next(iter(family))
    uses = families.uses(family)
    last = max((at for at, _, _ in uses if at <= turn), default=place)
    late = [use for use in uses if use[0] > turn]
    if not late or late[0][0] - last < NEAR:
        return
    short = f"{name}.{BFLOAT16}"
    families.add(last + 1, oh.make_node("Cast", [name], [short], to=onnx.TensorProto.BFLOAT16))
    families.add(late[0][0], oh.make_node("Cast", [short], [families.copy(name)], to=onnx.TensorProto.FLOAT))
    families.redirect(family, late)


@dataclass(frozen=True)
class Roundable:
    """Names of large tensors that the loss is computed from, and of values that may not be rounded."""

    large: frozenset[str]
    exact: frozenset[str]
    signs: frozenset[str]
    """Values that are compared with zero: they may be rounded, but not what they are computed from again."""


def roundable(graph: ir.Graph, loss: str) -> Roundable:
    """Large tensors of floats are rounded unless the way back decides something by them.

    That a number is above zero is as true of the rounded one. What else is compared stays, as does what that is
    computed from on the way back, and what bodies read.
    """
    made = {value.name: value for node in graph for value in node.outputs if value.name}
    forward: set[ir.Node] = set()
    waiting = [made[loss].producer()]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in forward:
            forward.add(node)
            waiting += [value.producer() for value in _read(node)]
    exact: set[ir.Value] = set()
    signs: set[ir.Value] = set()
    for node in reversed(list(graph)):
        if node in forward:
            continue
        if (value := _compared_with_zero(node)) is not None and value.producer() in forward:
            signs.add(value)
        elif _decides(node) or not exact.isdisjoint(node.outputs):
            exact.update(_read(node))
    large = {value for value in made.values() if value.producer() in forward and _is_large(value)}
    return Roundable(*(frozenset(value.name for value in each if value.name) for each in (large, exact, signs)))


def _read(node: ir.Node) -> list[ir.Value]:
    inner = (value for body in inner_graphs(node) for each in all_nodes(body) for value in each.inputs)
    return [value for value in (*node.inputs, *inner) if value is not None]


def _decides(node: ir.Node) -> bool:
    return node.op_type in COMPARES + ROUNDS or any(True for _ in inner_graphs(node))


def _compared_with_zero(node: ir.Node) -> ir.Value | None:
    if node.op_type not in COMPARES or not any(_is_zero(value) for value in node.inputs):
        return None
    return next((value for value in node.inputs if not _is_zero(value)), None)


def _is_zero(value: ir.Value | None) -> bool:
    known = None if value is None else ir.convenience.get_const_tensor(value)
    return known is not None and known.size == 1 and not known.numpy().any()


def _is_large(value: ir.Value) -> bool:
    if value.dtype != ir.DataType.FLOAT or value.shape is None:
        return False
    return math.prod(size if isinstance(size, int) else UNKNOWN for size in value.shape) >= LEAST
