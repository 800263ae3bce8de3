"""Feasible sizes for the dynamic dimensions of a model's inputs.

What the graph says about them (see `fit`) comes first: sizes that a weight dictates, dimensions that must be equal.
The others get candidates from the kind of input they belong to; which of them fit is for a runtime to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onward.hub.types import ForeignType
from onward.verification.fit import Dim, Fit, walk
from onward.verification.fit_rules import RULES

NAMELESS = ("", "?", "-1", "None")
SUM = re.compile(r"\s*(\w+)\s*\+\s*(\w+)\s*")
"""How exporters write a dimension that is the sum of two: 'past_length + 1'."""
MAP = "map"
SEQUENCE = "sequence"
OPTIONAL = "optional"


@dataclass(frozen=True)
class Slot:
    """A graph input that a caller has to feed."""

    value: ir.Value
    dtype: ir.DataType
    """Of the tensors, or of the values of a map."""
    dims: tuple[Dim, ...]
    containers: tuple[str, ...] = ()
    """What the tensors are wrapped in, outermost first: 'optional', 'sequence', 'map'."""
    key: ir.DataType | None = None
    """Of a map."""

    @property
    def name(self) -> str:
        return self.value.name or ""

    @property
    def spelled(self) -> str:
        """The type in words: 'float32 [batch, 3, 224, 224]', 'sequence of int64 [n]'."""
        dtype = self.dtype.name.lower() if self.dtype == ir.DataType.STRING else str(self.dtype.numpy())
        if self.key is not None:
            return f"map from {self.key.name.lower()} to {dtype}"
        words = "".join(f"{container} of " for container in self.containers)
        shape = f" [{', '.join(map(str, self.dims))}]" if self.value.shape is not None else ""
        return f"{words}{dtype}{shape}"


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
    wrapped_in, key = containers(value.type)
    if key is not None:
        dims, dtype = [], _map_element(value.type) or dtype
    return Slot(value, dtype, tuple(dims), wrapped_in, key)


def containers(type_: Any) -> tuple[tuple[str, ...], ir.DataType | None]:
    if isinstance(type_, ForeignType):
        proto, found = type_.proto, []
        while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type", "map_type"):
            found.append(kind.removesuffix("_type"))
            if kind == "map_type":
                return tuple(found), ir.DataType(proto.map_type.key_type)
            proto = getattr(proto, kind).elem_type
        return tuple(found), None
    if isinstance(type_, ir.SequenceType | ir.OptionalType):
        inner, key = containers(type_.elem_type)
        return (SEQUENCE if isinstance(type_, ir.SequenceType) else OPTIONAL, *inner), key
    return (), None


def _map_element(type_: Any) -> ir.DataType | None:
    proto = type_.proto
    while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type"):
        proto = getattr(proto, kind).elem_type
    element = proto.map_type.value_type.tensor_type.elem_type
    return ir.DataType(element) if element else None


def _rank(value: ir.Value) -> int:
    """The rank of an input that declares none, from the weights of what consumes it."""
    for node, index in value.uses():
        weight = node.inputs[1] if len(node.inputs) > 1 else None
        if index == 0 and node.op_type in ("Conv", "ConvTranspose") and weight is not None and weight.shape:
            return len(weight.shape)
        if index == 0 and node.op_type in ("LSTM", "GRU", "RNN"):
            return 3
    return 2


def fit(graph: ir.Graph, inputs: Sequence[Slot], *, loose: bool = False) -> Fit:
    """What the nodes of a graph say about the sizes of its inputs; `loose`: only numbers, not what is equal."""
    found = Fit(loose=loose)
    for slot in inputs:
        if not slot.containers:
            found.dims[id(slot.value)] = slot.dims
        for name in slot.dims:
            if isinstance(name, str) and (parts := SUM.fullmatch(name)):
                found.made[name] = 1, tuple(int(part) if part.isdigit() else part for part in parts.groups())
    return walk(found, graph, RULES)


BATCH = (2, 1)
HEIGHT = (64, 224, 32, 96, 48, 320, 640, 112, 128, 8)
WIDTH = (96, 224, 64, 96, 320, 320, 640, 112, 128, 8)
AUDIO = (512, 16000, 576, 256, 1536, 4000, 32000, 80)
TOKENS = (12, 16, 32, 8, 7, 64, 128, 512, 1)
FEATURES = (16, 32, 64, 100, 128, 8, 4, 1, 512, 4000, 16000)
VOLUME = (8, 16, 12, 32, 64, 112, 4, 2)
PARTS = (8, 4, 16, 32, 2, 64, 1)
"""Of something that is a multiple: the size of a head."""
EQUAL = (4, 6, 2, 8, 3, 1, 5, 16)
"""Sizes for all free dimensions at once, where none of the plausible ones fit."""
BATCH_NAME = re.compile(r"batch|^(n|b|bs|none)$|^unk__\d+$|dynamicdimension", re.IGNORECASE)
AUDIO_NAME = re.compile(r"audio|wave|samples|signal|speech|input|sequence|^t$|time", re.IGNORECASE)
MOST_ELEMENTS = 1 << 22
"""Of the inputs together; larger candidates take too long to try."""


def candidates(
    inputs: Sequence[Slot], known: Mapping[str, int] | None = None, fitted: Fit | None = None
) -> Iterator[dict[str, int]]:
    """Sizes for every dynamic dimension, the most plausible first; those `known` are not varied.

    The second differs from the first in every dimension that is free.
    """
    fitted = (fitted or Fit()).given(known or {})
    free: dict[str, tuple[int, ...]] = {}
    axes = [(slot, axis, name) for slot in inputs for axis, name in enumerate(slot.dims) if isinstance(name, str)]
    for slot, axis, name in axes:
        if fitted.variables(name) == [first := fitted.first(name)]:
            free.setdefault(first, _at_least(fitted.least.get(name, 1), choices(slot, axis)))
    for _, _, name in axes:
        for variable in fitted.variables(name):
            free.setdefault(variable, PARTS)
    names = [dim for slot in inputs for dim in slot.dims if isinstance(dim, str)]
    tried: list[dict[str, int]] = []
    smallest = dict.fromkeys(free, 1)
    for chosen in [*_plausible(free), *(dict.fromkeys(free, size) for size in EQUAL), smallest]:
        sizes = chosen | {name: fitted.length(name, chosen) or 0 for name in names} | dict(known or {})
        small = not free or elements(inputs, sizes) <= MOST_ELEMENTS or (not tried and chosen is smallest)
        if small and sizes not in tried:
            tried.append(sizes)
            yield sizes


def _at_least(least: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size if size >= least else size + least for size in sizes)


def _plausible(free: Mapping[str, tuple[int, ...]]) -> Iterable[dict[str, int]]:
    """The batch alternates while the others go through their sizes; then the same with the other batch."""
    for shift in (0, 1):
        for step in range(max(map(len, free.values()), default=1)):
            yield {
                name: sizes[(step + shift) % 2] if sizes == BATCH else sizes[min(step, len(sizes) - 1)]
                for name, sizes in free.items()
            }


def elements(inputs: Sequence[Slot], sizes: Mapping[str, int]) -> int:
    return sum(math.prod(sizes[dim] if isinstance(dim, str) else dim for dim in slot.dims) for slot in inputs)


def choices(slot: Slot, axis: int) -> tuple[int, ...]:
    """Plausible sizes of a dynamic dimension."""
    rank, name = len(slot.dims), str(slot.dims[axis])
    if axis == 0 and (rank > 1 or BATCH_NAME.search(name)):
        return BATCH
    if axis == 1 and rank == 3 and isinstance(slot.dims[0], int) and "batch" in name.lower():
        return BATCH
    if rank == 4 and (slot.dtype.is_floating_point() or slot.dtype == ir.DataType.UINT8):
        first_spatial = 1 if slot.dims[3] in (1, 3, 4) else 2
        if axis >= first_spatial:
            return HEIGHT if axis == first_spatial else WIDTH
    if rank > 4:
        return VOLUME
    is_signal = AUDIO_NAME.search(name) or AUDIO_NAME.search(slot.name)
    if slot.dtype.is_floating_point() and axis == rank - 1 and rank <= 3 and is_signal:
        return AUDIO
    if slot.dtype.is_integer() or slot.dtype in (ir.DataType.BOOL, ir.DataType.STRING):
        return TOKENS
    return FEATURES
