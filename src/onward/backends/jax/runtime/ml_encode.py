"""Tables from keys to values, and maps as Python dictionaries."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from onward.backends.jax.runtime.host import known
from onward.backends.shared.runtime.ml_encode import texts_of, values_of


def look_up(x: Array, keys: Array, values: Array, default: float) -> Array:
    """The value of each key, or `default`; `keys` are sorted, and NaN, if it is one of them, is the last."""
    place = jnp.minimum(jnp.searchsorted(keys, x), keys.shape[0] - 1)
    key = keys[place]
    return jnp.where((key == x) | ((key != key) & (x != x)), values[place], default)


def look_up_strings(x: np.ndarray, keys: np.ndarray, values: Any, default: Any) -> Any:
    """The value of each key, or `default`: a tensor, or an array of strings, as `values` are."""
    if not isinstance(values, Array):
        return np.array(values_of(x, keys, values, default), dtype=object).reshape(x.shape)
    place = np.array(values_of(x, keys, np.arange(keys.size), -1), dtype=int).reshape(x.shape)
    return jnp.where(place < 0, default, values[place])


def one_hot_of(x: Any, categories: Any, keep: Array, strict: bool = False) -> Array:
    """A 1 where an element is the category of that place along a new last axis; `keep` tells which places count."""
    if isinstance(x, Array):
        equal = x.astype(int)[..., None] == categories
    else:
        equal = jnp.asarray(np.equal(x[..., None], categories).astype(bool))
    found = keep & equal
    if strict and not known(found.any(-1).all(), "OneHotEncoder").item():
        raise ValueError("a value is none of the categories")
    return found.astype(jnp.float32)


def vectorize_map(x: dict[Any, Any], vocabulary: list[Any], dtype: Any) -> Any:
    """The values of a map in the order of a vocabulary, 0 or an empty string where there is none: one row."""
    if dtype is None:
        return np.array([[x.get(key, "") for key in vocabulary]], dtype=object)
    return jnp.array([[x.get(key, 0) for key in vocabulary]], dtype)


def cast_map(x: dict[int, Any], dtype: Any, size: int | None = None) -> Any:
    """The values of a map in the order of their keys, or at the places of their keys in a row of `size`."""
    if dtype is None:
        return texts_of(x, size)
    found = [x.get(key, 0) for key in (sorted(x) if size is None else range(size))]
    return jnp.array([[float(value) if isinstance(value, str) else value for value in found]]).astype(dtype)


def zip_map(x: Array, names: list[Any]) -> list[dict[Any, Array]]:
    """Each row of `x` as a map from names to numbers."""
    return [dict(zip(names, row, strict=True)) for row in (x if x.ndim > 1 else x[None])]
