"""Functions that are known as a whole: what one is stands beside its name, and is written where it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.frontends.tensorflow.values import Value

COMPOSITES: dict[str, Callable[..., Sequence[Value]]] = {}
"""By the name of the function, which TensorFlow gives once in a program."""
