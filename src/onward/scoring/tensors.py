"""Arrays of numpy as columns of Arrow and back: rows of several numbers are lists of a fixed length, nested."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from onward.errors import InvalidDataError

Array = npt.NDArray[Any]
LONGEST = 2**31 - 1
"""Items of a list of a fixed length."""


def column_of(array: Array) -> Any:
    """An array as a column of as many rows; numbers are not copied."""
    inner = array.reshape(-1)
    if inner.dtype.kind == "S":
        made = pa.array(inner.tolist(), pa.binary()).cast(pa.string())
    elif inner.dtype.kind in "OUT":
        made = pa.array([str(item) for item in inner], pa.string())
    else:
        made = pa.array(np.ascontiguousarray(inner))
    for size in reversed(array.shape[1:]):
        if not 0 < size <= LONGEST:
            what = "hold too much for a table" if size else "hold nothing"
            raise InvalidDataError(f"rows of shape {list(array.shape[1:])} {what}")
        made = pa.FixedSizeListArray.from_arrays(made, size)
    return made


def array_of(column: Any) -> Array | None:
    """A column as an array of numbers: (rows,) or, of lists, (rows, …); None where its lists differ in length."""
    column = joined(column)
    sizes: list[int] = []
    rows = len(column)
    while is_list(column.type):
        if column.null_count:
            return None
        if pa.types.is_fixed_size_list(column.type):
            size = column.type.list_size
        else:
            lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
            if len(lengths) > 1:
                return None
            size = int(lengths[0]) if len(lengths) else 0
        sizes.append(size)
        column = column.flatten()
    return np.asarray(numbers(column)).reshape(rows, *sizes)


def is_list(type: Any) -> bool:
    return bool(pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type))


def is_labelled(type: Any) -> bool:
    """Whether it is one of categories."""
    return bool(pa.types.is_dictionary(type))


def joined(column: Any) -> Any:
    """A column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def numbers(column: Any) -> Array:
    """A column without lists; nulls of floats are NaN, and of others there are none."""
    return np.asarray(column.to_numpy(zero_copy_only=False))
