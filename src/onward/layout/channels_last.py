"""The pass: mark, partition, rewrite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import onnx_ir as ir

from onward.errors import OnwardError, UnsupportedError
from onward.graph.names import Names
from onward.graph.walk import all_graphs, inner_graphs
from onward.layout.change import is_plain
from onward.layout.mark import Marked
from onward.layout.orders import RANKS, Layout, Order
from onward.layout.rewrite import Rewriter
from onward.layout.roles import Roles


@dataclass(frozen=True)
class Moved:
    """The inputs and outputs that are handed over in another order than before, and the order of each."""

    inputs: dict[str, Order]
    outputs: dict[str, Order]


def to_channels_last(
    model: ir.Model, target: Roles, inputs: Set[str] = frozenset(), outputs: Set[str] = frozenset()
) -> Moved:
    """Let the target's channels-last ops run so, in place, with as few transposes as the graph needs.

    They become ops of the domain `onward.nhwc`. Inputs and outputs named here are handed over channels last (as they
    are, where the graph means them so already), all others as they are. Types must have been inferred, as they are in
    canonical form; a tensor of unknown rank stays as it is. So do the inputs and outputs of each body (of an If, a Loop
    or a Scan) and what it reads from outside: bodies are treated one by one.
    """
    drop_defaults(model.graph)
    return relayout(model, target, dict.fromkeys(inputs, Layout.LAST), dict.fromkeys(outputs, Layout.LAST))


def relayout(model: ir.Model, target: Roles, inputs: dict[str, Layout], outputs: dict[str, Layout]) -> Moved:
    """The same, with either layout for each input and output."""
    graph = model.graph
    _check_names(graph.inputs, inputs, "input")
    _check_names(graph.outputs, outputs, "output")
    graphs, names = list(all_graphs(graph)), Names(model)
    for each in graphs:
        _check_bodies(each)
    for body in reversed(graphs[1:]):
        _rewrite(model, Marked(body, target, {}, {}), names)
    marked = Marked(graph, target, inputs, outputs)
    moved = Moved(_orders(marked, graph.inputs, inputs), _orders(marked, graph.outputs, outputs))
    _rewrite(model, marked, names)
    return moved


def _rewrite(model: ir.Model, marked: Marked, names: Names) -> None:
    preferred = Layout.LAST if marked.roles.channels_last else Layout.FIRST
    Rewriter(model, marked, marked.partition(preferred), names).run()


def drop_defaults(graph: ir.Graph) -> None:
    """Let weights that are listed among the inputs, as old files must, be weights only."""
    kept = [value for value in graph.inputs if not value.is_initializer()]
    graph.inputs.clear()
    graph.inputs.extend(kept)


def _orders(marked: Marked, values: Iterable[ir.Value], layouts: Mapping[str, Layout]) -> dict[str, Order]:
    asked = {name: marked.order(value, layouts[name]) for value in values if (name := value.name or "") in layouts}
    return {name: order for name, order in asked.items() if not is_plain(order)}


def _check_names(values: Iterable[ir.Value], names: dict[str, Layout], kind: str) -> None:
    found = {value.name: value for value in values}
    for name in names:
        if name not in found:
            listed = ", ".join(repr(other) for other in found)
            raise OnwardError(f"there is no {kind} {name!r} to hand over channels last; there is {listed}")
        value = found[name]
        if value.shape is None or len(value.shape) not in RANKS:
            rank = "unknown rank" if value.shape is None else f"rank {len(value.shape)}"
            raise OnwardError(f"the {kind} {name!r} is of {rank}; only those of rank {_listed()} have channels to move")
        if value.is_initializer():
            raise UnsupportedError(f"the {kind} {name!r} has a default value, so that its layout cannot be changed")


def _listed() -> str:
    return ", ".join(map(str, RANKS[:-1])) + f" or {RANKS[-1]}"


def _check_bodies(graph: ir.Graph) -> None:
    """A body that gives out a value of the graph around it would escape the pass."""
    for node in graph:
        for body in inner_graphs(node):
            for value in body.outputs:
                producer = value.producer()
                if producer is not None and producer.graph is not body:
                    raise UnsupportedError(
                        f"{node.op_type} {node.name!r}: a body gives out {value.name!r}, which is computed outside it"
                    )
