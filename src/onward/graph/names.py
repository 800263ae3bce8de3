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
        self._values = Unique(value_names(graphs))
        self._nodes = Unique(node_names(graphs))

    def value(self, wish: str) -> str:
        return self._values.name(wish)

    def node(self, wish: str) -> str:
        return self._nodes.name(wish)

    def reserve(self, values: Iterable[str]) -> None:
        """Never hand these out."""
        self._values.reserve(values)

    def apart(self, values: Iterable[str], nodes: Iterable[str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
        """Of names of another model, those that are taken, each with a new one that neither model uses."""
        return self._values.apart(values, prefix), self._nodes.apart(nodes, prefix)


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

    def reserve(self, names: Iterable[str]) -> None:
        self._used.update(names)

    def apart(self, names: Iterable[str], prefix: str) -> dict[str, str]:
        """Those of the names that are used, each with a new one; all of them are used from now on."""
        wanted = list(dict.fromkeys(names))
        taken = [name for name in wanted if name in self._used]
        self._used.update(wanted)
        return {name: self.name(prefix + name) for name in taken}


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    yield from all_graphs(model.graph)
    for function in model.functions.values():
        yield from all_graphs(function.graph)


def value_names(graphs: Iterable[ir.Graph]) -> Iterator[str]:
    for graph in graphs:
        yield from (value.name for value in graph.inputs if value.name)
        yield from graph.initializers
        for node in graph:
            yield from (output.name for output in node.outputs if output.name)


def node_names(graphs: Iterable[ir.Graph]) -> Iterator[str]:
    for graph in graphs:
        yield from (node.name for node in graph if node.name)
