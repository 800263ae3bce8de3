"""What a training starts from, set aside: in a file without a name instead of in memory, to be read if it is asked for.

A trainer works on a copy of the weights. Those of the file that a model was loaded from would only lie beside it.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
SMALLEST = 1 << 16
"""Bytes of a weight that is worth it."""
LINE = 64


def move_to_file(trainable: Trainable) -> None:
    """Move the parameters of a model that was loaded from a file; nothing but where they are changes."""
    if trainable.original.path is None:
        return
    homes = trainable.original.ir.graph.initializers
    held = {name: homes[name].const_value for name in trainable.parameters if name in homes}
    chosen = {name: tensor for name, tensor in held.items() if _is_worth_it(tensor, trainable.parameters[name])}
    try:
        moved = _moved({name: trainable.parameters[name] for name in chosen})
    except OSError:
        return  # no room: they stay
    for name, array in moved.items():
        old = chosen[name]
        assert isinstance(old, ir.Tensor)
        trainable.parameters[name] = array
        homes[name].const_value = ir.Tensor(
            array, old.dtype, name=old.name, doc_string=old.doc_string, metadata_props=old.metadata_props
        )


def _is_worth_it(tensor: Any, array: Array) -> bool:
    """Whether a large array lies in memory, and is the tensor's own."""
    if array.nbytes < SMALLEST or not isinstance(tensor, ir.Tensor) or not isinstance(tensor.raw, np.ndarray):
        return False
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root.base is None and np.may_share_memory(tensor.raw, array)


def _moved(arrays: dict[str, Array]) -> dict[str, Array]:
    """Views, read-only, of a file that disappears with them."""
    if not arrays:
        return {}
    offsets = {}
    with tempfile.TemporaryFile(prefix="onward-") as file:
        for name, array in arrays.items():
            file.seek(-(-file.tell() // LINE) * LINE)
            offsets[name] = file.tell()
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.flush()
        buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {
        name: np.frombuffer(buffer, array.dtype, array.size, offsets[name]).reshape(array.shape)
        for name, array in arrays.items()
    }
