"""The way forward is cut into segments, of which only the ends are held; the way back computes each segment anew.

It takes the time of about one more way forward, and the memory of the ends and of one segment instead of all.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Sequence

import onnx

from onward.errors import OnwardError
from onward.spec.random import RANDOM
from onward.training.speed.lifetimes import is_update, order_nodes, reads
from onward.training.speed.peak import known_bytes, planned_peak

LAYERS, ROOT = "layers", "sqrt"
"""Cut wherever the fewest values cross, as between layers; or at about the square root of that many places."""
SHORTEST = 4
"""Nodes of a segment."""
SMALL = 1 / 4096
"""Of all that is held at once: such a value, as a mean or variance, is held, for what it is computed from is more."""
WORTH = 0.95
"""How much of what is held at once has to be left at most, for the time that it takes."""
ANEW = ".anew"
"""How names end of what is computed anew."""
DRAWN = RANDOM | {"Dropout"}
"""What would draw other numbers when it is computed anew: its results are held."""


def recompute_segments(graph: onnx.GraphProto, loss: str, how: str) -> bool:
    """Change a graph whose nodes are in order; they are in order again then. `how`: see above, or a pattern of names.

    A pattern fits names of nodes or of what they give, and each that fits ends a segment. Where no less would be held
    at once, the graph stays as it is, and this gives False.
    """
    known = known_bytes(graph)
    known |= {_anew(name): size for name, size in known.items()}
    plain = onnx.GraphProto()
    plain.CopyFrom(graph)
    before = least = planned_peak(plain, known)
    small = {name for name, size in known.items() if size < SMALL * before}
    for cuts in _choices(plain, loss, how):
        cut = onnx.GraphProto()
        cut.CopyFrom(plain)
        _recompute_all(cut, loss, cuts, small)
        if (held := planned_peak(cut, known)) < min(least, WORTH * before):
            least = held
            graph.CopyFrom(cut)
    return least < before


def _choices(graph: onnx.GraphProto, loss: str, how: str) -> list[list[int]]:
    """Where it may be cut: between all layers, all pairs of layers, and so on, or as it was said."""
    nodes = list(graph.node)
    forward = _before(nodes, _makers(nodes), loss)
    cuts = _cuts(nodes, forward, how)
    steps = [1 << i for i in range(len(cuts).bit_length())] if how == LAYERS else [1]
    return [cuts[step - 1 :: step] for step in steps]


def _recompute_all(graph: onnx.GraphProto, loss: str, cuts: Sequence[int], small: set[str]) -> None:
    nodes = list(graph.node)
    makers = _makers(nodes)
    forward = _before(nodes, makers, loss)
    held = {value.name for value in graph.output} | small
    added: dict[int, list[onnx.NodeProto]] = {}
    begin = 0
    for end in cuts:
        _recompute(nodes, forward, forward[begin:end], held, makers[loss], added)
        begin = end
    together = [each for place, node in enumerate(nodes) for each in (*added.get(place, ()), node)]
    del graph.node[:]
    graph.node.extend(together)
    order_nodes(graph)


def _makers(nodes: Sequence[onnx.NodeProto]) -> dict[str, int]:
    return {name: place for place, node in enumerate(nodes) for name in node.output if name}


def _before(nodes: Sequence[onnx.NodeProto], makers: dict[str, int], loss: str) -> list[int]:
    """The places of the nodes that the loss is computed by."""
    found: set[int] = set()
    waiting = [makers[loss]]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += [makers[name] for name in reads(nodes[place]) if name in makers]
    return sorted(found)


def _cuts(nodes: Sequence[onnx.NodeProto], forward: Sequence[int], how: str) -> list[int]:
    """How many nodes of the way forward come before each cut; what follows the last one is not computed anew."""
    if how not in (LAYERS, ROOT):
        fitting = [i + 1 for i, place in enumerate(forward) if _fits(nodes[place], how)]
        if not fitting:
            names = ", ".join(
                name for place in forward[:: max(len(forward) // 5, 1)] for name in nodes[place].output[:1]
            )
            raise OnwardError(f"recompute: no node on the way to the loss is called {how!r}; there are {names}")
        return fitting
    crossing = _crossing(nodes, forward)
    inner = range(SHORTEST, len(forward) - SHORTEST)
    if not inner:
        return []
    fewest = min(crossing[i] for i in inner)
    found: list[int] = []
    for i in inner:
        if crossing[i] == fewest and i - (found[-1] if found else 0) >= SHORTEST:
            found.append(i)
    if how == ROOT:
        step = max(round(math.sqrt(len(found))), 1)
        found = found[step - 1 :: step]
    return found


def _fits(node: onnx.NodeProto, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (node.name, *node.output))


def _crossing(nodes: Sequence[onnx.NodeProto], forward: Sequence[int]) -> list[int]:
    """For each number of nodes: how many values that these make are read by later ones on the way forward."""
    last: dict[str, int] = {}
    for i, place in enumerate(forward):
        last.update(dict.fromkeys(reads(nodes[place]), i))
    changes = [0] * (len(forward) + 2)
    for i, place in enumerate(forward):
        for name in nodes[place].output:
            if last.get(name, i) > i:
                changes[i + 1] += 1
                changes[last[name] + 1] -= 1
    total, found = 0, []
    for change in changes:
        total += change
        found.append(total)
    return found


def _recompute(
    nodes: Sequence[onnx.NodeProto],
    forward: Sequence[int],
    segment: Sequence[int],
    held: set[str],
    turn: int,
    added: dict[int, list[onnx.NodeProto]],
) -> None:
    """Let the way back, behind `turn`, read what a segment gives from copies of its nodes, before the first reader.

    What runs earlier, such as running statistics, reads what the way forward gives.
    """
    own = set(segment)
    made = {name for place in segment for name in nodes[place].output if name}
    crossing = {name for place in forward if place not in own for name in reads(nodes[place])} & made
    fixed = {name for place in segment if _is_fixed(nodes[place]) for name in nodes[place].output}
    kept = crossing | fixed | held
    readers = [(place, name) for place, name in _readers(nodes, turn, made - kept) if not _has_body(nodes[place])]
    bodies = {name for place, name in _readers(nodes, turn, made) if _has_body(nodes[place])}
    wanted = {name for _, name in readers} - bodies
    if not wanted:
        return
    first = min(place for place, name in readers if name in wanted)
    copies: list[onnx.NodeProto] = []
    anew = set(wanted)
    for place in reversed(segment):
        node = nodes[place]
        if _is_fixed(node) or anew.isdisjoint(node.output):
            continue
        anew.update(name for name in node.input if name in made and name not in kept)
        copies.append(node)
    renamed = {name for node in copies for name in node.output if name}
    added.setdefault(first, []).extend(_copy(node, renamed - kept) for node in reversed(copies))
    for place, name in readers:
        if name in wanted:
            node = nodes[place]
            node.input[:] = [_anew(read) if read == name else read for read in node.input]


def _readers(nodes: Sequence[onnx.NodeProto], turn: int, names: set[str]) -> Iterator[tuple[int, str]]:
    """Nodes of the way back that read one of the values."""
    for place in range(turn + 1, len(nodes)):
        yield from ((place, name) for name in set(reads(nodes[place])) & names)


def _is_fixed(node: onnx.NodeProto) -> bool:
    return node.op_type in DRAWN or is_update(node) or _has_body(node)


def _has_body(node: onnx.NodeProto) -> bool:
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def _copy(node: onnx.NodeProto, renamed: set[str]) -> onnx.NodeProto:
    again = onnx.NodeProto()
    again.CopyFrom(node)
    again.name = _anew(node.name) if node.name else ""
    again.input[:] = [_anew(name) if name in renamed else name for name in node.input]
    again.output[:] = [_anew(name) if name else "" for name in node.output]
    return again


def _anew(name: str) -> str:
    return f"{name}{ANEW}"
