"""Training information that others wrote: a `Gradient`, and an optimizer of the standard or a few plain ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.model import Model
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]


def from_others(model: Model, index: int) -> tuple[Trainable, dict[str, str]]:
    raise UnsupportedError("not read yet")
