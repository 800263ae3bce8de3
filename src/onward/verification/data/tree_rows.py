"""Rows for models of trees: enough to reach many leaves, some values missing."""

from __future__ import annotations

import numpy as np

from onward.model import Model
from onward.runners.calls import Inputs
from onward.verification.data.sets import make_inputs

ROWS, MISSING = 256, 0.1
"""How many rows models are compared on, and the share of values that are missing in them."""


def tree_rows(model: Model, seed: int) -> Inputs:
    """Near the thresholds of the model."""
    made = make_inputs(model, seed, {"batch": ROWS})
    x = np.array(made["x"])
    x[np.random.default_rng(seed).random(x.shape) < MISSING] = np.nan
    return {"x": x}
