"""Values of a graph in order together with views of them, and what reads them late from a copy instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

import onnx

from onward.training.speed.lifetimes import reads

VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
"""Ops that only see their input in another shape; their other inputs are constants."""
Use = tuple[int, str, onnx.NodeProto]
"""The place of a node, the value that it reads, and the node."""


class Families:
    """`suffix`: what copies are called by."""

    def __init__(self, graph: onnx.GraphProto, suffix: str) -> None:
        nodes = list(graph.node)
        self._suffix = suffix
        self._added: dict[int, list[onnx.NodeProto]] = {}
        """Nodes by the place that they have to be before."""
        self._given = {value.name for value in (*graph.input, *graph.initializer)}
        self._outputs = {value.name for value in graph.output}
        self._seen = {node.output[0]: node.input[0] for node in nodes if is_view(node)}
        """Views, and what they are views of."""
        self._readers: dict[str, list[tuple[int, onnx.NodeProto]]] = {}
        for place, node in enumerate(nodes):
            for name in set(reads(node)):
                self._readers.setdefault(name, []).append((place, node))

    def of(self, name: str) -> dict[str, onnx.NodeProto | None] | None:
        """A value and views of it, with what makes them; None where a body reads one, or the graph gives one out."""
        family = self._family(name)
        return None if family is None or any(each in self._outputs for each in family) else family

    def uses(self, family: Iterable[str]) -> list[Use]:
        """Who reads values other than to see them in another shape, in order."""
        return sorted(((at, name, user) for name in family for at, user in self._used(name)), key=itemgetter(0))

    def is_held(self, name: str, until: int) -> bool:
        """Whether a value is there at a place, for something else that reads it."""
        while name in self._seen:
            name = self._seen[name]
        if name in self._given:
            return True
        family = self._family(name)
        return family is None or any(at >= until for each in family for at, _ in self._used(each))

    def copy(self, name: str) -> str:
        """What the copy of a value is called."""
        return f"{name}{self._suffix}"

    def add(self, place: int, node: onnx.NodeProto) -> None:
        """Let a node run before the one at a place."""
        self._added.setdefault(place, []).append(node)
        for name in filter(None, node.input):
            self._readers.setdefault(name, []).append((place, node))

    def redirect(self, family: dict[str, onnx.NodeProto | None], late: Sequence[Use]) -> None:
        """Let uses read the copy of a value, which has been added before the first of them, or views of that copy."""
        place = late[0][0]
        for name in self._way(family, [name for _, name, _ in late]):
            view = onnx.NodeProto()
            view.CopyFrom(family[name] or onnx.NodeProto())
            view.name = self.copy(view.name) if view.name else ""
            view.input[0], view.output[0] = self.copy(view.input[0]), self.copy(name)
            self._added.setdefault(place, []).append(view)
        for at, name, user in late:
            user.input[:] = [self.copy(name) if read == name else read for read in user.input]
            self._readers[name].remove((at, user))
            self._readers.setdefault(self.copy(name), []).append((at, user))

    def insert(self, graph: onnx.GraphProto) -> bool:
        """Put what was added into the graph; whether there was any."""
        nodes = list(graph.node)
        together = [each for place, node in enumerate(nodes) for each in (*self._added.get(place, ()), node)]
        del graph.node[:]
        graph.node.extend(together)
        return bool(self._added)

    def _family(self, name: str) -> dict[str, onnx.NodeProto | None] | None:
        found: dict[str, onnx.NodeProto | None] = {name: None}
        waiting = [name]
        while waiting:
            for _, user in self._readers.get(waiting.pop(), ()):
                if any(attribute.HasField("g") or attribute.graphs for attribute in user.attribute):
                    return None
                if is_view(user) and user.input[0] in found and user.output[0] not in found:
                    found[user.output[0]] = user
                    waiting.append(user.output[0])
        return found

    def _used(self, name: str) -> Iterable[tuple[int, onnx.NodeProto]]:
        return ((at, user) for at, user in self._readers.get(name, ()) if not is_view(user))

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


def is_view(node: onnx.NodeProto) -> bool:
    return node.op_type in VIEWS and not node.domain
