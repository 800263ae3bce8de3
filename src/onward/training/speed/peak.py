"""How much a graph whose nodes are in order holds at once, as far as shapes are known before it runs."""

from __future__ import annotations

import math

import onnx
import onnx_ir as ir

from onward.training.speed.families import is_view
from onward.training.speed.lifetimes import reads

UNKNOWN = 32
"""What a dimension is taken for that a graph does not know, most often the size of a batch."""


def known_bytes(graph: onnx.GraphProto) -> dict[str, int]:
    """What values take whose shapes a graph tells."""
    return {
        value.name: _bytes(value.type.tensor_type)
        for value in (*graph.input, *graph.value_info)
        if value.type.tensor_type.HasField("shape")
    }


def planned_peak(graph: onnx.GraphProto, known: dict[str, int]) -> int:
    """The bytes of all values that are held at once, without inputs, weights and outputs.

    A value of unknown shape, as kernels of ONNX Runtime make some, is taken to be as large as the largest that it is
    computed from, unless a view of it is known.
    """
    nodes = list(graph.node)
    viewed = {node.output[0]: node.input[0] for node in nodes if is_view(node)}
    given = {value.name for value in (*graph.input, *graph.initializer)}
    outputs = {value.name for value in graph.output}
    last = {_whole(name, viewed): place for place, node in enumerate(nodes) for name in reads(node)}
    ends: dict[int, list[str]] = {}
    for name, place in last.items():
        ends.setdefault(place, []).append(name)
    sizes = dict(known)
    for name, seen in reversed(viewed.items()):
        if name in sizes:
            sizes.setdefault(seen, sizes[name])
    held: dict[str, int] = {}
    now, most = 0, 0
    for place, node in enumerate(nodes):
        largest = max((sizes[name] for name in reads(node) if name in sizes and name not in given), default=0)
        for name in filter(None, node.output):
            size = sizes.setdefault(name, largest)
            if name not in viewed and name not in outputs:
                held[name] = size
                now += size
        most = max(most, now)
        for name in (*ends.get(place, ()), *(name for name in node.output if name not in last)):
            now -= held.pop(name, 0)
    return most


def _whole(name: str, viewed: dict[str, str]) -> str:
    while name in viewed:
        name = viewed[name]
    return name


def _bytes(tensor: onnx.TypeProto.Tensor) -> int:
    """Texts count as references."""
    sizes = [dim.dim_value if dim.HasField("dim_value") else UNKNOWN for dim in tensor.shape.dim]
    has_width = tensor.elem_type not in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING)
    width = ir.DataType(tensor.elem_type).itemsize if has_width else 8
    return math.ceil(math.prod(sizes) * width)
