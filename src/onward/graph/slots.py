"""What a caller has to feed a model: its inputs without a default, each with its type and dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onward.hub.types import ForeignType

Dim = int | str
"""A size, or the name of a dynamic dimension; equal names have equal sizes."""
NAMELESS = ("", "?", "-1", "None")
"""Names of dimensions that exporters write and that name nothing."""
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
