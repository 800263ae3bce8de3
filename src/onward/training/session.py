"""ONNX Runtime sessions for training: arrays bound by their addresses, inputs checked before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidDataError
from onward.model import Model
from onward.verification.runners import failures
from onward.verification.sizes import NAMELESS

if TYPE_CHECKING:
    import onnxruntime

Array = np.ndarray[Any, np.dtype[Any]]
Batch = Mapping[str, Any]
CPU = ("cpu", 0)


def open_session(graph: ir.Model, threads: int | None = None) -> onnxruntime.InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if threads:
        options.intra_op_num_threads = threads
    with failures("onnxruntime"):
        proto = Model(graph).to_proto().SerializeToString()
        return onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])


def bind_input(binding: Any, name: str, array: Array) -> None:
    """Read an array where it is; the caller keeps it alive."""
    binding.bind_input(name, *CPU, array.dtype.type, array.shape, array.ctypes.data)


def bind_output(binding: Any, name: str, array: Array) -> None:
    """Write into an array; the caller keeps it alive."""
    binding.bind_output(name, *CPU, array.dtype.type, array.shape, array.ctypes.data)


class Feeds:
    """What a session wants besides weights: data and labels."""

    def __init__(self, session: onnxruntime.InferenceSession, graph: ir.Graph, own: Mapping[str, Any]) -> None:
        """`graph` is that of the session, which does not tell a scalar from a tensor of unknown rank."""
        self._declared = {value.name: value.type for value in session.get_inputs() if value.name not in own}
        self._dims = {value.name: _dims(value) for value in graph.inputs}

    @property
    def names(self) -> list[str]:
        return list(self._declared)

    def checked(self, batch: Batch) -> dict[str, Array]:
        """A batch as arrays that the session takes; an error says what is wrong with it."""
        wanted = ", ".join(map(repr, self._declared))
        if missing := [name for name in self._declared if name not in batch]:
            raise InvalidDataError(f"the batch has no {missing[0]!r}; a step takes {wanted}")
        if unknown := [name for name in batch if name not in self._declared]:
            raise InvalidDataError(f"a step takes no {unknown[0]!r}; it takes {wanted}")
        sizes: dict[str, tuple[str, int]] = {}
        found = {}
        for name, kind in self._declared.items():
            array = _cast(name, batch[name], kind)
            _check_shape(name, array, self._dims[name], sizes)
            found[name] = array
        return found


def _cast(name: str, given: Any, kind: str) -> Array:
    """As the dtype asked for, without a change of values other than rounding to another float."""
    dtype = _NUMPY.get(kind)
    if dtype is None:
        raise InvalidDataError(f"{name!r} is a {kind}, which cannot be fed in training")
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InvalidDataError(f"{name!r} is no array: {error}") from error
    if array.dtype == dtype:
        return np.ascontiguousarray(array).reshape(array.shape)
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise InvalidDataError(f"{name!r} is of {array.dtype}, but a step takes {np.dtype(dtype)}")
    cast: Array = np.ascontiguousarray(array, dtype).reshape(array.shape)
    if cast.dtype.kind in "iu" and not (cast == array).all():
        raise InvalidDataError(f"{name!r} has numbers that are too large for {np.dtype(dtype)}")
    return cast


def _dims(value: ir.Value) -> list[int | str | None] | None:
    if value.shape is None:
        return None
    dims = [d if isinstance(d, int) else d.value for d in value.shape]
    return [None if d in NAMELESS else d for d in dims]


def _check_shape(
    name: str, array: Array, dims: list[int | str | None] | None, sizes: dict[str, tuple[str, int]]
) -> None:
    """By what is declared; dimensions of one name are of one size, also in other inputs, which `sizes` remembers."""
    if not array.size:
        raise InvalidDataError(f"{name!r} is of shape {list(array.shape)}: it is empty")
    if dims is None:
        return
    shown = [d if d is not None else "any" for d in dims]
    if len(dims) != array.ndim or any(isinstance(d, int) and d != n for d, n in zip(dims, array.shape, strict=True)):
        raise InvalidDataError(f"{name!r} is of shape {list(array.shape)}, but a step takes {shown}")
    for dim, size in zip(dims, array.shape, strict=True):
        if isinstance(dim, str):
            first, known = sizes.setdefault(dim, (name, size))
            if known != size:
                raise InvalidDataError(f"{dim!r} is {known} in {first!r}, but {size} in {name!r}")


_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
