"""Pieces of a model, each a model of its own; the weights are shared with the whole, never copied.

A node that holds graphs (If, Loop, Scan) is one node. What does not depend on the model's inputs is never fed to a
piece: the nodes that compute it come along, so that a runtime sees constants where the whole model has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.infer import infer
from onward.graph.walk import all_graphs, all_nodes, inner_graphs
from onward.model import Model
from onward.spec.random import RANDOM

OWN = "/own"
"""Added to the names of results in a model whose nodes are separate: the name itself is an input there."""

AS_INFERRED: Any = object()
"""Fed in place of an array: the input has the type and shape that were inferred for it."""


class Cutter:
    """Cuts pieces out of one model. Values are given by name."""

    def __init__(self, model: Model) -> None:
        graph = model.ir.clone()
        infer(graph)
        self._set(graph)

    def _set(self, model: ir.Model) -> None:
        self._model = model
        self._reads: dict[ir.Node, list[ir.Value]] = {node: list(reads(node)) for node in model.graph}
        self._index = {node: index for index, node in enumerate(model.graph)}
        self.inputs = [v for v in model.graph.inputs if not v.is_initializer()]
        self.outputs = list(model.graph.outputs)
        self.values: dict[str, ir.Value] = {}
        """All values of the main graph."""
        made = [value for node in model.graph for value in node.outputs]
        for value in [*model.graph.inputs, *model.graph.initializers.values(), *made]:
            if value.name:
                self.values[value.name] = value
        self.varying = self._varying()
        """The values that depend on the model's inputs."""
        self._varying_names = {value.name or "" for value in self.varying}

    def _varying(self) -> set[ir.Value]:
        found = set(self.inputs)
        for node, reads in self._reads.items():
            found.update(value for value in reads if value.producer() is None and not value.is_initializer())
            if node.op_type in RANDOM or not found.isdisjoint(reads):
                found.update(node.outputs)
        return found

    def reads(self, node: ir.Node) -> list[ir.Value]:
        """The values that a node uses, those that only graphs inside it use included; each once."""
        return self._reads[node]

    def nodes(self, outputs: Iterable[ir.Value] | None = None, stop: Collection[str | None] = ()) -> list[ir.Node]:
        """The nodes that compute `outputs`, those of the model unless given, from the values in `stop`; in order."""
        pending = [v for v in (self.outputs if outputs is None else outputs) if v.name not in stop]
        found: set[ir.Node] = set()
        while pending:
            node = pending.pop().producer()
            if node is not None and node not in found:
                found.add(node)
                pending += [v for v in self._reads[node] if v.name not in stop]
        return sorted(found, key=self._index.__getitem__)

    def piece(self, outputs: Iterable[str], feeds: Mapping[str, Any], *, constants: bool = False) -> Model:
        """The model that computes `outputs`; of `feeds` it takes what it needs, typed as the arrays given are.

        `AS_INFERRED` stands for an array that is not there yet. With `constants`, what does not depend on the model's
        inputs is fed as well.
        """
        results = [self.values[name] for name in outputs]
        given = set(feeds) if constants else self._varying_names & feeds.keys()
        nodes = self.nodes(results, given)
        used = dict.fromkeys(value for node in nodes for value in self._reads[node])
        made = {value for node in nodes for value in node.outputs}
        taken, weights = [], []
        for value in used:
            if value.name in given and value not in made:
                taken.append(value)
            elif value.is_initializer():
                weights.append(value)
            elif value not in made:
                raise UnsupportedError(f"nothing is given for the value {value.name!r}")
        source = self._model.graph
        view = ir.GraphView(
            taken, results, nodes=nodes, initializers=weights, opset_imports=source.opset_imports, name=source.name
        )
        graph = view.clone()
        _feed_beside(graph, given)
        as_inferred = [_type_as(value, feeds[value.name or ""]) for value in graph.inputs]
        if not all(as_inferred):
            for value in (value for node in graph for value in node.outputs):
                value.shape = None
        return Model(ir.Model(graph, ir_version=self._model.ir_version, functions=_functions(self._model, graph)))

    def separate(self, fed: Callable[[ir.Value], bool]) -> Cutter:
        """A model in which nodes do not see each other's results: `fed` tells which of them are inputs instead.

        Such a result `x` is named `x` + OWN there, and what used it uses an input `x`.
        """
        copy = self._model.clone()
        values = [value for node in copy.graph for value in node.outputs if value.name]
        copy.graph.outputs.clear()
        for value in values:
            original = self.values[value.name or ""]
            if original in self.varying and fed(original):
                replacement = ir.Value(name=value.name, type=value.type, shape=value.shape)
                value.name = f"{value.name}{OWN}"
                ir.convenience.replace_all_uses_with(value, replacement)
        made = object.__new__(Cutter)
        made._set(copy)
        return made


def _feed_beside(graph: ir.Graph, given: Collection[str | None]) -> None:
    """Take what is given also where a node makes it beside what is needed of that node."""
    for value in [value for node in graph for value in node.outputs if value.name in given and value.uses()]:
        fed = ir.Value(name=value.name, type=value.type, shape=value.shape)
        value.replace_all_uses_with(fed)
        value.name = f"{value.name}{OWN}"
        graph.inputs.append(fed)


def reads(node: ir.Node) -> Iterator[ir.Value]:
    inner = [graph for found in inner_graphs(node) for graph in all_graphs(found)]
    own: set[ir.Value] = set()
    for graph in inner:
        own.update(graph.inputs, graph.initializers.values(), (v for n in graph for v in n.outputs))
    used = [*node.inputs, *(value for graph in inner for n in graph for value in n.inputs)]
    yield from dict.fromkeys(value for value in used if value is not None and value not in own)


def _functions(model: ir.Model, graph: ir.Graph) -> list[ir.Function]:
    """The model's own functions that `graph` calls, directly or not."""
    found: dict[ir.OperatorIdentifier, ir.Function] = {}
    pending = [graph] if model.functions else []
    while pending:
        for node in all_nodes(pending.pop()):
            function = model.functions.get(node.op_identifier())
            if function is not None and node.op_identifier() not in found:
                found[node.op_identifier()] = function
                pending.append(function.graph)
    return list(found.values())


def _type_as(value: ir.Value, given: Any) -> bool:
    """Type an input by what will be fed; False if its shape is another than was inferred."""
    value.const_value = None
    fits = True
    if given is AS_INFERRED:
        if value.type is None:
            raise UnsupportedError(f"the type of the value {value.name!r} is not known")
        return True
    if isinstance(given, list | tuple) and given:
        value.type, value.shape = ir.SequenceType(ir.TensorType(dtype_of(np.asarray(given[0])))), None
    elif isinstance(given, np.ndarray | np.generic) and not isinstance(value.type, ir.OptionalType):
        value.type = ir.TensorType(dtype_of(np.asarray(given)))
        fits = value.shape is None or _fits(value.shape, given.shape)
        if not fits or value.shape is None:
            value.shape = ir.Shape(given.shape)
    if value.type is None or isinstance(given, dict):
        raise UnsupportedError(f"the type of the value {value.name!r} is not known")
    return fits


def dtype_of(array: np.ndarray[Any, np.dtype[Any]]) -> ir.DataType:
    """As ONNX calls it."""
    return ir.DataType.STRING if array.dtype.kind in "OUST" else ir.DataType.from_numpy(array.dtype)


def _fits(shape: ir.Shape, sizes: tuple[int, ...]) -> bool:
    return len(shape) == len(sizes) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(shape, sizes, strict=True)
    )
