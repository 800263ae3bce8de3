"""Names to which a tool may add what it likes: none of them is a beginning of another."""

from __future__ import annotations

import re

import onnx_ir as ir

from onward.graph.names import Unique

SAFE = re.compile(r"t(\d+)z(.*)", re.DOTALL)


class SafeNames:
    """Those of the values of a main graph, and what they were called before."""

    def __init__(self, graph: ir.Graph) -> None:
        """Rename them in place."""
        values = {*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)}
        ordered = sorted((value for value in values if value.name), key=lambda value: value.name or "")
        self._before = [value.name or "" for value in ordered]
        self.now = {name: f"t{number}z" for number, name in enumerate(self._before)}
        """By what they were called."""
        self._nodes = {node.name for node in graph}
        for value in ordered:
            value.name = self.now[value.name or ""]

    def undo(self, graph: ir.Graph) -> None:
        """Give them their names back, and what was added to these to others."""
        names = Unique(self._before)
        values = [*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs if v.name)]
        for value in dict.fromkeys(values):
            if found := SAFE.fullmatch(value.name or ""):
                before, added = self._before[int(found[1])], found[2]
                value.name = names.name(before + added) if added else before
        nodes = Unique(name for name in self._nodes if name)
        for node in graph:
            if node.name not in self._nodes and (found := SAFE.fullmatch(node.name or "")):
                node.name = nodes.name(self._before[int(found[1])] + found[2])
