"""Whether given inputs are what a model declares, said in words that name the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import RunFailure


def conform(model: ir.Model, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in the model's order, tensors as arrays; raises `RunFailure` for a wrong name, dtype or shape."""
    declared = {value.name or "": value for value in model.graph.inputs}
    if unknown := [name for name in inputs if name not in declared]:
        raise RunFailure(f"there is no input {unknown[0]!r}; the model has {_list(declared)}")
    missing = [name for name, value in declared.items() if name not in inputs and not _may_be_left_out(value)]
    if missing:
        raise RunFailure(f"nothing is given for the input {_list(missing)}")
    return {name: _conform(value, inputs[name]) for name, value in declared.items() if name in inputs}


def _list(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def _may_be_left_out(value: ir.Value) -> bool:
    return value.is_initializer() or isinstance(value.type, ir.OptionalType)


def _conform(value: ir.Value, given: Any) -> Any:
    if isinstance(value.type, ir.TensorType):
        if given is None:
            raise RunFailure(f"nothing is given for the input {value.name!r}")
        array = np.asarray(given)
        _check_dtype(value, array)
        _check_shape(value, array)
        return array
    if isinstance(value.type, ir.SequenceType):
        if not isinstance(given, list | tuple):
            raise RunFailure(f"the input {value.name!r} is a sequence, but got {type(given).__name__}")
        return [np.asarray(item) for item in given]
    return np.asarray(given) if isinstance(given, np.generic) else given


def _check_dtype(value: ir.Value, array: np.ndarray[Any, np.dtype[Any]]) -> None:
    wanted = value.dtype
    if wanted is None or wanted == ir.DataType.UNDEFINED:
        return
    same = array.dtype.kind in "OUST" if wanted == ir.DataType.STRING else array.dtype == wanted.numpy()
    if not same:
        raise RunFailure(f"the input {value.name!r} is {wanted.name.lower()}, but got {array.dtype}")


def _check_shape(value: ir.Value, array: np.ndarray[Any, np.dtype[Any]]) -> None:
    if value.shape is None:
        return
    wanted = [dim if isinstance(dim, int) else dim.value for dim in value.shape]
    pairs = zip(wanted, array.shape, strict=False)
    if len(wanted) != array.ndim or any(isinstance(dim, int) and dim != size for dim, size in pairs):
        dims = ", ".join("?" if dim is None else str(dim) for dim in wanted)
        raise RunFailure(f"the input {value.name!r} has the shape [{dims}], but got {list(array.shape)}")
