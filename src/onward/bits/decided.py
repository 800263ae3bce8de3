"""Decisions of a model, such as the number of a class, given from outside.

A near race goes another way by the least rounding, and all that follows from it is something else. So a model is judged
by what its decisions are made of, and by what follows from those of the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.replace import constant, is_op
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs

DECIDING = (
    "ArgMax",
    "ArgMin",
    "TopK",
    "NonMaxSuppression",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Equal",
)
"""Ops that hold floats against each other."""


@dataclass(frozen=True)
class Decided:
    """A copy of a model, node for node, that takes its decisions as inputs, and gives out what they are made of."""

    model: Model
    samples: tuple[Inputs, ...]
    """The inputs, and what the model decides on them."""


def decided(model: Model, samples: Sequence[Inputs]) -> Decided | None:
    """None where nothing is decided by floats."""
    asked, copy = model.copy(), model.copy()
    races = [value for node in asked.ir.graph for value in _decisions(node)]
    if not races:
        return None
    names, given = Names(copy.ir), list(asked.ir.graph.outputs)
    asked.ir.graph.outputs.extend(value for value in races if value not in given)
    run = prepare("onnxruntime", replace(asked, path=None))
    told = [run(inputs) for inputs in samples]
    taken = {}
    for node in list(copy.ir.graph):
        for value in list(_decisions(node)):
            taken[value.name or ""] = _take(copy.ir.graph, value, names)
        if taken and any(value.name in taken for value in node.outputs):
            _give(copy.ir.graph, node)
    if not copy.ir.graph.outputs:
        return None
    chosen = [{taken[name]: found[name] for name in taken} for found in told]
    more = tuple({**inputs, **made} for inputs, made in zip(samples, chosen, strict=True))
    return Decided(replace(copy, path=None), more)


def _decisions(node: ir.Node) -> Iterator[ir.Value]:
    """What a node decides by floats, as far as anything comes of it."""
    if not is_op(node, *DECIDING) or not any(_is_raced(value) for value in node.inputs):
        return
    for value in node.outputs:
        is_float = value.dtype is None or value.dtype.is_floating_point()
        if not is_float and (value.uses() or value.is_graph_output()):
            yield value


def _is_raced(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT and constant(value) is None


def _take(graph: ir.Graph, value: ir.Value, names: Names) -> str:
    made = ir.Value(name=names.value(f"{value.name}_decided"), type=value.type, shape=value.shape)
    graph.outputs[:] = [output for output in graph.outputs if output is not value]
    value.replace_all_uses_with(made)
    graph.inputs.append(made)
    assert made.name is not None
    return made.name


def _give(graph: ir.Graph, node: ir.Node) -> None:
    for value in node.inputs:
        if value is not None and _is_raced(value) and not value.is_graph_output() and not value.is_graph_input():
            graph.outputs.append(value)
