"""Feasible sizes for the dynamic dimensions of a model's inputs.

A dimension is fixed where a consumer leaves no choice (the channels of a Conv, the features of a MatMul). The
others get candidates from the kind of input they belong to; which of them fit is for a runtime to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

Dim = int | str
"""A size, or the name of a dynamic dimension; equal names have equal sizes."""

# fmt: off
ELEMENTWISE = {
    "Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Greater", "Less", "Equal", "Where", "Not", "Clip",
    "Neg", "Abs", "Sqrt", "Log", "Exp", "Erf", "Cast", "Identity", "Dropout", "Relu", "LeakyRelu", "PRelu",
    "Sigmoid", "Tanh", "Gelu", "Softmax", "LogSoftmax", "QuantizeLinear", "DequantizeLinear",
}
# fmt: on
NAMELESS = ("", "?", "-1", "None")


@dataclass(frozen=True)
class Slot:
    """A graph input that a caller has to feed."""

    value: ir.Value
    dtype: ir.DataType
    dims: tuple[Dim, ...]
    is_sequence: bool = False

    @property
    def name(self) -> str:
        return self.value.name or ""


def slots(model: ir.Model) -> list[Slot]:
    """The inputs without a default. A nameless first axis is taken as the batch, one for all inputs."""
    return [_slot(value) for value in model.graph.inputs if value.name not in model.graph.initializers]


def _slot(value: ir.Value) -> Slot:
    dims: list[Dim] = []
    shape = value.shape if value.shape is not None else ir.Shape([None] * _rank(value))
    for axis, dim in enumerate(shape):
        size = dim if isinstance(dim, int) else dim.value
        if size is None or size in NAMELESS or (isinstance(size, int) and size < 0):
            size = "batch" if axis == 0 else f"{value.name}.{axis}"
        dims.append(size)
    dtype = value.dtype if value.dtype is not None else ir.DataType.FLOAT
    return Slot(value, dtype, tuple(dims), isinstance(value.type, ir.SequenceType))


def _rank(value: ir.Value) -> int:
    """The rank of an input that declares none, from the weights of what consumes it."""
    for node, index in value.uses():
        weight = node.inputs[1] if len(node.inputs) > 1 else None
        if index == 0 and node.op_type in ("Conv", "ConvTranspose") and weight is not None and weight.shape:
            return len(weight.shape)
        if index == 0 and node.op_type in ("LSTM", "GRU", "RNN"):
            return 3
    return 2


def fixed(inputs: list[Slot]) -> dict[str, int]:
    """Dynamic dimensions whose size a consumer dictates."""
    found: dict[str, int] = {}
    for slot in inputs:
        for name, size in _demands(slot):
            found.setdefault(name, size)
    return found


def _demands(slot: Slot) -> Iterator[tuple[str, int]]:
    """Follows the input through ops that keep or permute its axes, and asks each op that reads it."""
    pending: list[tuple[ir.Value, tuple[Dim, ...]]] = [(slot.value, slot.dims)]
    seen: set[int] = set()
    while pending and len(seen) < 64:
        value, dims = pending.pop()
        for node, index in value.uses():
            for axis, size in _demand(node, index, len(dims)):
                if -len(dims) <= axis < len(dims) and isinstance(name := dims[axis], str):
                    yield name, size
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.op_type == "Transpose":
                perm = node.attributes.get_ints("perm", range(len(dims))[::-1])
                pending.append((node.outputs[0], tuple(dims[axis] for axis in perm)))
            elif node.op_type in ELEMENTWISE:
                pending.append((node.outputs[0], dims))


def _demand(node: ir.Node, index: int, rank: int) -> list[tuple[int, int]]:
    """(axis, size) pairs that `node` requires of its input number `index`."""
    rule = _DEMANDS.get(node.op_type)
    if rule is not None:
        return [(axis, size) for axis, size in rule(node, index) if size is not None]
    if node.op_type in ELEMENTWISE and len(node.inputs) == 2:
        other = node.inputs[1 - index]
        if other is not None and (other.const_value is not None) and other.shape is not None:
            sizes = [_size(other, axis) for axis in range(len(other.shape))]
            return [(axis - len(sizes), size) for axis, size in enumerate(sizes) if size and size > 1]
    return []


def _size(value: ir.Value | None, axis: int) -> int | None:
    if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    size = value.shape[axis]
    return size if isinstance(size, int) else None


Demand = list[tuple[int, int | None]]


def _conv(node: ir.Node, index: int) -> Demand:
    channels = _size(node.inputs[1], 1)
    return [(1, channels and channels * node.attributes.get_int("group", 1))] if index == 0 else []


def _conv_transpose(node: ir.Node, index: int) -> Demand:
    return [(1, _size(node.inputs[1], 0))] if index == 0 else []


def _matmul(node: ir.Node, index: int) -> Demand:
    return [(-1, _size(node.inputs[1], -2))] if index == 0 else [(-2, _size(node.inputs[0], -1))]


def _gemm(node: ir.Node, index: int) -> Demand:
    if index != 0:
        return []
    inner = 1 if node.attributes.get_int("transB", 0) else 0
    return [(0 if node.attributes.get_int("transA", 0) else 1, _size(node.inputs[1], inner))]


def _channel_norm(node: ir.Node, index: int) -> Demand:
    return [(1, _size(node.inputs[1], 0))] if index == 0 else []


def _layer_norm(node: ir.Node, index: int) -> Demand:
    return [(-1, _size(node.inputs[1], -1))] if index == 0 else []


def _recurrent(node: ir.Node, index: int) -> Demand:
    if index == 0:
        return [(2, _size(node.inputs[1], 2))]
    if index in (5, 6):
        return [(0, _size(node.inputs[1], 0)), (2, _size(node.inputs[2], 2))]
    return []


def _trees(node: ir.Node, index: int) -> Demand:
    features = node.attributes.get_ints("nodes_featureids", ())
    return [(1, max(features) + 1)] if features else []


def _scaler(node: ir.Node, index: int) -> Demand:
    length = max(len(node.attributes.get_floats(key, ())) for key in ("offset", "scale"))
    return [(1, length)] if length > 1 else []


_DEMANDS: dict[str, Callable[[ir.Node, int], Demand]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "BatchNormalization": _channel_norm,
    "InstanceNormalization": _channel_norm,
    "LayerNormalization": _layer_norm,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "TreeEnsemble": _trees,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
    "Scaler": _scaler,
}

BATCH = (2, 1)
HEIGHT = (64, 32, 96, 48, 224, 320, 640, 112, 128, 8)
WIDTH = (96, 64, 96, 320, 224, 320, 640, 112, 128, 8)
AUDIO = (512, 16000, 576, 256, 1536, 4000, 32000, 80)
TOKENS = (12, 16, 32, 8, 7, 64, 128, 512, 1)
FEATURES = (16, 32, 64, 100, 128, 8, 4, 1, 512, 4000, 16000)
BATCH_NAME = re.compile(r"batch|^(n|b|bs|none)$|^unk__\d+$|dynamicdimension", re.IGNORECASE)
AUDIO_NAME = re.compile(r"audio|wave|samples|signal|speech|input|sequence|^t$|time", re.IGNORECASE)


def candidates(inputs: list[Slot], dims: Mapping[str, int] | None = None) -> Iterator[dict[str, int]]:
    """Sizes for every dynamic dimension, the most plausible first; `dims` are given, and not varied."""
    known = fixed(inputs) | dict(dims or {})
    choices: dict[str, tuple[int, ...]] = {}
    for slot in inputs:
        for axis, name in enumerate(slot.dims):
            if isinstance(name, str) and name not in known:
                choices.setdefault(name, _choices(slot, axis, name))
    batches = {name for name, sizes in choices.items() if sizes == BATCH}
    tried: list[dict[str, int]] = []
    for step in range(max(map(len, choices.values()), default=1)):
        for batch in BATCH if batches else BATCH[:1]:
            sizes = {name: batch if name in batches else s[min(step, len(s) - 1)] for name, s in choices.items()}
            if sizes not in tried:
                tried.append(sizes)
                yield known | sizes


def _choices(slot: Slot, axis: int, name: str) -> tuple[int, ...]:
    rank = len(slot.dims)
    if axis == 0 and (rank > 1 or BATCH_NAME.search(name)):
        return BATCH
    if axis == 1 and rank == 3 and isinstance(slot.dims[0], int) and "batch" in name.lower():
        return BATCH
    if rank == 4 and (slot.dtype.is_floating_point() or slot.dtype == ir.DataType.UINT8):
        first_spatial = 1 if slot.dims[3] in (1, 3, 4) else 2
        if axis >= first_spatial:
            return HEIGHT if axis == first_spatial else WIDTH
    is_signal = AUDIO_NAME.search(name) or AUDIO_NAME.search(slot.name)
    if slot.dtype.is_floating_point() and axis == rank - 1 and rank <= 3 and is_signal:
        return AUDIO
    if slot.dtype.is_integer() or slot.dtype in (ir.DataType.BOOL, ir.DataType.STRING):
        return TOKENS
    return FEATURES
