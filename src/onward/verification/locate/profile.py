"""The error of every value inside a graph, in one run of each side: along the path, and of each node by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.runners.calls import Inputs, Outputs
from onward.verification import compare
from onward.verification.locate.judge import Verdict, errors, jittered_inputs, judge
from onward.verification.locate.pieces import Pieces, label
from onward.verification.results import NodeError

LARGEST = 2**29
"""Bytes of values that are read in one run."""
ROUNDINGS = 32
"""How many units in the last place an op without a sum may be off."""

# fmt: off
POINTWISE = {
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BiasGelu", "Ceil", "Clip",
    "Cos", "Cosh", "DequantizeLinear", "Div", "Elu", "Erf", "Exp", "FastGelu", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Swish", "Tan", "Tanh",
    "ThresholdedRelu",
}
# fmt: on
"""Ops each element of whose result is made from one element of each input."""


class Profiler:
    """Compares every value of two sides."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def profile(self, first: int, last: int, feeds: Inputs, *, strict: bool = False) -> list[NodeError]:
        """The nodes from `first` to before `last`, `feeds` being the source's values before them.

        With `strict` a node may only be off by what its own rounding explains, not by what that of a network does.
        """
        return [entry for chunk in self._chunks(first, last, feeds) for entry in self._entries(*chunk, feeds, strict)]

    def _chunks(self, first: int, last: int, feeds: Inputs) -> Iterator[tuple[int, int]]:
        """Stretches whose values fit into memory, by the sizes that follow from those of the inputs."""
        sizes = _bound_dims(self.pieces.source.cutter.values, feeds)
        start, total = first, 0
        for index in range(first, last):
            size = sum(_nbytes(value, sizes) for value in self.pieces.nodes[index].outputs)
            if total + size > LARGEST and index > start:
                yield start, index
                start, total = index, 0
            total += size
        if start < last:
            yield start, last

    def _entries(self, first: int, last: int, feeds: Inputs, strict: bool) -> list[NodeError]:
        """Those of one chunk; of half of it where a side cannot run it, and none for a node that cannot be run."""
        try:
            return list(self._compare(first, last, feeds, strict))
        except OnwardError:
            if last - first <= 1:
                return []
            middle = (first + last) // 2
            parts = ((first, middle), (middle, last))
            return [entry for part in parts for entry in self._entries(*part, feeds, strict)]

    def _compare(self, first: int, last: int, feeds: Inputs, strict: bool) -> Iterator[NodeError]:
        source, other = self.pieces.source, self.pieces.other
        made = self.pieces.made(first, last)
        shared = self.pieces.shared(made)
        if not shared:
            return
        nodes = self.pieces.nodes[first:last]
        used = dict.fromkeys(v.name for node in nodes for v in source.cutter.reads(node) if v.name)
        varying = {value.name for value in source.cutter.varying}
        read = dict.fromkeys([*made, *(name for name in used if name in varying and name not in feeds)])
        values = source.prepare(read, feeds)(feeds)
        theirs = other.prepare(shared, feeds)(feeds)
        path = judge({name: values[name] for name in shared}, theirs)
        own = self._own(shared, {**feeds, **values}, strict)
        for node in nodes:
            for name in (v.name for v in node.outputs if v.name and v.name in own):
                yield NodeError(name, label(node), node.op_type, path[name].error, own[name].error, own[name].allowed)

    def _own(self, names: list[str], feeds: Inputs, strict: bool) -> Mapping[str, Verdict]:
        run = self.pieces.source.prepare_separate(names, feeds)
        expected = run(feeds)
        actual = self.pieces.other.prepare_separate(names, feeds)(feeds)
        floors = {name: self._rounding(name, feeds, expected) for name in names} if strict else None
        verdicts = judge(expected, actual, None, floors)
        if not any(verdict.differs for verdict in verdicts.values()):
            return verdicts
        return judge(expected, actual, errors(expected, run(jittered_inputs(feeds))), floors)

    def _rounding(self, name: str, feeds: Inputs, results: Outputs) -> float:
        """The error that a single node's rounding explains: a few units, times the root of how many it sums up."""
        dtype = getattr(results[name], "dtype", None)
        node = self.pieces.source.cutter.values[name].producer()
        if dtype is None or node is None or not (floor := compare.floor(dtype)):
            return 0.0
        depth = 1.0
        if node.op_type not in POINTWISE:
            given = [feeds[v.name or ""] for v in self.pieces.source.cutter.reads(node) if v.name in feeds]
            depth = max((np.size(value) / max(np.shape(value)[0], 1) for value in given if np.ndim(value)), default=1)
        return min(floor, ROUNDINGS * float(ml_dtypes.finfo(dtype).eps) * math.sqrt(max(depth, 1)))


def first_beyond(entries: Iterable[NodeError]) -> NodeError | None:
    """The first whose own error is more than is allowed."""
    return next((entry for entry in entries if entry.own is not None and entry.own > entry.allowed), None)


def _bound_dims(values: Mapping[str, ir.Value], feeds: Inputs) -> dict[str, int]:
    """The sizes of named dimensions, read off the arrays that are fed."""
    found: dict[str, int] = {}
    for name, array in feeds.items():
        shape = values[name].shape if name in values else None
        for dim, size in zip(shape or (), np.shape(array) if shape is not None else (), strict=False):
            if isinstance(dim, ir.SymbolicDim) and dim.value is not None:
                found[dim.value] = size
    return found


def _nbytes(value: ir.Value, sizes: Mapping[str, int]) -> int:
    """Of a value's contents; a dimension of which nothing is known is taken for a common one."""
    if value.shape is None or value.dtype is None:
        return 0
    dims = [dim if isinstance(dim, int) else sizes.get(dim.value or "", 64) for dim in value.shape]
    return math.prod(dims) * (64 if value.dtype == ir.DataType.STRING else value.dtype.bitwidth) // 8
