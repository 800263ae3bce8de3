"""Why agreement of two models, or a difference, may say little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.walk import all_nodes, inner_graphs
from onward.model import Model
from onward.runners.calls import Outputs
from onward.spec.random import RANDOM
from onward.verification.compare import tolerance
from onward.verification.metrics import FILL, Array, Error, is_float, rms


def doubts(model: Model | None, found: list[Outputs]) -> Iterator[str]:
    """Why agreement, or a difference, may say little."""
    if drawn := random_ops(model):
        yield f"the source draws random numbers ({', '.join(drawn)}), so that even two runs of it may not agree"
    for name in found[0]:
        arrays = [outputs[name] for outputs in found]
        if not all(isinstance(array, np.ndarray) for array in arrays):
            continue
        floats = all(is_float(array.dtype) for array in arrays)
        if not any(array.size for array in arrays):
            words = "is empty"
        elif floats and not any(np.isfinite(array).any() for array in arrays):
            words = "has no finite number"
        elif floats and not any(array.any() for array in arrays):
            words = "is zero"
        elif floats and all(_overshadowed(array) for array in arrays):
            words = "has a few elements next to which the others are smaller than what it may be off by"
        else:
            continue
        yield f"the output {name!r} {words}, for all of the data, so that agreement there says little"


def _overshadowed(array: Array) -> bool:
    """Whether most elements could be wrong without being noticed, because others are huge."""
    sizes = np.abs(array[np.isfinite(array)]).astype(np.float64)
    if not sizes.size or sizes.max() < FILL:
        return False
    allowed = tolerance(array.dtype, Error(), array.size).worst * rms(array)
    return bool(np.mean(sizes < allowed) > 0.5)


def blank(found: list[Outputs]) -> str:
    """Why agreement would say nothing at all; '' where there is something that could differ."""
    values = [value for outputs in found for value in outputs.values()]
    if not values:
        return "the source has no output"
    if any(map(_tells, values)):
        return ""
    if any(map(_holds, values)):
        return "no output has a finite number in it, for any of the data"
    return "every output is empty, for all of the data"


def _holds(value: Any) -> bool:
    """Whether there is anything in an output."""
    return any(array.size for array in _arrays(value))


def _tells(value: Any) -> bool:
    """Whether there is a number in an output, or a text."""
    return any(array.size and not (is_float(array.dtype) and not np.isfinite(array).any()) for array in _arrays(value))


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, Mapping):
        yield from (array for item in value.values() for array in _arrays(item))
    elif isinstance(value, list | tuple):
        yield from (array for item in value for array in _arrays(item))
    elif value is not None:
        yield np.asarray(value)


def random_ops(model: Model | None) -> list[str]:
    """The ops by which a model draws random numbers."""
    if model is None:
        return []
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    return sorted({node.op_type for graph in graphs for node in all_nodes(graph) if _draws(node)})


def drawn_outputs(model: Model | None) -> set[str]:
    """The names of outputs that hang on random numbers."""
    if model is None or not random_ops(model):
        return set()
    functions = {name: function.graph for name, function in model.ir.functions.items()}
    drawing = {name for name, graph in functions.items() if any(map(_draws, all_nodes(graph)))}
    while more := {name for name, graph in functions.items() if _calls(graph, drawing)} - drawing:
        drawing |= more
    drawn: set[ir.Value] = set()
    for node in model.ir.graph:
        inside = [node, *(inner for graph in inner_graphs(node) for inner in all_nodes(graph))]
        if any(_draws(one) or one.op_identifier() in drawing or not drawn.isdisjoint(one.inputs) for one in inside):
            drawn.update(node.outputs)
    return {value.name or "" for value in model.ir.graph.outputs if value in drawn}


def _draws(node: ir.Node) -> bool:
    """Dropout does while a model is trained."""
    if node.op_type != "Dropout" or node.domain not in ("", "ai.onnx"):
        return node.op_type in RANDOM
    training = node.inputs[2] if len(node.inputs) > 2 else None
    fixed = None if training is None else ir.convenience.get_const_tensor(training)
    return training is not None and (fixed is None or bool(fixed.numpy().any()))


def _calls(graph: ir.Graph, functions: set[ir.OperatorIdentifier]) -> bool:
    return any(node.op_identifier() in functions for node in all_nodes(graph))
