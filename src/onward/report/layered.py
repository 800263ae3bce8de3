"""Where the nodes of a graph go in a picture of it: in layers from top to bottom, in time that grows with its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LONGEST = 24
"""Of the edges that are led around nodes, in layers; longer ones, such as a mask's, are drawn as they fall."""
BEND_WIDTH, BEND_WEIGHT = 0.45, 0.25
"""Of a bend in an edge, against 1 for a node: it takes less room, and gives way."""
PULL = 0.97
"""Towards the middle, lest a deep graph drift sideways."""
SWEEPS = 3

Neighbours = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Layout:
    x: list[float]
    """Of each node, in widths of one."""
    y: list[int]
    """Its layer."""
    edges: list[tuple[int, int, list[float]]]
    """From, to, and x at each of the layers in between; empty for a straight edge."""


def layered(nodes: Sequence[Mapping[str, Any]]) -> Layout:
    """Place nodes, given in an order in which each comes after what it reads, by their `inputs` and `outputs`."""
    before = _predecessors(nodes)
    after: list[list[int]] = [[] for _ in nodes]
    for node, sources in enumerate(before):
        for source in sources:
            after[source].append(node)
    layers = _layers(before, after)
    edges = [(source, node) for node, sources in enumerate(before) for source in sources]
    longest = _longest(layers, edges)
    above = [list[int]() for _ in nodes]
    below = [list[int]() for _ in nodes]
    places, bends = list(layers), dict[tuple[int, int], range]()

    def join(upper: int, lower: int) -> None:
        below[upper].append(lower)
        above[lower].append(upper)

    for source, node in edges:
        span = layers[node] - layers[source]
        if span > longest:
            continue
        bends[source, node] = range(len(places), len(places) + span - 1)
        places += range(layers[source] + 1, layers[node])
        above += [[] for _ in bends[source, node]]
        below += [[] for _ in bends[source, node]]
        for upper, lower in pairwise([source, *bends[source, node], node]):
            join(upper, lower)
    x = _positions(len(nodes), places, above, below)
    found = [(source, node, [x[bend] for bend in bends.get((source, node), ())]) for source, node in edges]
    return Layout(x[: len(nodes)], layers, found)


def _predecessors(nodes: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    made: dict[str, int] = {}
    found: list[list[int]] = []
    for position, node in enumerate(nodes):
        found.append(sorted({made[name] for name in node["inputs"] if name in made}))
        made.update((name, position) for name in node["outputs"] if name)
    return found


def _layers(before: Neighbours, after: Neighbours) -> list[int]:
    """As high as possible, but what hangs on nothing above, such as a constant's chain, just above its first reader."""
    layers: list[int] = []
    for sources in before:
        layers.append(1 + max((layers[source] for source in sources), default=-1))
    latest = list(layers)
    for node in reversed(range(len(layers))):
        latest[node] = min((latest[reader] for reader in after[node]), default=layers[node] + 1) - 1
    loose = [late > early for late, early in zip(latest, layers, strict=True)]
    for node in reversed(range(len(layers))):
        if after[node] and all(loose[source] for source in before[node]):
            layers[node] = min(layers[reader] for reader in after[node]) - 1
    return layers


def _longest(layers: Sequence[int], edges: Iterable[tuple[int, int]]) -> int:
    """The longest edge that gets bends, so that there are no more of these than a few for each node."""
    spans = [layers[node] - layers[source] for source, node in edges]
    longest = LONGEST
    while longest > 1 and sum(span - 1 for span in spans if span <= longest) > 6 * len(layers):
        longest //= 2
    return longest


def _positions(nodes: int, places: Sequence[int], above: Neighbours, below: Neighbours) -> list[float]:
    """x of nodes and bends: each in turn close to its neighbours above, then below, without overlap."""
    rows: list[list[int]] = [[] for _ in range(max(places, default=-1) + 1)]
    for item, place in enumerate(places):
        rows[place].append(item)
    x = [0.0] * len(places)
    weight = [1.0] * nodes + [BEND_WEIGHT] * (len(places) - nodes)
    width = [1.0] * nodes + [BEND_WIDTH] * (len(places) - nodes)
    for row in rows:
        for position, item in enumerate(row):
            x[item] = position - (len(row) - 1) / 2

    def settle(row: list[int], neighbours: Callable[[int], Sequence[int]]) -> None:
        wanted = {item: PULL * _centre([(x[i], weight[i]) for i in neighbours(item)], x[item]) for item in row}
        row.sort(key=lambda item: (wanted[item], x[item]))
        placed = _apart([wanted[i] for i in row], [width[i] for i in row], [weight[i] for i in row])
        for item, value in zip(row, placed, strict=True):
            x[item] = value

    for _ in range(SWEEPS):
        for row in reversed(rows):
            settle(row, below.__getitem__)
        for row in rows:
            settle(row, above.__getitem__)
    return x


def _centre(points: Sequence[tuple[float, float]], default: float) -> float:
    total = sum(weight for _, weight in points)
    return sum(x * weight for x, weight in points) / total if total else default


def _apart(wanted: Sequence[float], widths: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The positions closest to those wanted, by weighted squares, at which neighbours do not overlap.

    Without their widths, positions may not decrease: those that would are pooled, and share their mean.
    """
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2)
    pools: list[tuple[float, float, int]] = []
    for value, offset, weight in zip(wanted, offsets, weights, strict=False):
        mean, total, size = value - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, more, count = pools.pop()
            mean, total, size = (mean * total + other * more) / (total + more), total + more, size + count
        pools.append((mean, total, size))
    means = [mean for mean, _, size in pools for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
