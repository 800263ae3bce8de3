"""A small picture of a large graph: its nodes in a few layers, those of a layer that hang together as one box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir

from onward.zoo.results import Outline

LAYERS = 14
"""At most; a layer takes as many steps of the graph as all others."""
BOXES = 6
"""In a layer at most; the rest is one box."""
PLUMBING = {
    "Cast", "Constant", "ConstantOfShape", "Gather", "Identity", "Reshape", "Shape", "Squeeze", "Transpose",
    "Unsqueeze",
}  # fmt: skip
"""Ops that say least of a network: a box is called after another, if it has one."""
LONGEST = 40
REST = "…"


def outline(graph: ir.Graph) -> Outline:
    depths = _depths(graph)
    if not depths:
        return Outline()
    steps = max(depths.values()) + 1
    layer_of = {node: depth * min(LAYERS, steps) // steps for node, depth in depths.items()}
    groups = _together(layer_of)
    layers: dict[int, list[list[ir.Node]]] = {}
    for group in groups:
        layers.setdefault(layer_of[group[0]], []).append(group)
    names: list[tuple[str, ...]] = []
    box_of: dict[ir.Node, int] = {}
    count = 0
    for number in sorted(layers):
        boxes = _few(_alike(layers[number]))
        names.append(tuple(_called(box) for box in boxes))
        for place, box in enumerate(boxes):
            box_of |= dict.fromkeys(box, count + place)
        count += len(boxes)
    edges = {(box_of[before], box_of[node]) for node in depths for before in _before(node) if before in box_of}
    return Outline(tuple(names), tuple(sorted((a, b) for a, b in edges if a < b)))


def _before(node: ir.Node) -> Iterable[ir.Node]:
    for value in node.inputs:
        producer = None if value is None else value.producer()
        if producer is not None:
            yield producer


def _depths(graph: ir.Graph) -> dict[ir.Node, int]:
    """How many nodes there are between each node and the inputs; nodes of constants alone are left out."""
    found: dict[ir.Node, int] = {}
    inputs = {value for value in graph.inputs if not value.is_initializer()}
    for node in graph:
        before = [found[other] for other in _before(node) if other in found]
        if before or any(value in inputs for value in node.inputs):
            found[node] = max(before, default=-1) + 1
    return found


def _together(layer_of: dict[ir.Node, int]) -> list[list[ir.Node]]:
    """Nodes of a layer that edges join."""
    leader = {node: node for node in layer_of}

    def first(node: ir.Node) -> ir.Node:
        while leader[node] is not node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for node, layer in layer_of.items():
        for before in _before(node):
            if layer_of.get(before) == layer:
                leader[first(node)] = first(before)
    groups: dict[ir.Node, list[ir.Node]] = {}
    for node in layer_of:
        groups.setdefault(first(node), []).append(node)
    return list(groups.values())


def _alike(groups: list[list[ir.Node]]) -> list[list[ir.Node]]:
    """Groups of the same ops as one box."""
    found: dict[tuple[tuple[str, int], ...], list[ir.Node]] = {}
    for group in groups:
        key = tuple(sorted(Counter(node.op_type for node in group).items()))
        found.setdefault(key, []).extend(group)
    return list(found.values())


def _few(boxes: list[list[ir.Node]]) -> list[list[ir.Node]]:
    if len(boxes) <= BOXES:
        return boxes
    kept = sorted(boxes, key=len, reverse=True)[: BOXES - 1]
    rest = [node for box in boxes if not any(box is one for one in kept) for node in box]
    return [*kept, rest]


def _called(box: list[ir.Node]) -> str:
    """Its most frequent op that says something, and how many nodes there are in all: `Conv ×12`."""
    counted = Counter(node.op_type for node in box)
    telling = {op: number for op, number in counted.items() if op not in PLUMBING} or counted
    name = max(telling, key=lambda op: telling[op])[:LONGEST]
    more = f" + {REST}" if len(counted) > 1 else ""
    return f"{name}{more} ×{len(box)}" if len(box) > 1 else name
