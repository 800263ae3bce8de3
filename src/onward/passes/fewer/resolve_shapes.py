"""What follows from shapes that are known, as constants: `Shape`, `Gather`, `Concat` in front of a `Reshape` go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.infer import Inference, infer
from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op
from onward.spec.random import RANDOM

Array = npt.NDArray[Any]


def resolve_shapes(model: ir.Model) -> int:
    """In place; returns how many values became constants. Also types every value anew."""
    inference = infer(model)
    names, facts = Names(model), Facts()
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            if node.op_type == "Constant" or node.op_type in RANDOM or node.domain not in ("", "ai.onnx"):
                continue
            count += is_op(node, "Reshape") and _target(node, facts, names)
            read = [value for value in node.outputs if value.uses()]
            if any(value.is_graph_output() for value in node.outputs) or any(map(constant, read)):
                continue
            known = [_numbers(value, inference) for value in read]
            for value, array in zip(read, known, strict=True) if all(a is not None for a in known) else ():
                assert array is not None
                value.replace_all_uses_with(_constant(graph, names.value(f"{value.name}_known"), array))
                count += 1
    return count


def _numbers(value: ir.Value, inference: Inference) -> Array | None:
    numbers = inference.numbers(value)
    if numbers is None or value.dtype is None:
        return None
    return np.array(numbers.tolist(), value.dtype.numpy()).reshape(numbers.shape)


def _constant(graph: ir.Graph, name: str, array: Array) -> ir.Value:
    tensor = ir.Tensor(array, name=name)
    made = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    graph.register_initializer(made)
    return made


def _target(node: ir.Node, facts: Facts, names: Names) -> bool:
    """The shape that a Reshape is given, as a constant: sizes that are not known stand as 0, or as one -1."""
    x, shape = node.inputs[:2]
    if x is None or shape is None or shape.producer() is None or constant(shape) is not None or x.shape is None:
        return False
    if shape.shape is None or len(shape.shape) != 1 or not isinstance(count := shape.shape[0], int):
        return False
    wanted = facts.elements(shape, count)
    if wanted.count(-1) == 1 and (axis := wanted.index(-1)) < len(node.outputs[0].shape or ()):
        rest = facts.dim(node.outputs[0], axis)  # so that another size can be left open
        wanted[axis] = rest if isinstance(rest, int) and rest > 0 else -1
    found = _said(wanted, [facts.dim(x, axis) for axis in range(len(x.shape))])
    graph = node.graph
    if found is None or node.attributes.get_int("allowzero", 0) != 0 or not isinstance(graph, ir.Graph):
        return False
    name = names.value(f"{shape.name}_known")
    node.replace_input_with(1, _constant(graph, name, np.array(found, np.int64)))
    return True


def _said(wanted: Sequence[Any], given: Sequence[Any]) -> list[int] | None:
    """A new size for each that is wanted. Of a tensor without elements, -1 has a meaning only beside numbers."""
    found: list[int | None] = []
    for place, size in enumerate(wanted):
        is_kept = size is not None and not isinstance(size, int) and place < len(given) and size == given[place]
        found.append(size if isinstance(size, int) else 0 if is_kept else None)
    open_ = [place for place, size in enumerate(found) if size is None]
    if not open_:
        return [size for size in found if size is not None]
    if len(open_) > 1 or any(size is not None and size <= 0 for size in found):
        return None
    return [-1 if size is None else size for size in found]
