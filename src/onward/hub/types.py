"""Types and shapes, between protobuf and onnx-ir."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import onnx
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.hub.wording import all_text, known, remark, text

_TENSORS = {"tensor_type": ir.TensorType, "sparse_tensor_type": ir.SparseTensorType}
_CONTAINERS = {"sequence_type": ir.SequenceType, "optional_type": ir.OptionalType}
_FIELDS = {cls: field for field, cls in (_TENSORS | _CONTAINERS).items()}

FLOATING = frozenset(dtype for dtype in ir.DataType if dtype.is_floating_point())
"""To ask whether a dtype is one of them takes a tenth of the time that onnx-ir's method does."""
MAX_BYTES = 2**62
"""More than any memory holds, and small enough that no product of sizes overflows 64 bits."""


@dataclass(frozen=True)
class ForeignType:
    """A type onnx-ir has no class for (a map, an opaque type), kept as the file has it."""

    proto: onnx.TypeProto

    @property
    def denotation(self) -> str | None:
        return self.proto.denotation or None

    @property
    def elem_type(self) -> ir.DataType:
        return ir.DataType.UNDEFINED

    dtype = elem_type

    def __hash__(self) -> int:
        return hash(self.proto.SerializeToString(deterministic=True))

    def __repr__(self) -> str:
        return _spell(self.proto)


def _spell(proto: onnx.TypeProto) -> str:
    kind = proto.WhichOneof("value")
    if kind == "map_type":
        key = onnx.TensorProto.DataType.Name(proto.map_type.key_type).lower()
        return f"map({key}, {_spell(proto.map_type.value_type)})"
    if kind == "opaque_type":
        return f"opaque({proto.opaque_type.domain}, {proto.opaque_type.name})"
    if kind in _CONTAINERS:
        return f"{kind.removesuffix('_type')}({_spell(getattr(proto, kind).elem_type)})"
    if kind in _TENSORS:
        return f"tensor({onnx.TensorProto.DataType.Name(getattr(proto, kind).elem_type).lower()})"
    return "unknown"


def data_type(number: int, where: str) -> ir.DataType:
    try:
        return ir.DataType(number)
    except ValueError:
        raise InvalidModelError(f"{where}: element type {number} is not known") from None


def read_type(proto: onnx.TypeProto, where: str) -> tuple[ir.TypeProtocol | None, ir.Shape | None]:
    """The type, and the shape of the tensors inside it, which onnx-ir keeps apart."""
    known(proto, where)
    kind = proto.WhichOneof("value")
    denotation = remark(proto.denotation, where)
    if kind is None and denotation is None:
        return None, None
    inner = getattr(proto, kind or "tensor_type")
    if kind in _TENSORS:
        shape = read_shape(inner.shape, where) if inner.HasField("shape") else None
        return _TENSORS[kind](data_type(inner.elem_type, where), denotation=denotation), shape
    if kind in _CONTAINERS:
        element, shape = read_type(inner.elem_type, where)
        if element is not None:
            return _CONTAINERS[kind](element, denotation=denotation), shape
    if kind == "map_type":
        data_type(inner.key_type, where)
        read_type(inner.value_type, where)
    all_text(proto, where)
    copy = onnx.TypeProto()
    copy.CopyFrom(proto)
    return ForeignType(copy), None  # type: ignore[return-value]


def read_shape(proto: onnx.TensorShapeProto, where: str) -> ir.Shape:
    """A negative dimension, mostly -1, is what some exporters write for one that is not known, and is read so."""
    try:
        dims, denotations = _dimensions(proto.SerializeToString())
    except InvalidModelError as error:
        raise InvalidModelError(f"{where}: {error}") from error
    return ir.Shape(dims, denotations=denotations, frozen=True)


@lru_cache(maxsize=1024)
def _dimensions(data: bytes) -> tuple[list[int | str | None], list[str | None]]:
    """What the dimensions of a serialized shape are, and what they denote; many values of a model have the same."""
    proto = onnx.TensorShapeProto.FromString(data)
    dims: list[int | str | None] = []
    for dim in proto.dim:
        kind = dim.WhichOneof("value")
        if kind == "dim_value":
            dims.append(dim.dim_value if dim.dim_value >= 0 else None)
        else:
            dims.append(text(dim.dim_param, "a dimension") if kind else None)
    if math.prod(d for d in dims if isinstance(d, int) and d) > MAX_BYTES:
        raise InvalidModelError("its shape has more elements than any memory can hold")
    return dims, [remark(dim.denotation, "a dimension") for dim in proto.dim]


def write_type(proto: onnx.TypeProto, type_: ir.TypeProtocol, shape: ir.Shape | None) -> None:
    if isinstance(type_, ForeignType):
        proto.CopyFrom(type_.proto)
        return
    inner = getattr(proto, _FIELDS[type(type_)])  # type: ignore[index]
    if type_.denotation:
        proto.denotation = type_.denotation
    if isinstance(type_, ir.TensorType | ir.SparseTensorType):
        inner.elem_type = type_.dtype.value
        if shape is not None:
            ir.serde.serialize_shape_into(proto, shape)
    else:
        write_type(inner.elem_type, type_.elem_type, shape)  # type: ignore[arg-type]
