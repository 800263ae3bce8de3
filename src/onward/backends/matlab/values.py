"""Values on their way to Octave and back: arrays with reversed dimensions, texts, cell arrays."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import onnx_ir as ir

from onward.backends.matlab.render import check_text
from onward.backends.matlab.target import CLASSES
from onward.errors import RunFailure

NUMPY = {"single": "float32", "double": "float64", "logical": "bool"}
"""What numpy calls the classes of MATLAB whose names differ."""
_S = ir.DataType.STRING


def to_octave(value: Any, dtype: ir.DataType | None) -> Any:
    """A value as `matfile` writes it."""
    if value is None:
        return np.zeros((0, 0))
    if isinstance(value, list | tuple):
        return [to_octave(item, dtype) for item in value]
    if isinstance(value, dict):
        raise RunFailure("MATLAB code takes no dictionaries")
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return texts(array)
    return array.astype(carrier(ir.DataType.from_numpy(array.dtype)), copy=False)


def carrier(dtype: ir.DataType) -> np.dtype[Any]:
    """The dtype of the arrays that carry one of ONNX."""
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return np.dtype(dtype.numpy())
    kind = CLASSES[dtype]
    return np.dtype(NUMPY.get(kind, kind))


def texts(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Texts as `matfile` writes them."""
    return np.array([text_of(item) for item in array.reshape(-1)], object).reshape(array.shape)


def text_of(item: Any) -> str:
    """A text, which is Unicode: MATLAB holds no other bytes."""
    text = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
    check_text(text)
    return text


def read(file: BinaryIO) -> Any:
    """A value that Octave wrote: an array with its dimensions as MATLAB has them, a list, or a text."""
    line = file.readline().decode("ascii").split()
    if not line:
        raise RunFailure("Octave gave fewer results than it was asked for")
    kind, is_complex, dims = line[0], line[1] == "1", tuple(map(int, line[3:]))
    count = int(np.prod(dims, dtype=np.int64))
    if kind == "cell":
        return Cells([read(file) for _ in range(count)], dims)
    if kind == "char":
        return file.read(count).decode("utf-8", "replace")
    dtype = np.dtype(NUMPY.get(kind, kind))
    parts = [np.frombuffer(file.read(count * dtype.itemsize), dtype) for _ in range(1 + is_complex)]
    flat = parts[0] if not is_complex else (parts[0] + 1j * parts[1]).astype(f"c{2 * dtype.itemsize}")
    return flat.reshape(tuple(reversed(dims)))


class Cells(list[Any]):
    """A cell array, with its dimensions."""

    def __init__(self, items: list[Any], dims: tuple[int, ...]) -> None:
        super().__init__(items)
        self.dims = dims


def from_octave(value: Any, dtype: str, rank: int | None) -> Any:
    """A value of ONNX; `dtype` is what the file calls it, `rank` how many dimensions it has there."""
    if isinstance(value, Cells) and dtype == "STRING":
        return np.array(list(value), dtype=object).reshape(_shape(tuple(reversed(value.dims)), rank))
    if isinstance(value, str):
        return np.array(value, dtype=object)
    of = ir.DataType[dtype].numpy()
    array = value if value.dtype == of else value.astype(of)
    return array.reshape(_shape(array.shape, rank))


def _shape(shape: tuple[int, ...], rank: int | None) -> tuple[int, ...]:
    """Dimensions in ONNX's order: MATLAB has at least two, and drops the last ones where they are 1."""
    if rank is None:
        return shape
    excess = len(shape) - rank
    if excess <= 0:
        return (1,) * -excess + shape
    if any(n != 1 for n in shape[:excess]):
        raise RunFailure(f"the generated code gave an array of {len(shape)} dimensions where the file has {rank}")
    return shape[excess:]
