"""What an op of a module gives: arrays that JAX traces, and numbers that sizes are computed with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib.mlir import ir

from onward.backends.jax.stablehlo_file import ELEMENTS
from onward.errors import UnsupportedError

SMALL = 64
"""Constants of up to so many integers may be sizes."""
NAMES = {**ELEMENTS, "i4": "int4", "ui4": "uint4"}
"""What numpy calls the types of elements."""


PLAIN = {"bool", "float16", "float32", "float64"} | {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
"""Types whose numbers the bindings of MLIR give."""
NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Sizes:
    """Integers that may be symbolic dimensions, as an array of objects, and the dtype they have in the module."""

    numbers: np.ndarray[Any, Any]
    dtype: Any

    def array(self) -> Any:
        """The same as an array that JAX traces."""
        flat = [jnp.asarray(n, self.dtype) for n in self.numbers.reshape(-1)]
        if not flat:
            return jnp.zeros(self.numbers.shape, self.dtype)
        return jnp.stack(flat).reshape(self.numbers.shape)


Value = Any
"""A `jax.Array`, whatever JAX traces in its place, or `Sizes`."""


def dtype_of(kind: Any) -> Any:
    """The dtype of a tensor's type."""
    element = ir.RankedTensorType(kind).element_type
    name = NAMES.get(str(element))
    if name is None:
        raise UnsupportedError(f"tensors of {element} have no form in ONNX; cast to other numbers first")
    return jnp.dtype(name)


def shape_of(kind: Any) -> list[int | None]:
    """The dimensions of a tensor's type, None for open ones."""
    tensor = ir.RankedTensorType(kind)
    return [None if tensor.is_dynamic_dim(d) else tensor.get_dim_size(d) for d in range(tensor.rank)]


def constant(op: Any) -> np.ndarray[Any, Any]:
    """The numbers of a constant."""
    kind = op.results[0].type
    shape, dtype = [n or 0 for n in shape_of(kind)], dtype_of(kind)
    if dtype.name not in PLAIN:
        return _written(op.get_asm(), dtype, shape)
    if not isinstance(op.attributes["value"], ir.DenseElementsAttr):
        raise UnsupportedError("the numbers of a constant were left out of the module, or stand outside of it")
    dense = ir.DenseElementsAttr(op.attributes["value"])
    if not dense.is_splat:
        return np.array(dense).astype(dtype, copy=False).reshape(shape)
    value = dense.get_splat_value().value
    number = int(value) % (1 << (dtype.itemsize * 8)) if dtype.kind == "u" else value
    return np.broadcast_to(np.asarray(number, dtype), shape)


def _written(text: str, dtype: Any, shape: list[int]) -> np.ndarray[Any, Any]:
    """A constant whose numbers the bindings of MLIR do not give, read from its text."""
    body = text[text.index("dense<") + 6 : text.rindex("> :")]
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if body.startswith('"'):
        flat = np.frombuffer(bytes.fromhex(body.strip('"')[2:]), dtype)
    else:
        numbers = np.concatenate([np.zeros(0, part), *(_number(word, part) for word in NUMBER.findall(body))])
        flat = numbers.view(dtype)
    return np.broadcast_to(flat[0], shape) if flat.size == 1 else flat.reshape(shape)


def _number(word: str, dtype: Any) -> np.ndarray[Any, Any]:
    if word.startswith("0x"):  # the bits of what is no plain number, such as an infinity
        return np.frombuffer(int(word, 16).to_bytes(dtype.itemsize, "little"), dtype)
    return np.asarray([float(word)]).astype(dtype)


def numbers_of(value: Value) -> np.ndarray[Any, Any]:
    """Sizes, or constant integers, as numbers of Python."""
    return value.numbers if isinstance(value, Sizes) else value.astype(object)


def as_array(value: Value) -> Any:
    return value.array() if isinstance(value, Sizes) else value


def as_sizes(value: Value) -> list[Any]:
    """Numbers that decide a shape."""
    if isinstance(value, Sizes):
        return list(value.numbers.reshape(-1))
    if isinstance(value, np.ndarray):
        return [int(n) for n in value.reshape(-1)]
    if isinstance(value, jax.core.Tracer):
        raise UnsupportedError("a shape depends on data: ONNX and JAX know sizes from the shapes of inputs only")
    return [int(n) for n in np.asarray(value).reshape(-1)]
