"""Optimizers by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onward.training.recipe.by_name import by_name
from onward.training.recipe.by_shape import Adafactor, Muon
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

OPTIMIZERS: Mapping[str, type[Any]] = {
    kind.name: kind for kind in (SGD, Adagrad, RMSprop, Adam, AdamW, LAMB, Adafactor, Muon)
}
ALSO = ("momentum", "nesterov")


def optimizer_named(name: str, **options: Any) -> Optimizer:
    """An optimizer by its name (`momentum` and `nesterov` are SGD with 0.9 of it), with options by name."""
    if name in ALSO:
        options = {"momentum": 0.9, "nesterov": name == "nesterov", **options}
        name = "sgd"
    made: Optimizer = by_name("optimizer", OPTIMIZERS, name, options, ALSO)
    return made
