"""Compares what JAX and ONNX Runtime computed: exactly, but for floats, whose dtype says the tolerance."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

TOLERANCES = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 2e-5, np.dtype(np.float16): 4e-3}
TOLERANCES[np.dtype(ml_dtypes.bfloat16)] = 3.2e-2
"""How far a float may be off: this share of itself, and a fifth of that of the greatest, or of 1 if all are less."""


def difference(wanted: Array, found: Array) -> str | None:
    """What differs, or None."""
    if wanted.dtype != found.dtype:
        return f"dtype {found.dtype} instead of {wanted.dtype}"
    if wanted.shape != found.shape:
        return f"shape {list(found.shape)} instead of {list(wanted.shape)}"
    if wanted.dtype not in TOLERANCES:
        return described(wanted, found, wanted != found)
    share = TOLERANCES[wanted.dtype]
    with np.errstate(all="ignore"):
        one, other = wanted.astype(np.float64), found.astype(np.float64)
        finite = np.abs(one[np.isfinite(one)])
        near = share * np.abs(one) + share / 5 * max(1.0, finite.max(initial=0.0))
        is_same = np.where(
            np.isfinite(one), np.abs(one - other) <= near, (one == other) | np.isnan(one) & np.isnan(other)
        )
    return described(wanted, found, ~is_same)


def described(wanted: Array, found: Array, differs: Array) -> str | None:
    if not np.any(differs):
        return None
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return (
        f"{int(np.sum(differs))} of {differs.size} values, at {list(place)} {found[place]} instead of {wanted[place]}"
    )
