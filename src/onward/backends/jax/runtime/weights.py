"""The weights of a generated model, as nested dictionaries and lists."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def nested(tensors: Mapping[str, Any]) -> Any:
    """A tree of tensors by name: `layer.0.weight` is `tree["layer"][0]["weight"]`.

    Where the names are 0, 1, 2, … there is a list. The tensors may be those of another file with the same names, such
    as the state dict of the model in PyTorch.
    """
    tree: dict[str, Any] = {}
    for path, tensor in tensors.items():
        *parts, last = path.split(".")
        place = tree
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = tensor
    return in_lists(tree)


def in_lists(tree: Any) -> Any:
    """A tree in which dictionaries of 0, 1, 2, … are lists."""
    return as_list({name: in_lists(part) for name, part in tree.items()}) if isinstance(tree, dict) else tree


def as_list(parts: dict[str, Any]) -> Any:
    """A list where the names are 0, 1, 2, …"""
    numbers = [str(i) for i in range(len(parts))]
    return [parts[number] for number in numbers] if parts and parts.keys() == set(numbers) else parts


def by_name(tree: Any) -> dict[str, Any]:
    """The parts of a tree, those of a list by their numbers."""
    return {str(i): part for i, part in enumerate(tree)} if isinstance(tree, list | tuple) else dict(tree)


def merged(params: Any, constants: Any) -> Any:
    """One tree of two that have their leaves in different places."""
    ours, others = by_name(params), by_name(constants)
    both = {name: merged(ours[name], others[name]) for name in ours if name in others}
    return as_list({**others, **ours, **both})


def warn_of_32_bits() -> None:
    """JAX cuts numbers of 64 bits to 32 without a word, unless it is told not to."""
    if not jax.config.jax_enable_x64:
        advice = 'call jax.config.update("jax_enable_x64", True) before any other line of JAX'
        warnings.warn(f"this model computes in 64 bits, which JAX cuts to 32: {advice}", stacklevel=3)


_STORED = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def read_tensors(path: str | Path, complex128: Collection[str] = ()) -> dict[str, jax.Array]:
    """The tensors of a safetensors file with numbers that the package safetensors has no dtype for.

    Those of `complex128` are stored as bytes, 16 for each number.
    """
    with Path(path).open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        content = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            dtype, shape = jnp.dtype(_STORED[entry["dtype"]]), entry["shape"]
            if name in complex128:
                dtype, shape = np.dtype(np.complex128), shape[:-1]
            tensors[name] = jnp.asarray(np.frombuffer(content[begin:end], dtype).reshape(shape))
    return tensors
