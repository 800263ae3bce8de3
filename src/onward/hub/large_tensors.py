"""Large tensors that a protobuf message refers to instead of holding them: they are neither copied into it nor out."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import ConversionError
from onward.hub.stored import in_place
from onward.hub.wording import quote

MARK = "\0held:"
"""What the location of such a tensor begins with: no path can begin so."""
SMALLEST = 4096
"""Bytes; anything smaller is left in the message."""

Held = dict[str, ir.TensorProtocol]
"""By location. No location is ever given twice, so that those of several models can be put together."""

_numbers = itertools.count()


def hold(proto: onnx.TensorProto, tensor: ir.TensorProtocol, held: Held) -> None:
    """Make the message of a tensor, which has its name, type and shape, refer to it."""
    for field, _ in proto.ListFields():
        if field.name.endswith("_data") or field.name == "data_location":
            proto.ClearField(field.name)
    location = f"{MARK}{next(_numbers)}"
    proto.data_location = onnx.TensorProto.EXTERNAL
    proto.external_data.add(key="location", value=location)
    held[location] = tensor


class Holder:
    """Makes messages refer to the tensors that are worth it; for `write_tensor`."""

    def __init__(self, held: Held) -> None:
        self.held = held

    def __call__(self, tensor: ir.TensorProtocol, proto: onnx.TensorProto) -> bool:
        if tensor.nbytes < SMALLEST:
            return False
        hold(proto, tensor, self.held)
        return True


def location_of(proto: onnx.TensorProto) -> str | None:
    """Where the tensor is held that a message refers to; None if it does not refer to one."""
    if proto.data_location != onnx.TensorProto.EXTERNAL:
        return None
    location = next((entry.value for entry in proto.external_data if entry.key == "location"), "")
    return location if location.startswith(MARK) else None


def held_by(proto: onnx.TensorProto, held: Mapping[str, ir.TensorProtocol]) -> ir.TensorProtocol | None:
    """The tensor that a message refers to, if it does."""
    location = location_of(proto)
    if location is None:
        return None
    if location not in held:
        raise ConversionError(f"the data of the tensor {quote(proto.name)} of the training info was left behind")
    return held[location]


def held_in(infos: Iterable[onnx.TrainingInfoProto]) -> Iterator[onnx.TensorProto]:
    """The messages of training infos that refer to tensors."""
    for info in infos:
        for graph in (info.initialization, info.algorithm):
            yield from (tensor for tensor in graph.initializer if location_of(tensor) is not None)


def raw(tensor: ir.TensorProtocol) -> memoryview:
    """The bytes of a tensor as a file has them, where they are if possible."""
    if tensor.dtype.bitwidth >= 8 and sys.byteorder == "little":
        array = in_place(tensor)
        if array.flags.c_contiguous and array.nbytes == tensor.nbytes:
            return array.reshape(-1).view(np.uint8).data
    return memoryview(tensor.tobytes())


def completed(graph: onnx.GraphProto, held: Mapping[str, ir.TensorProtocol]) -> onnx.GraphProto:
    """A copy of a graph of a training info that holds what it refers to."""
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    for proto in copy.initializer:
        if (tensor := held_by(proto, held)) is not None:
            proto.ClearField("external_data")
            proto.ClearField("data_location")
            proto.raw_data = bytes(raw(tensor))
    return copy
