"""What is cheap is computed again for the way back, so that it need not be held: activations, norms, gathered columns.

Only where all that it is computed from is held anyway until about then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter

import onnx

from onward.training.native import DOMAIN
from onward.training.speed.lifetimes import order_nodes, reads

CHEAP = (
    *("Relu", "Gelu", "Sigmoid", "Tanh", "Mul", "Add", "Cast"),
    *("LayerNormalization", "SimplifiedLayerNormalization", "DequantizeLinear"),
)
KERNELS = ("k", "gather")
"""How the names of our own kernels begin that are cheap: loops over elements, and gathers by a table."""
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
"""Ops that only see their input in another shape; their other inputs are constants."""
FAR, NEAR = 32, 8
"""Nodes in between that make it worthwhile, and for which an input may be held a little longer."""


def recompute(graph: onnx.GraphProto) -> None:
    """Change a graph whose nodes are in order; they are in order again then."""
    nodes = list(graph.node)
    made = _Recomputed(graph)
    for place, node in enumerate(nodes):
        if _is_cheap(node):
            made.consider(place, node)
    if made.added:
        together = [each for place, node in enumerate(nodes) for each in (*made.added.get(place, ()), node)]
        del graph.node[:]
        graph.node.extend(together)
        order_nodes(graph)


def _is_cheap(node: onnx.NodeProto) -> bool:
    if node.domain == DOMAIN:
        return node.op_type.startswith(KERNELS) and len(node.output) == 1
    return node.domain in ("", "com.microsoft") and node.op_type in CHEAP


class _Recomputed:
    def __init__(self, graph: onnx.GraphProto) -> None:
        nodes = list(graph.node)
        self.added: dict[int, list[onnx.NodeProto]] = {}
        """Nodes by the place that they have to be before."""
        self._given = {value.name for value in (*graph.input, *graph.initializer)}
        self._outputs = {value.name for value in graph.output}
        self._seen = {node.output[0]: node.input[0] for node in nodes if _is_view(node)}
        """Views, and what they are views of."""
        self._readers: dict[str, list[tuple[int, onnx.NodeProto]]] = {}
        for place, node in enumerate(nodes):
            for name in set(reads(node)):
                self._readers.setdefault(name, []).append((place, node))

    def consider(self, place: int, node: onnx.NodeProto) -> None:
        """Compute what a node gives once more where it is read long after it was last."""
        first, *others = node.output
        family = self._family(first)
        if family is None or any(name in self._outputs for name in family):
            return
        uses = sorted(((at, name, user) for name in family for at, user in self._used(name)), key=itemgetter(0))
        times = [place, *(at for at, _, _ in uses)]
        gap, split = max(((b - a, b) for a, b in pairwise(times)), default=(0, 0))
        if gap < FAR or not all(self._is_held(name, split - NEAR) for name in node.input if name):
            return
        again = onnx.NodeProto()
        again.CopyFrom(node)
        again.name = f"{node.name}.again" if node.name else ""
        again.output[:] = [_again(first), *("" for _ in others)]
        added = self.added.setdefault(split, [])
        added.append(again)
        for name in again.input:
            self._readers.setdefault(name, []).append((split, again))
        late = [(at, name, user) for at, name, user in uses if at >= split]
        for name in self._way(family, [name for _, name, _ in late]):
            view = onnx.NodeProto()
            view.CopyFrom(family[name] or node)
            view.name = f"{view.name}.again" if view.name else ""
            view.input[0], view.output[0] = _again(view.input[0]), _again(name)
            added.append(view)
        for at, name, user in late:
            user.input[:] = [_again(name) if read == name else read for read in user.input]
            self._readers[name].remove((at, user))
            self._readers.setdefault(_again(name), []).append((at, user))

    def _family(self, name: str) -> dict[str, onnx.NodeProto | None] | None:
        """A value and views of it, with what makes them; None where a body reads one of them."""
        found: dict[str, onnx.NodeProto | None] = {name: None}
        waiting = [name]
        while waiting:
            for _, user in self._readers.get(waiting.pop(), ()):
                if any(attribute.HasField("g") or attribute.graphs for attribute in user.attribute):
                    return None
                if _is_view(user) and user.input[0] in found and user.output[0] not in found:
                    found[user.output[0]] = user
                    waiting.append(user.output[0])
        return found

    def _used(self, name: str) -> Iterable[tuple[int, onnx.NodeProto]]:
        """Who reads a value other than to see it in another shape."""
        return ((at, user) for at, user in self._readers.get(name, ()) if not _is_view(user))

    def _is_held(self, name: str, until: int) -> bool:
        while name in self._seen:
            name = self._seen[name]
        if name in self._given:
            return True
        family = self._family(name)
        return family is None or any(at >= until for each in family for at, _ in self._used(each))

    def _way(self, family: dict[str, onnx.NodeProto | None], wanted: Sequence[str]) -> list[str]:
        """The views that lead to those that are wanted, each after what it is a view of."""
        found: dict[str, None] = {}
        for name in wanted:
            steps: list[str] = []
            while (view := family[name]) is not None:
                steps.append(name)
                name = view.input[0]
            found.update(dict.fromkeys(reversed(steps)))
        return list(found)


def _is_view(node: onnx.NodeProto) -> bool:
    return node.op_type in VIEWS and not node.domain


def _again(name: str) -> str:
    return f"{name}.again"
