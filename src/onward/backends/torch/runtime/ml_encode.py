"""Tables from keys to values, and maps as Python dictionaries."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from onward.backends.shared.runtime.ml_encode import texts_of, values_of


def look_up(x: Tensor, keys: Tensor, values: Tensor, default: float) -> Tensor:
    """The value of each key, or `default`; `keys` are sorted, and NaN, if it is one of them, is the last."""
    ordered = keys.nan_to_num(torch.inf, torch.inf, -torch.inf)  # among numbers that can be compared
    place = torch.searchsorted(ordered, x).clamp(max=keys.shape[0] - 1)
    key = keys[place]
    return torch.where((key == x) | ((key != key) & (x != x)), values[place], default)


def look_up_strings(x: np.ndarray, keys: np.ndarray, values: Any, default: Any) -> Any:
    """The value of each key, or `default`: a tensor, or an array of strings, as `values` are."""
    found = values_of(x, keys, values, default)
    if isinstance(values, Tensor):
        return torch.tensor(found, dtype=values.dtype, device=values.device).reshape(x.shape)
    return np.array(found, dtype=object).reshape(x.shape)


def one_hot_of(x: Any, categories: Any, keep: Tensor, strict: bool = False) -> Tensor:
    """A 1 where an element is the category of that place along a new last axis; `keep` tells which places count."""
    equal: Tensor
    if isinstance(x, Tensor):
        equal = x.long()[..., None] == categories
    else:
        equal = torch.from_numpy(np.equal(x[..., None], categories).astype(bool)).to(keep.device)
    found = keep & equal
    if strict and not found.any(-1).all():
        raise ValueError("a value is none of the categories")
    return found.float()


def vectorize_map(x: dict[Any, Any], vocabulary: Any, dtype: Any, device: Any = None) -> Any:
    """The values of a map in the order of a vocabulary, 0 or an empty string where there is none: one row."""
    if dtype is None:
        return np.array([[x.get(key, "") for key in vocabulary.tolist()]], dtype=object)
    return torch.tensor([[x.get(key, 0) for key in vocabulary.tolist()]], dtype=dtype, device=device)


def cast_map(x: dict[int, Any], dtype: Any, size: int | None = None, device: Any = None) -> Any:
    """The values of a map in the order of their keys, or at the places of their keys in a row of `size`."""
    if dtype is None:
        return texts_of(x, size)
    keys = sorted(x) if size is None else range(size)
    kind = float if dtype.is_floating_point else int
    return torch.tensor([[kind(x.get(key, 0)) for key in keys]], dtype=dtype, device=device)


def zip_map(x: Tensor, names: Any) -> list[dict[Any, float]]:
    """Each row of `x` as a map from names to numbers."""
    keys = names.tolist()
    rows = x if x.ndim > 1 else x[None]
    return [dict(zip(keys, row, strict=True)) for row in rows.tolist()]
