"""Tensors, between protobuf and onnx-ir."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.gate.bounds import check_room
from onward.hub.oddities import odd
from onward.hub.stored import StoredTensor
from onward.hub.types import MAX_BYTES, data_type
from onward.hub.weights import Weights
from onward.hub.wording import known, metadata, quote, remark, text, write_map

_FIELD_OF = {
    ir.DataType.FLOAT: "float_data",
    ir.DataType.COMPLEX64: "float_data",
    ir.DataType.DOUBLE: "double_data",
    ir.DataType.COMPLEX128: "double_data",
    ir.DataType.INT64: "int64_data",
    ir.DataType.UINT32: "uint64_data",
    ir.DataType.UINT64: "uint64_data",
    ir.DataType.STRING: "string_data",
}
_DATA_FIELDS = {"raw_data", "int32_data", *_FIELD_OF.values()}


class SparseTensor(ir.LazyTensor):
    """A sparse constant. It is written as it was read; as an array it is dense."""

    def __init__(self, proto: onnx.SparseTensorProto, values: ir.TensorProtocol, indices: ir.TensorProtocol):
        shape = ir.Shape(proto.dims, frozen=True)
        super().__init__(self._dense, values.dtype, shape, name=proto.values.name or None)
        self.proto = proto
        self._values, self._indices = values, indices

    def _dense(self) -> ir.TensorProtocol:
        values, indices = self._values.numpy(), self._indices.numpy()
        dense = np.zeros(self.shape.numpy(), values.dtype)
        dense[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)] = values
        return ir.Tensor(dense, self.dtype, name=self.name)


def _shape_of(dims: Any, where: str) -> tuple[int, ...]:
    shape = tuple(dims)
    if any(dim < 0 for dim in shape):
        raise InvalidModelError(f"{where}: a dimension of its shape {list(shape)} is negative")
    if math.prod(dim for dim in shape if dim) > MAX_BYTES:
        raise InvalidModelError(f"{where}: its shape {list(shape)} has more elements than any memory can hold")
    return shape


def read_tensor(proto: onnx.TensorProto, weights: Weights, where: str) -> ir.TensorProtocol:
    """A tensor whose data was checked against its shape before anything was allocated."""
    where = f"{where} {quote(proto.name)}" if proto.name else where
    known(proto, where)
    shape, dtype = _shape_of(proto.dims, where), data_type(proto.data_type, where)
    details: dict[str, Any] = {
        "name": text(proto.name, where) or None,
        "doc_string": remark(proto.doc_string, where),
        "metadata_props": metadata(proto.metadata_props, where),
    }
    if dtype == ir.DataType.UNDEFINED:
        raise InvalidModelError(f"{where}: it has no element type")
    if proto.HasField("segment"):
        raise UnsupportedError(f"{where}: tensors stored in segments are not supported")
    present = [field.name for field, _ in proto.ListFields() if field.name in _DATA_FIELDS]
    external = proto.data_location == onnx.TensorProto.EXTERNAL
    if len(present) + external > 1:
        present = _chosen(present, dtype, external, where)

    size = math.prod(shape)
    if dtype == ir.DataType.STRING:
        if external or present not in ([], ["string_data"]) or len(proto.string_data) != size:
            raise InvalidModelError(f"{where}: its shape {list(shape)} needs {size} strings as string_data")
        return ir.StringTensor(list(proto.string_data), shape=ir.Shape(shape), **details)
    nbytes = (size * dtype.bitwidth + 7) // 8
    if external:
        place = weights.stored(proto, nbytes, where) if dtype.bitwidth >= 8 else None
        if place is not None:
            return StoredTensor(*place, nbytes, dtype, ir.Shape(shape, frozen=True), **details)
        data = weights.read(proto, nbytes, where)
    elif present in ([], ["raw_data"]):
        data = np.frombuffer(proto.raw_data, np.uint8)
    else:
        return ir.Tensor(_typed(proto, present[0], dtype, shape, where), dtype, **details)
    if len(data) != nbytes:
        raise InvalidModelError(f"{where}: its shape {list(shape)} needs {nbytes} bytes, but it has {len(data)}")
    if dtype.bitwidth < 8:
        return ir.PackedTensor(data, dtype, shape=ir.Shape(shape), **details)
    return ir.Tensor(data.view(dtype.numpy()).reshape(shape), dtype, **details)


def _chosen(present: list[str], dtype: ir.DataType, external: bool, where: str) -> list[str]:
    """Which of several fields with data ONNX Runtime reads: none where the data is in a file of its own."""
    own = _FIELD_OF.get(dtype, "int32_data")
    field = next((field for field in ("raw_data", own) if field in present), present[0])
    odd(f"{where}: its data is given more than once, and read from {'its file' if external else field}")
    return [] if external else [field]


def _typed(
    proto: onnx.TensorProto, field: str, dtype: ir.DataType, shape: tuple[int, ...], where: str
) -> npt.NDArray[Any]:
    if field != _FIELD_OF.get(dtype, "int32_data"):
        raise InvalidModelError(f"{where}: elements of type {dtype} cannot be stored as {field}")
    count = math.prod(shape)
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        count *= 2
    elif dtype.bitwidth in (2, 4):
        count = -(-count // (8 // dtype.bitwidth))
    if len(getattr(proto, field)) != count:
        given = len(getattr(proto, field))
        raise InvalidModelError(f"{where}: its shape {list(shape)} needs {count} numbers, but it has {given}")
    alone = onnx.TensorProto(data_type=proto.data_type, dims=proto.dims, **{field: getattr(proto, field)})
    try:
        return ir.serde.TensorProtoTensor(alone).numpy()
    except (ValueError, OverflowError) as error:
        raise InvalidModelError(f"{where}: {error}") from error


def read_sparse(proto: onnx.SparseTensorProto, weights: Weights, where: str) -> SparseTensor:
    """A sparse tensor whose indices are sorted, unique, and inside its shape."""
    where = f"{where} {quote(proto.values.name)}" if proto.values.name else where
    known(proto, where)
    shape = _shape_of(proto.dims, where)
    for part in (proto.values, proto.indices):
        embed(part, weights, where)
    values = read_tensor(proto.values, weights, f"{where}: values")
    indices = read_tensor(proto.indices, weights, f"{where}: indices")
    count = values.size if len(values.shape) == 1 else -1
    if not shape or indices.dtype != ir.DataType.INT64 or indices.shape not in ([count], [count, len(shape)]):
        raise InvalidModelError(f"{where}: {count} values cannot have indices of shape {indices.shape}")
    places = indices.numpy()
    bounds = shape if places.ndim == 2 else (math.prod(shape),)
    if (places < 0).any() or (places.reshape(count, -1) >= np.array(bounds, np.int64)).any():
        raise InvalidModelError(f"{where}: an index is outside its shape {list(shape)}")
    linear = np.ravel_multi_index(tuple(places.T), shape) if places.ndim == 2 else places
    if (np.diff(linear) <= 0).any():
        raise InvalidModelError(f"{where}: its indices are not sorted and unique")
    check_room(f"{where}: held densely, it", shape, math.ceil(values.dtype.itemsize), values.nbytes + indices.nbytes)
    copy = onnx.SparseTensorProto()
    copy.CopyFrom(proto)
    return SparseTensor(copy, values, indices)


def embed(proto: onnx.TensorProto, weights: Weights, where: str) -> None:
    """Move the data of an external tensor into the protobuf message."""
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        proto.raw_data = read_tensor(proto, weights, where).tobytes()
        proto.ClearField("external_data")
        proto.ClearField("data_location")


def tensors_in(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a graph and of the graphs inside it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from tensors_in(inner)


Store = Callable[[ir.TensorProtocol, onnx.TensorProto], bool]
"""Puts a tensor's bytes elsewhere and writes where; False when they are to be embedded."""


def write_tensor(proto: onnx.TensorProto, tensor: ir.TensorProtocol, store: Store | None = None) -> None:
    proto.data_type = tensor.dtype.value
    proto.dims.extend(tensor.shape.numpy())
    if tensor.name:
        proto.name = tensor.name
    if tensor.doc_string:
        proto.doc_string = tensor.doc_string
    write_map(proto.metadata_props, tensor.metadata_props)
    if isinstance(tensor, ir.StringTensor):
        proto.string_data.extend(tensor.string_data())
    elif store is None or not store(tensor, proto):
        proto.raw_data = tensor.tobytes()
