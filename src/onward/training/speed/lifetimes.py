"""The order in which nodes run: as late as they can, so that the tensors they make live shortly.

A runtime that walks a graph from its outputs computes all gradients of activations before any of weights, and holds
them until then. Here every gradient of a weight is computed as soon as there is what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx

from onward.training.native import DOMAIN

UPDATE = "update"
"""How the names of kernels begin that change weights: each writes its outputs `<input>.next` where these inputs are."""
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast", "Transpose", "Expand", "Slice")
"""Ops whose outputs may be where their inputs are."""


def order_nodes(graph: onnx.GraphProto) -> None:
    """Sort nodes. What leads to an output is computed when that is its turn."""
    nodes = sorted(graph.node, key=lambda node: is_update(node))
    makers, needs = _dependences(nodes)
    if any(before > index for index, each in enumerate(needs) for before in each):  # ONNX Runtime may write it so
        nodes = [nodes[index] for index in _on_demand(range(len(nodes)), needs, range(len(nodes)))]
        makers, needs = _dependences(nodes)
    _write_last(nodes, needs)
    depths: list[int] = []
    for before in needs:
        depths.append(1 + max((depths[index] for index in before), default=0))
    ends = {makers[value.name] for value in graph.output if value.name in makers}
    order = _on_demand(sorted(ends, key=lambda index: (depths[index], index)), needs, depths)
    del graph.node[:]
    graph.node.extend(nodes[index] for index in order)


def _dependences(nodes: Sequence[onnx.NodeProto]) -> tuple[dict[str, int], list[set[int]]]:
    """Which node makes each value, and which nodes each one needs."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    return makers, [{makers[name] for name in reads(node) if name in makers} for node in nodes]


def is_update(node: onnx.NodeProto) -> bool:
    return bool(node.domain == DOMAIN and node.op_type.startswith(UPDATE))


def _write_last(nodes: Sequence[onnx.NodeProto], needs: Sequence[set[int]]) -> None:
    """What changes a weight where it is has to wait for everything else that reads it, be it through a view of it."""
    changed = {
        name: [index]
        for index, node in enumerate(nodes)
        if is_update(node)
        for name in node.input
        if f"{name}.next" in node.output
    }
    for index, node in enumerate(nodes):
        writers = sorted({writer for name in reads(node) for writer in changed.get(name, ()) if writer != index})
        for writer in writers:
            needs[writer].add(index)
        if writers and (node.op_type in VIEWS or any(a.HasField("g") or a.graphs for a in node.attribute)):
            changed.update((name, writers) for name in node.output)


def _on_demand(ends: Sequence[int], needs: Sequence[set[int]], depths: Sequence[int]) -> list[int]:
    """Each after what it needs, that which takes longest first: the rest need not wait for it then."""
    order: dict[int, None] = {}
    for end in ends:
        waiting = [(end, False)]
        while waiting:
            index, ready = waiting.pop()
            if index in order:
                continue
            if ready:
                order[index] = None
                continue
            waiting.append((index, True))
            waiting += [(i, False) for i in sorted(needs[index], key=lambda i: depths[i]) if i not in order]
    return list(order)


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names of values that a node depends on, those that its bodies capture included."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            for inner in body.node:
                yield from reads(inner)
            yield from (value.name for value in body.output)
