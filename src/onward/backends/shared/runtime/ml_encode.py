"""Maps as Python dictionaries, and tables of strings."""

from typing import Any

import numpy as np


def values_of(x: np.ndarray, keys: np.ndarray, values: Any, default: Any) -> list[Any]:
    """The value of each key, or `default`."""
    table = dict(zip(keys.tolist(), values.tolist(), strict=True))
    return [table.get(key, default) for key in x.reshape(-1)]


def texts_of(x: dict[int, Any], size: int | None = None) -> np.ndarray:
    """The values of a map as text, in the order of their keys or at the places of their keys in a row of `size`."""
    texts = {key: value if isinstance(value, str) else f"{float(value):f}" for key, value in x.items()}
    keys = sorted(x) if size is None else range(size)
    return np.array([[texts.get(key, "0.f") for key in keys]], dtype=object)
