"""Inputs of the battery: what a spec says, and arrays for it, made from a seed.

A spec is a dtype, a shape and sometimes a word about the values: 'f32[3,4]', 'bf16[b,t*2]', 'i32[5] 0..9',
'f32[4] plain'. Names in the shape are symbolic. `a..b` are the least and the greatest value; `plain` floats are never
NaN or infinite.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax import export

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "bool": np.bool_,
}
VARIANTS = ("ordinary", "edges", "ties")
"""Numbers as they are drawn; special values among them; whole and half numbers, of which many are equal."""

SIZES = {"ordinary": (3, 5, 4), "edges": (1, 2, 7), "ties": (3, 5, 4)}
"""The sizes that symbolic dimensions have, in the order in which they first appear."""

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, 30.0, -30.0, 1000.0)
TIES = (-2.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0)
SPEC = re.compile(r"(\w+)\[(.*)\](?: (.+))?")


def parsed(spec: str) -> tuple[Any, str, str]:
    """The dtype, the shape and the word of a spec."""
    found = SPEC.fullmatch(spec)
    if found is None:
        raise ValueError(f"{spec!r} is not a spec such as 'f32[b,4]'")
    return np.dtype(DTYPES[found[1]]), found[2], found[3] or ""


def names_of(specs: Any) -> list[str]:
    """The symbolic dimensions of all specs, in the order in which they first appear."""
    shapes = " ".join(parsed(spec)[1] for spec in jax.tree.leaves(specs))
    words = re.findall(r"[a-z_]\w*", shapes)
    return [name for name in dict.fromkeys(words) if name not in ("mod", "floordiv", "max", "min")]


def structs(specs: Any) -> Any:
    """The specs as JAX says them; names that are the same are the same dimension."""
    scope = export.SymbolicScope()

    def struct(spec: str) -> jax.ShapeDtypeStruct:
        dtype, shape, _ = parsed(spec)
        return jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype)

    return jax.tree.map(struct, specs)


def inputs(specs: Any, variant: str, seed: str) -> Any:
    """Arrays for specs; the same each time for the same seed."""
    sizes = dict(zip(names_of(specs), SIZES[variant], strict=False))
    generator = np.random.default_rng(zlib.crc32(f"{seed} {variant}".encode()))
    return jax.tree.map(lambda spec: array(spec, sizes, variant, generator), specs)


def array(spec: str, sizes: dict[str, int], variant: str, generator: np.random.Generator) -> Array:
    dtype, dims, word = parsed(spec)
    shape = tuple(int(eval(dim, {}, sizes)) for dim in dims.split(",") if dim.strip())
    if dtype == np.bool_:
        made: Any = generator.integers(0, 2, shape)
    elif dtype.kind == "c":
        made = generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    elif dtype.kind in "iu":
        made = whole_numbers(dtype, shape, word, variant, generator)
    else:
        made = real_numbers(shape, word, variant, generator)
    return np.asarray(made).astype(dtype)


def whole_numbers(dtype: Any, shape: tuple[int, ...], word: str, variant: str, generator: np.random.Generator) -> Array:
    """With a range, the edges are its ends; otherwise they are those of the dtype."""
    bounds = np.iinfo(dtype)
    least, greatest = bounded(word) or (max(-9, bounds.min), min(20, bounds.max))
    made = generator.integers(int(least), int(greatest), shape, endpoint=True)
    if variant == "edges":
        ends = [least, greatest] if word else [bounds.min, bounds.max, bounds.max - 1, 0, 1]
        return among(made.astype(dtype), np.array([int(end) for end in ends], dtype), generator)
    return made if variant == "ordinary" else np.clip(made, least, least + 2)


def real_numbers(shape: tuple[int, ...], word: str, variant: str, generator: np.random.Generator) -> Array:
    if span := bounded(word):
        least, greatest = span
        made = generator.uniform(least, greatest, shape)
        if variant == "edges":
            return among(made, np.array([least, greatest, (least + greatest) / 2]), generator)
        return made if variant == "ordinary" else np.clip(np.round(made * 2) / 2, least, greatest)
    made = generator.standard_normal(shape) * (1.5 if word != "plain" or variant == "ordinary" else 4.0)
    if variant == "edges" and word != "plain":
        return among(made, np.array(SPECIAL), generator)
    return made if variant != "ties" else generator.choice(TIES, shape)


def bounded(word: str) -> tuple[float, float] | None:
    """The least and the greatest value that a word says."""
    if ".." not in word:
        return None
    least, greatest = map(float, word.split(".."))
    return least, greatest


def among(made: Any, special: Array, generator: np.random.Generator) -> Array:
    """Special values in up to two thirds of the places; all of them where there is room."""
    flat = np.array(made, special.dtype).reshape(-1)
    places = generator.permutation(flat.size)[: max(1, flat.size * 2 // 3)]
    flat[places] = np.resize(special, len(places))
    return flat.reshape(np.shape(made))
