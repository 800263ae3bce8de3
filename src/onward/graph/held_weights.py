"""Where a model holds its weights: they are taken from there, and trained ones go back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.trained import inherit
from onward.graph.walk import all_graphs
from onward.model import Model

Array = np.ndarray[Any, np.dtype[Any]]


def homes(graph: ir.Graph) -> dict[str, ir.Value | ir.Node]:
    """Where weights are held, by name: initializers, and nodes that give a constant; of bodies as well."""
    found: dict[str, ir.Value | ir.Node] = {}
    for value, name in _weights(graph):
        found[name] = value.producer() or value
    return found


def _weights(graph: ir.Graph) -> list[tuple[ir.Value, str]]:
    """Initializers and constants with their names; those of bodies that others have, too, with a number behind them."""
    graphs = list(all_graphs(graph))
    held = Counter(name for each in graphs for name in set(_names(each)))
    found = []
    for each in graphs:
        for value in (*_constants(each), *each.initializers.values()):
            name = value.name or ""
            if each is not graph and held[name] > 1:
                number = 2
                while (name := f"{value.name}_{number}") in held:
                    number += 1
                held[name] += 1
            found.append((value, name))
    return found


def _constants(graph: ir.Graph) -> list[ir.Value]:
    nodes = (node for node in graph if node.op_type == "Constant" and node.domain in ("", "ai.onnx"))
    return [node.outputs[0] for node in nodes if node.outputs[0].name]


def _names(graph: ir.Graph) -> Iterator[str | None]:
    yield from (value.name for value in (*graph.inputs, *graph.initializers.values()))
    yield from (output.name for node in graph for output in node.outputs)


def lift_from_bodies(model: ir.Model) -> None:
    """Floats that bodies of If, Loop and Scan hold, the same in every round, become initializers of the main graph.

    Of constants those do that have two dimensions or more: others belong to formulas, as a rule.
    """
    for value, name in _weights(model.graph):
        if value.graph is not model.graph:
            value.name = name
            data = _floats(value)
            if data is not None and (value.is_initializer() or len(data.shape) > 1):
                _lift(model.graph, value, data)


def lift_constants(model: ir.Model, wanted: Callable[[ir.Value], bool] | None = None) -> None:
    """Constants of several floats, all or those wanted, become initializers of the main graph."""
    for graph in list(all_graphs(model.graph)):
        for value in _constants(graph):
            data = _floats(value)
            if data is not None and data.size > 1 and (wanted is None or wanted(value)):
                _lift(model.graph, value, data)


def _floats(value: ir.Value) -> ir.TensorProtocol | None:
    node = value.producer()
    if node is not None and node.attributes.keys().isdisjoint({"value", "value_floats"}):
        return None
    data = ir.convenience.get_const_tensor(value)
    return data if data is not None and data.dtype.is_floating_point() else None


def _lift(main: ir.Graph, value: ir.Value, data: ir.TensorProtocol) -> None:
    """Make what a graph holds an initializer of the main one, which it then captures."""
    graph, node = value.graph, value.producer()
    if value.is_graph_input() or (value.is_graph_output() and graph is main):
        return
    assert graph is not None and value.name
    if value.is_graph_output():  # a body gives out what it makes
        given = ir.Node("", "Identity", [value], num_outputs=1)
        given.outputs[0].name = f"{value.name}.given"
        given.outputs[0].type, given.outputs[0].shape = value.type, value.shape
        graph.append(given)
        graph.outputs[:] = [given.outputs[0] if output is value else output for output in graph.outputs]
    kind, shape = ir.TensorType(data.dtype), ir.Shape(data.shape.numpy())
    lifted = ir.Value(name=value.name, type=kind, shape=shape, const_value=data)
    inherit(lifted, value)
    value.replace_all_uses_with(lifted)
    if node is None:
        graph.initializers.pop(value.name)
    else:
        graph.remove(node, safe=True)
    main.register_initializer(lifted)


def check_homes(model: Model, names: Iterable[str]) -> None:
    """Refuse, before any training, weights that could not be saved."""
    known = homes(model.ir.graph)
    for name in names:
        if name not in known:
            raise OnwardError(f"the model as it was given holds no weight {name!r} in which a trained one can be saved")


def with_weights(model: Model, arrays: Mapping[str, Array]) -> Model:
    """A copy of a model with other elements in its weights."""
    check_homes(model, arrays)
    copy = model.ir.clone()
    known = homes(copy.graph)
    for name, array in arrays.items():
        home, tensor = known[name], ir.Tensor(array.copy(), name=name)
        if isinstance(home, ir.Node):
            home.attributes.clear()
            home.attributes["value"] = ir.AttrTensor("value", tensor)
        else:
            home.const_value = tensor
    return Model(copy, [], None, model.ir_version)
