"""Names for new values and nodes."""

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from onward.graph.walk import all_graphs

PROCESSING = "dataproc/"
"""What the names of nodes begin with that process data before a model is given them."""

EXTENSIONS = "ai.onnx.contrib"
"""The domain of the ops of onnxruntime-extensions."""


class Names:
    """Hands out names that no scope of the model uses, so that no graph captures a value by accident."""

    def __init__(self, model: ir.Model) -> None:
        graphs = list(_graphs(model))
        self._values = Unique(_value_names(graphs))
        self._nodes = Unique(node.name for graph in graphs for node in graph if node.name)

    def value(self, wish: str) -> str:
        return self._values.name(wish)

    def node(self, wish: str) -> str:
        return self._nodes.name(wish)


class Unique:
    """Hands out names that are not used."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def name(self, wish: str) -> str:
        """`wish`, or `wish` with the next free number behind it."""
        name = wish
        while name in self._used:
            number = self._next.get(wish, 2)
            self._next[wish] = number + 1
            name = f"{wish}_{number}"
        self._used.add(name)
        return name


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    yield from all_graphs(model.graph)
    for function in model.functions.values():
        yield from all_graphs(function.graph)


def _value_names(graphs: Iterable[ir.Graph]) -> Iterator[str]:
    for graph in graphs:
        yield from (value.name for value in graph.inputs if value.name)
        yield from graph.initializers
        for node in graph:
            yield from (output.name for output in node.outputs if output.name)
