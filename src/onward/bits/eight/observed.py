"""What the layers of a model read and give on samples: ranges, and what goes together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from onward.bits.eight.multiplied import Matrix, matrices
from onward.bits.eight.ranges import Ranges
from onward.bits.eight.unsaturated import ROWS, Seen
from onward.graph.replace import constant, is_op, made_by, only_user
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs

LAYERS = ("Conv", "MatMul", "Gemm", "ConvTranspose")
"""Ops that are worth it, and that decide what is lost."""
FOLLOW = ("Relu", "Clip")
"""Ops that a layer does as well, by the range of its result."""
AT_ONCE, PIECES = 16, 32
"""Rows of a sample that are run together, and how many such parts of samples."""
VALUES = 100
"""How many values are looked at in one run: all of them are in memory."""


def is_layer(node: ir.Node) -> bool:
    """Whether it computes in 32 bits what may be in 8, and was not before."""
    floats = all(value is not None and value.dtype == ir.DataType.FLOAT for value in node.inputs[:2])
    return is_op(node, *LAYERS) and floats and made_by(node.inputs[1], "DequantizeLinear") is None


@dataclass(frozen=True)
class Observed:
    ranges: Ranges
    seen: dict[str, tuple[Matrix, Seen]]
    """By the name of a layer."""

    @staticmethod
    def on(source: Model, samples: Sequence[Inputs]) -> Observed:
        """`source` has named nodes."""
        graph = source.ir.graph
        ranges, seen = Ranges(), {m.node.name or "": (m, Seen(m)) for m in matrices(graph)}
        layers = [node for node in graph if is_layer(node)]
        values = dict.fromkeys(value for layer in layers for value in _values(layer))
        fed = [value for value in values if value.is_graph_input()]
        made = [value for value in values if not value.is_graph_input()]
        parts = pieces(source, samples)
        for first in range(0, max(len(made), 1), VALUES):
            names = {value.name or "" for value in made[first : first + VALUES]}
            run = prepare("onnxruntime", with_outputs(source, sorted(names))) if names else None
            readers = [(node, value) for node in layers if (value := node.inputs[0]) is not None]
            for inputs in parts:
                found = dict(run(inputs)) if run is not None else {}
                if not first:
                    found |= {value.name or "": inputs[value.name or ""] for value in fed}
                for name, array in found.items():
                    ranges.add(name, array)
                for node, value in readers:
                    if (node.name or "") in seen and value.name in found:
                        matrix, sums = seen[node.name or ""]
                        x = np.asarray(found[value.name], np.float32)
                        sums.add(matrix.data(x, max(ROWS // len(parts), 1)))
        return Observed(ranges, seen)


def held(layer: ir.Node) -> Iterator[ir.Value]:
    """What it reads and gives that is in 8 bits, the latter behind the op that it took over."""
    for value in (*layer.inputs[:2], result(layer)):
        if value is not None and constant(value) is None and value.dtype == ir.DataType.FLOAT:
            yield value


def result(layer: ir.Node) -> ir.Value:
    """What it gives, or what the op behind it does that it may take over."""
    follower = only_user(layer.outputs[0])
    return follower.outputs[0] if follower is not None and is_op(follower, *FOLLOW) else layer.outputs[0]


def _values(layer: ir.Node) -> Iterator[ir.Value]:
    """What has a range."""
    yield from held(layer)
    if layer.outputs[0].dtype == ir.DataType.FLOAT:
        yield layer.outputs[0]


def pieces(model: Model, samples: Sequence[Inputs]) -> list[Inputs]:
    """The samples in parts of some rows each, where rows are independent of one another: some from all over them."""
    found = [part for inputs in samples for part in _split(model, inputs)]
    if len(found) <= PIECES:
        return found
    return [found[i] for i in np.linspace(0, len(found) - 1, PIECES).astype(int)]


def _split(model: Model, inputs: Inputs) -> Iterator[Inputs]:
    firsts = {_first(value) for value in (*model.ir.graph.inputs, *model.ir.graph.outputs)}
    counts = {np.shape(array)[0] if np.ndim(array) else 0 for array in inputs.values()}
    (name, count) = (firsts.pop(), counts.pop()) if len(firsts) == len(counts) == 1 else (None, 0)
    if name is None or count <= AT_ONCE:
        yield inputs
        return
    for start in range(0, count, AT_ONCE):
        yield {key: array[start : start + AT_ONCE] for key, array in inputs.items()}


def _first(value: ir.Value) -> str | None:
    """The name of the first dimension, if it has one: rows that may be any number."""
    first = value.shape[0] if value.shape is not None and len(value.shape) else None
    return first.value if isinstance(first, ir.SymbolicDim) else None


def with_outputs(model: Model, names: Sequence[str]) -> Model:
    """A copy that gives these values."""
    made = model.copy()
    values = {value.name: value for node in made.ir.graph for value in node.outputs}
    made.ir.graph.outputs[:] = [values[name] for name in names]
    for value in made.ir.graph.outputs:
        value.type = value.type or ir.TensorType(ir.DataType.FLOAT)
    return replace(made, path=None, training_info=[])
