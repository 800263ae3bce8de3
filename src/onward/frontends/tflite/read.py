"""A flatbuffer of TensorFlow Lite as plain objects."""

from __future__ import annotations

import itertools
import os
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.frontends.tflite.sparse import dense

DTYPES = {
    0: ir.DataType.FLOAT,
    1: ir.DataType.FLOAT16,
    2: ir.DataType.INT32,
    3: ir.DataType.UINT8,
    4: ir.DataType.INT64,
    5: ir.DataType.STRING,
    6: ir.DataType.BOOL,
    7: ir.DataType.INT16,
    8: ir.DataType.COMPLEX64,
    9: ir.DataType.INT8,
    10: ir.DataType.DOUBLE,
    11: ir.DataType.COMPLEX128,
    12: ir.DataType.UINT64,
    15: ir.DataType.UINT32,
    16: ir.DataType.UINT16,
    17: ir.DataType.INT4,
}
"""By the number in the schema."""

MARK = b"TFL3"
SUBGRAPHS = 8
"""Where the root's table says where its graphs are: the third field, after two numbers of two bytes."""


@dataclass(frozen=True)
class Scale:
    """How whole numbers stand for others: one scale for all, or one for each slice along an axis."""

    scales: npt.NDArray[np.float32]
    zeros: npt.NDArray[np.int64]
    axis: int


@dataclass(frozen=True)
class Names:
    """Of inputs and outputs, by the numbers of their tensors."""

    inputs: dict[int, str]
    outputs: dict[int, str]


@dataclass(frozen=True)
class Lite:
    """A model that was read."""

    model: Any
    data: bytes
    """The file: what does not fit into a flatbuffer stands behind it."""

    @property
    def graphs(self) -> list[Any]:
        return list(self.model.subgraphs)

    def graph_of(self, signature: str | None) -> int:
        """The number of the graph that a signature runs; without one, of the first."""
        found = {held.signatureKey.decode(): int(held.subgraphIndex) for held in self.model.signatureDefs or ()}
        if signature is None:
            return 0
        if signature not in found:
            raise OnwardError(f"it has no signature {signature!r}; it has {', '.join(sorted(found)) or 'none'}")
        return found[signature]

    def names(self, number: int = 0) -> Names:
        """Those of the signature, where there is one of this graph that names all; else those of tensors."""
        graph = self.graphs[number]
        found = Names(*({int(i): name_of(graph.tensors[i]) for i in ends} for ends in (graph.inputs, graph.outputs)))
        for signature in self.model.signatureDefs or ():
            sides = (signature.inputs or (), signature.outputs or ())
            ends = [{int(end.tensorIndex): end.name.decode() for end in side} for side in sides]
            if signature.subgraphIndex == number and [set(e) for e in ends] == [set(found.inputs), set(found.outputs)]:
                return Names(*ends)
        return found

    def op_type(self, operator: Any) -> str:
        """The name of a builtin op, or of a custom one."""
        code = self.model.operatorCodes[operator.opcodeIndex]
        number = max(code.builtinCode, code.deprecatedBuiltinCode)
        name = _names().get(number, str(number))
        return f"CUSTOM {code.customCode.decode()}" if name == "CUSTOM" else name

    def keeps_sizes(self) -> bool:
        """Whether the interpreter computes only in the sizes of the file, though some are said to be open.

        So it is where a loop begins with a size that the file fixes, and goes on with one that is open: the interpreter
        gives what comes out of the loop the size that it began with.
        """
        return any(
            _sizes_of(graph.tensors[before]) == _sizes_of(graph.tensors[after])
            and any(a >= 0 > b for a, b in zip(*(_signature(graph.tensors[i]) for i in (before, after)), strict=True))
            for graph in self.graphs
            for operator in graph.operators or ()
            if self.op_type(operator) == "WHILE"
            for before, after in zip(operator.inputs, operator.outputs, strict=True)
        )

    def array(self, tensor: Any) -> npt.NDArray[Any] | None:
        """The numbers of a constant."""
        buffer = self.model.buffers[tensor.buffer]
        data = self.data[buffer.offset : buffer.offset + buffer.size] if buffer.offset > 1 else buffer.data
        shape = [] if tensor.shape is None else [int(n) for n in tensor.shape]
        if data is None or len(data) == 0:
            return np.zeros(shape, dtype_of(tensor).numpy()) if 0 in shape else None
        dtype = dtype_of(tensor)
        if dtype == ir.DataType.STRING:
            return np.asarray(_strings(bytes(data)), object).reshape(shape)
        if dtype == ir.DataType.INT4:
            pairs = np.frombuffer(bytes(data), np.uint8)
            both = np.stack([pairs & 15, pairs >> 4], 1).reshape(-1)[: int(np.prod(shape))].astype(np.int8)
            return np.where(both > 7, both - 16, both).astype(np.int8).reshape(shape)
        numbers = np.frombuffer(bytes(data), dtype.numpy())
        return numbers.reshape(shape) if tensor.sparsity is None else dense(numbers, shape, tensor.sparsity)


def _strings(data: bytes) -> list[bytes]:
    count = int.from_bytes(data[:4], "little")
    if 4 * count + 8 > len(data):
        raise InvalidModelError(f"it is damaged: {len(data)} bytes do not hold {count:,} strings")
    ends = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "little") for i in range(count + 1)]
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def name_of(tensor: Any) -> str:
    return tensor.name.decode() if tensor.name else "tensor"


def _sizes_of(tensor: Any) -> list[int]:
    return [] if tensor.shape is None else [int(n) for n in tensor.shape]


def _signature(tensor: Any) -> list[int]:
    """The sizes, -1 where they are open."""
    return _sizes_of(tensor) if tensor.shapeSignature is None else [int(n) for n in tensor.shapeSignature]


def dtype_of(tensor: Any) -> ir.DataType:
    if tensor.type not in DTYPES:
        raise UnsupportedError(f"{name_of(tensor)}: ONNX has no dtype for number {tensor.type} of TensorFlow Lite")
    return DTYPES[tensor.type]


def scale_of(tensor: Any) -> Scale | None:
    """None for a tensor of plain numbers."""
    how = tensor.quantization
    if how is None or how.scale is None or len(how.scale) == 0 or DTYPES.get(tensor.type) == ir.DataType.FLOAT:
        return None
    zeros = how.zeroPoint if how.zeroPoint is not None and len(how.zeroPoint) else [0]
    return Scale(np.asarray(how.scale, np.float32), np.asarray(zeros, np.int64), int(how.quantizedDimension))


@cache
def _names() -> dict[int, str]:
    from tensorflow.lite.python import schema_py_generated as schema

    return {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}


def read(source: str | os.PathLike[str] | bytes) -> Lite:
    """Raises `InvalidModelError` where it is no model of TensorFlow Lite, or a part of one."""
    label = "the model given" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
    except OSError as error:
        raise InvalidModelError(f"{label}: {error.strerror}") from error
    if data[4:8] != MARK:
        raise InvalidModelError(f"{label}: this is not a TensorFlow Lite model")
    try:
        if not _has_graphs(data):
            raise InvalidModelError(f"{label}: there is no graph in this TensorFlow Lite model")
        from tensorflow.lite.python import schema_py_generated as schema

        return Lite(schema.ModelT.InitFromPackedBuf(data, 0), data)
    except (struct.error, IndexError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{label}: this TensorFlow Lite model is damaged or cut short") from error


def _has_graphs(data: bytes) -> bool:
    """Told by the root of the flatbuffer alone, before TensorFlow is loaded."""
    from flatbuffers import encode, packer
    from flatbuffers.table import Table

    root = Table(bytearray(data), encode.Get(packer.uoffset, data, 0))
    field = root.Offset(SUBGRAPHS)
    return bool(field) and root.VectorLen(field) > 0
