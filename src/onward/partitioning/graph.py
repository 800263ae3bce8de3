"""A model made ready to be cut: functions inlined, opset raised, types known, every node with a name of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from onward.canon.custom import add_bodies
from onward.canon.inline import inline
from onward.canon.upgrade import upgrade
from onward.graph.constants import plain_constants
from onward.graph.origin import mark_origin
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.partitioning.squeezes import squeeze_late
from onward.verification.locate.cut import Cutter

OPSET = 21
"""Models of an older opset are raised to it: runtimes have seen its forms most, and every one of them is here."""
OLD = 18
"""Below it, reductions have their axes as attributes, which OpenVINO was seen to ignore for some of them."""
SHAPES = frozenset({"Shape", "Size"})
ON_SHAPES = frozenset(
    {"Abs", "Add", "Ceil", "Div", "Floor", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Sub", "Where"}
    | {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Cast", "Identity"}
    | {"Concat", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Unsqueeze"}
    | {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"}
)
"""Ops that compute sizes from sizes: a part that needs the result computes it itself, where it has the tensors."""
MOST_SIZES = 64
"""Elements of a tensor of sizes."""


@dataclass(frozen=True)
class Graph:
    """What there is to divide."""

    cutter: Cutter
    nodes: list[ir.Node]
    """Those that depend on the model's inputs, in order. The others are constants, and go wherever they are read."""
    reads: list[list[int]]
    """The nodes whose results each node reads, those that only graphs inside it read included."""
    sizes: frozenset[ir.Node]
    """The nodes that compute sizes: they cost nothing, and run wherever they are needed."""


def ready(model: Model) -> Model:
    """The same model in a form that runtimes know: one graph of ops, of an opset that is neither old nor their own."""
    graph = model.ir.clone()
    add_bodies(graph)
    inline(graph)
    plain_constants(graph)
    if graph.opset_imports.get("", OPSET) < OLD:
        upgrade(graph, OPSET)
    for node in all_nodes(graph.graph):
        mark_origin(node)
    squeeze_late(graph)
    name_all(graph.graph)
    return Model(graph)


def name_all(graph: ir.Graph) -> None:
    """Reports and plans name nodes, so each has a name, and no two the same."""
    taken: set[str] = set()
    for node in graph:
        name = wanted = node.name or next((v.name for v in node.outputs if v.name), "") or node.op_type
        count = 1
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        taken.add(name)
        node.name = name


def graph_of(model: Model) -> Graph:
    """The nodes of a model that is `ready`, and how they hang together."""
    cutter = Cutter(model)
    varying = cutter.varying
    nodes = [node for node in cutter.nodes() if any(value in varying for value in node.outputs)]
    number = {node: place for place, node in enumerate(nodes)}
    reads = [sorted({number[made] for v in cutter.reads(n) if (made := v.producer()) in number}) for n in nodes]
    sizes: set[ir.Node] = set()
    for node in nodes:
        if is_of_sizes(node, sizes, cutter):
            sizes.add(node)
    return Graph(cutter, nodes, reads, frozenset(sizes))


def is_of_sizes(node: ir.Node, known: set[ir.Node], cutter: Cutter) -> bool:
    """Whether a node computes a few numbers from shapes and constants alone."""
    if node.domain or (node.op_type not in SHAPES and node.op_type not in ON_SHAPES):
        return False
    if any(nbytes_of(value) > 8 * MOST_SIZES for value in node.outputs):
        return False
    read = [value for value in cutter.reads(node) if value in cutter.varying]
    return node.op_type in SHAPES or all(value.producer() in known for value in read)


def nbytes_of(value: ir.Value) -> int:
    """The size of a tensor; a dimension that is open counts once."""
    if value.shape is None or value.dtype is None:
        return 0 if value.dtype is None else 1 << 20
    count = math.prod(d if isinstance(d, int) else 1 for d in value.shape)
    return -(-count * (64 if value.dtype == ir.DataType.STRING else value.dtype.bitwidth) // 8)
