"""Large weights inside a protobuf message, found without decoding it.

Protobuf would copy every weight twice: into the message, and again each time it is asked for. `split` leaves
them where they are, and hands protobuf a message in which they are references to the original buffer. `join` is its
counterpart: it puts the bytes of tensors into a message that refers to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnx_ir as ir

from onward.hub.large_tensors import MARK, SMALLEST, location_of, raw

EMBEDDED = "\0"
"""The location given to weights that stay in the model's own file: no path can be this."""
_REFERENCE = MARK.encode()
_RAW, _FLOATS, _DOUBLES, _TYPE = 9, 4, 10, 2
_EXTERNAL = {13, 14}
_DATA = {_RAW, _FLOATS, _DOUBLES, 5, 6, 7, 11}
_FIXED_WIDTH = {
    _FLOATS: (onnx.TensorProto.FLOAT, onnx.TensorProto.COMPLEX64),
    _DOUBLES: (onnx.TensorProto.DOUBLE, onnx.TensorProto.COMPLEX128),
}
"""Fields whose packed encoding is, for these element types, the bytes of the tensor."""

# For each message, the fields that lead to tensors; a tensor itself has none.
_TENSOR: dict[int, Any] = {}
_ATTRIBUTE: dict[int, Any] = {5: _TENSOR, 10: _TENSOR}
_NODE = {5: _ATTRIBUTE}
_GRAPH = {1: _NODE, 5: _TENSOR}
_ATTRIBUTE |= {6: _GRAPH, 11: _GRAPH}
_MODEL = {7: _GRAPH, 20: {1: _GRAPH, 2: _GRAPH}, 25: {7: _NODE}}


class _Unusual(Exception):
    """The message is malformed, or encoded in a way that is left to protobuf to judge."""


def split(buffer: memoryview) -> bytes | None:
    """A model's message with references in place of large weights; None if there are none to be found."""
    if len(buffer) < SMALLEST:
        return None
    try:
        return b"".join(_Splitter(buffer).message(0, len(buffer), _MODEL, 0))
    except (_Unusual, IndexError):
        return None


def join(message: bytes, held: Mapping[str, ir.TensorProtocol]) -> list[bytes | memoryview]:
    """A model's message with tensors in place of the references to them, in pieces."""
    return _Joiner(message, held).message(0, len(message), _MODEL, 0) if held else [message]


class _Splitter:
    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer

    def concerns(self, body: int, end: int) -> bool:
        """Whether there may be a tensor in question between two places."""
        return end - body >= SMALLEST

    def message(self, start: int, end: int, children: dict[int, Any], depth: int) -> list[bytes | memoryview]:
        """The message between `start` and `end`, in pieces."""
        if depth > 100:
            raise _Unusual
        if children is _TENSOR:
            return self.tensor(start, end)
        pieces: list[bytes | memoryview] = []
        copied = start
        position = start
        while position < end:
            field_start = position
            number, body, position = self.field(position, end)
            child = children.get(number)
            if child is not None and self.concerns(body, position):
                inner = self.message(body, position, child, depth + 1)
                pieces.append(self.buffer[copied:field_start])
                pieces.append(_varint(number << 3 | 2) + _varint(sum(map(len, inner))))
                pieces += inner
                copied = position
        pieces.append(self.buffer[copied:end])
        return pieces

    def tensor(self, start: int, end: int) -> list[bytes | memoryview]:
        data: list[tuple[int, int, int, int]] = []
        element_type = 0
        position = start
        while position < end:
            field_start = position
            number, body, position = self.field(position, end)
            if number in _EXTERNAL:
                return [self.buffer[start:end]]
            if number in _DATA:
                data.append((number, field_start, body, position))
            elif number == _TYPE:
                element_type = self.varint(body)[0]
        if len(data) != 1:
            return [self.buffer[start:end]]
        number, field_start, body, position = data[0]
        whole = number == _RAW or element_type in _FIXED_WIDTH.get(number, ())
        if not whole or position - body < SMALLEST:
            return [self.buffer[start:end]]
        reference = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (("location", EMBEDDED), ("offset", str(body)), ("length", str(position - body))):
            reference.external_data.add(key=key, value=value)
        return [self.buffer[start:field_start], self.buffer[position:end], reference.SerializeToString()]

    def field(self, position: int, end: int) -> tuple[int, int, int]:
        """The number of the field at `position`, and where its content starts and ends."""
        tag, position = self.varint(position)
        wire_type = tag & 7
        body = position
        if wire_type == 2:
            length, body = self.varint(position)
            position = body + length
        elif wire_type == 0:
            position = self.varint(position)[1]
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        else:
            raise _Unusual
        if position > end:
            raise _Unusual
        if wire_type != 2 and tag >> 3 in _DATA:
            return 0, body, position
        return tag >> 3, body, position

    def varint(self, position: int) -> tuple[int, int]:
        byte = self.buffer[position]
        if byte < 0x80:
            return byte, position + 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            position += 1
            byte = self.buffer[position]
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise _Unusual
        return value, position + 1


class _Joiner(_Splitter):
    def __init__(self, message: bytes, held: Mapping[str, ir.TensorProtocol]) -> None:
        super().__init__(memoryview(message))
        self.bytes, self.held = message, held

    def concerns(self, body: int, end: int) -> bool:
        return self.bytes.find(_REFERENCE, body, end) >= 0

    def tensor(self, start: int, end: int) -> list[bytes | memoryview]:
        proto = onnx.TensorProto.FromString(self.bytes[start:end])
        location = location_of(proto)
        if location is None:
            return [self.buffer[start:end]]
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        data = raw(self.held[location])
        return [proto.SerializeToString(), _varint(_RAW << 3 | 2) + _varint(len(data)), data]


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
