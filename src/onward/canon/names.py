"""Names for new values."""

from collections.abc import Iterator

import onnx_ir as ir


class Names:
    """Hands out value names that no scope of the model uses, so that no graph captures one by accident."""

    def __init__(self, model: ir.Model) -> None:
        self._used: set[str] = set()
        for graph in _graphs(model):
            self._used.update(v.name for v in graph.inputs if v.name)
            self._used.update(graph.initializers)
            for node in graph:
                self._used.update(o.name for o in node.outputs if o.name)
        self._next: dict[str, int] = {}

    def unique(self, wish: str) -> str:
        """`wish`, or `wish` with the next free number behind it."""
        name = wish
        while name in self._used:
            number = self._next.get(wish, 2)
            self._next[wish] = number + 1
            name = f"{wish}_{number}"
        self._used.add(name)
        return name


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    yield from model.graphs()
    for function in model.functions.values():
        yield function.graph
        yield from function.subgraphs()
