"""Small functions of TensorFlow, each with what it is called with: what is converted must compute the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    static: bool = False
    """Whether the sizes are known when the function is traced."""


def numbers(*shape: int, low: float = -2, high: float = 2, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, low: int = -9, high: int = 10, dtype: Any = np.int32, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def cases(table: dict[str, tuple[Any, ...]], static: bool = False) -> list[Case]:
    """A row: the function, and the arguments."""
    return [Case(name, row[0], row[1:], static) for name, row in table.items()]
