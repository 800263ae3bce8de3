"""Which input of one model is which of another, and in what form it is fed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import RunFailure

Array = np.ndarray[Any, np.dtype[Any]]
MOST = 6
"""Inputs of which every order is tried."""


@dataclass(frozen=True)
class Steps:
    """How integers stand for numbers: (integer - zero) * size."""

    size: float
    zero: int

    def integers(self, numbers: Array, dtype: np.dtype[Any]) -> Array:
        limits = np.iinfo(dtype)
        return np.clip(np.round(numbers / np.float32(self.size)) + self.zero, limits.min, limits.max).astype(dtype)

    def numbers(self, integers: Array) -> Array:
        return ((integers.astype(np.int32) - self.zero) * np.float32(self.size)).astype(np.float32)


@dataclass(frozen=True)
class Declared:
    """An input as a model declares it; None where it does not say."""

    name: str
    dtype: ir.DataType | None = None
    dims: tuple[int | str | None, ...] | None = None
    steps: Steps | None = None
    """Where it takes integers that stand for numbers."""

    def __str__(self) -> str:
        dims = "" if self.dims is None else f"[{', '.join('?' if dim is None else str(dim) for dim in self.dims)}]"
        return f"{self.name!r} ({'' if self.dtype is None else self.dtype.name.lower()}{dims})"


class Pairing:
    """Given inputs under a model's own names. Raises `RunFailure` where they do not fit."""

    def __init__(self, declared: Sequence[Declared], given: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
        self.in_steps = False
        """Whether floats were given for integers that stand for them."""
        self.inputs: dict[str, Any] = {}
        for own, name in pair(declared, given).items():
            fed = fit(own, given[name])
            assert fed is not None
            value, how = fed
            self.inputs[own.name] = value
            self.in_steps |= own.steps is not None and np.asarray(given[name]).dtype.kind == "f"
            if how:
                self.notes.append(f"the input {own.name!r} is fed {how}")


def pair(declared: Sequence[Declared], given: Mapping[str, Any]) -> dict[Declared, str]:
    """The given input of each declared one: by name, then by place, then by what fits in one way only."""
    found: dict[Declared, str] = {}
    for spell in (str, _plain):
        rest = {spell(own.name): own for own in declared if own not in found}
        left = {spell(name): name for name in given if name not in found.values()}
        found |= {own: left[name] for name, own in rest.items() if name in left}
    unmatched = [own for own in declared if own not in found]
    spare = [name for name in given if name not in found.values()]
    if unmatched:
        if len(unmatched) != len(spare):
            names = ", ".join(map(repr, given)) or "nothing"
            raise RunFailure(f"it takes {', '.join(map(str, declared))}, but got {names}")
        found |= zip(unmatched, _order(unmatched, spare, given), strict=True)
    found = {own: found[own] for own in declared}
    for own, name in found.items():
        if fit(own, given[name]) is None:
            array = np.asarray(given[name])
            raise RunFailure(f"it takes {own}, but got {name!r} ({array.dtype}{list(array.shape)})")
    return found


def _order(rest: Sequence[Declared], left: list[str], given: Mapping[str, Any]) -> Sequence[str]:
    def fits(names: Sequence[str]) -> bool:
        return all(fit(own, given[name]) is not None for own, name in zip(rest, names, strict=True))

    if fits(left) or len(left) > MOST:
        return left
    orders = list(itertools.islice(filter(fits, itertools.permutations(left)), 2))
    return orders[0] if len(orders) == 1 else left


def _plain(name: str) -> str:
    """What is left of a name in most frameworks: `serving_default_input.1:0` is `input_1`."""
    return re.sub(r"\W", "_", re.sub(r":\d+$", "", name).removeprefix("serving_default_")).strip("_").lower()


def fit(own: Declared, value: Any) -> tuple[Any, str] | None:
    """The value in the form that the input takes, and what was done to it; None if it does not fit."""
    if not isinstance(value, np.ndarray | np.generic):
        return value, ""
    cast = _cast(own.dtype, np.asarray(value), own.steps)
    if cast is None:
        return None
    array, how = cast
    if _fits(own.dims, array.shape):
        return array, how
    if array.ndim in (3, 4, 5) and _fits(own.dims, (array.shape[0], *array.shape[2:], array.shape[1])):
        return np.ascontiguousarray(np.moveaxis(array, 1, -1)), " and ".join(filter(None, [how, "channels-last"]))
    return None


def _fits(dims: Sequence[int | str | None] | None, shape: Sequence[int]) -> bool:
    return dims is None or (
        len(dims) == len(shape)
        and all(dim == size for dim, size in zip(dims, shape, strict=True) if isinstance(dim, int))
    )


def _cast(dtype: ir.DataType | None, array: Array, steps: Steps | None) -> tuple[Array, str] | None:
    """The array in another dtype of integers if that holds its values, as frameworks change these; floats in steps."""
    if dtype is None:
        return array, ""
    if dtype == ir.DataType.STRING or array.dtype.kind in "OUST":
        return (array, "") if dtype == ir.DataType.STRING and array.dtype.kind in "OUST" else None
    wanted: np.dtype[Any] = dtype.numpy()
    if array.dtype == wanted:
        return array, ""
    if steps is not None and array.dtype.kind == "f":
        return steps.integers(array, wanted), f"as {wanted}, in steps of {steps.size:.3g}"
    if array.dtype.kind in "iu" and wanted.kind in "iu":
        changed = array.astype(wanted)
        if np.array_equal(changed, array):
            return changed, f"as {wanted}"
    return None
