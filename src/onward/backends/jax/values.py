"""Values between numpy and generated JAX code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.jax.target import DTYPES
from onward.graph.narrow import carried


def in_64_bits() -> AbstractContextManager[Any]:
    """Within, JAX keeps integers and floats of 64 bits, which it otherwise cuts to 32."""
    import jax

    found: AbstractContextManager[Any] = jax.enable_x64(True)
    return found


def to_framework(value: Any, dtype: ir.DataType | None = None) -> Any:
    """Numpy arrays as JAX's; strings stay arrays of numpy; sequences and optionals element by element."""
    import jax.numpy as jnp

    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [to_framework(item, dtype) for item in value]
    if isinstance(value, dict):
        return {key: v if isinstance(v, str | int | float) else to_framework(v) for key, v in value.items()}
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return array.astype(object)
    kind = DTYPES.get(dtype) if dtype is not None else None
    with in_64_bits():
        return jnp.asarray(array, None if kind is None else jnp.dtype(kind))


def to_numpy(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """The inverse of `to_framework`, in the dtype of the file where generated code holds it in a wider one."""
    import jax

    if isinstance(value, list | tuple):
        return [to_numpy(item, dtype) for item in value]
    if isinstance(value, dict):
        return {key: to_numpy(item) for key, item in value.items()}
    return carried(np.asarray(value), dtype) if isinstance(value, jax.Array) else value
