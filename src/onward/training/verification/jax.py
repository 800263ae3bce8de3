"""An exported training in JAX."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from onward.training.verification.package import Array, Batches, Package


class JaxPackage(Package):
    def loaded(self) -> dict[str, Any]:
        train = self.train
        held: dict[str, Any] = {}
        if hasattr(train, "load_adapted"):
            held["params"], held["originals"] = train.load_adapted()
        else:
            held["params"] = train.load()
        held["state"] = train.load_optimizer(held["params"], self.made)
        if hasattr(train, "load_key"):
            held["key"] = train.load_key()
        if hasattr(train, "load_constants"):
            held["constants"] = train.load_constants()
        if hasattr(train, "load_average"):
            held["average"] = train.load_average(held["params"])
        return held

    def batch(self, arrays: Mapping[str, Array]) -> Any:
        return {name: arrays[name].astype(dtype) for name, dtype in self.train.INPUTS.items()}

    def step(self, batches: Batches) -> list[float]:
        *kept, losses = self.called(self.train.train, batches=[self.batch(one) for one in batches])
        asked = [name for name in inspect.signature(self.train.train).parameters if name in self.held]
        self.held |= dict(zip([name for name in asked if name != "originals"], kept, strict=True))
        self.made += 1
        return [float(loss) for loss in losses]

    def passed(self, batch: Mapping[str, Array]) -> tuple[list[Array], float, dict[str, Array]]:
        import jax

        train, apply = self.train, self.train.apply
        found: list[Any] = []

        def watched(*args: Any) -> Any:
            found.append(apply(*args))
            return found[-1]

        def loss_of(*args: Any) -> tuple[Any, list[Any]]:
            train.apply = watched
            try:
                result = train.loss_of(*args)
            finally:
                train.apply = apply
            outputs = found[-1] if isinstance(found[-1], tuple | list) else [found[-1]]
            return result[0] if isinstance(result, tuple) else result, list(outputs)

        asked = {**self.held, "batch": self.batch(batch)}
        arguments = [asked[name] for name in inspect.signature(train.loss_of).parameters]
        (loss, outputs), slopes = jax.jit(jax.value_and_grad(loss_of, has_aux=True))(*arguments)
        gradients = {name: np.array(slope) for name, slope in train.flat(slopes).items()}
        return [np.array(output) for output in outputs], float(loss), gradients

    def state(self) -> dict[str, Array]:
        import optax

        flat, slots = self.train.flat, getattr(self.train, "SLOTS", {})
        found = dict(flat(self.held["params"]))
        constants = flat(self.held["constants"]) if "constants" in self.held else {}
        found |= {name: array for name, array in constants.items() if name in self.statistics}
        for slot, place in slots.items():
            own = flat(optax.tree_utils.tree_get(self.held["state"], place))
            found |= {f"{name}.{slot}": array for name, array in own.items()}
        if "average" in self.held:
            found |= {f"{name}.average": array for name, array in flat(self.held["average"]).items()}
        return {name: np.array(array) for name, array in found.items()}


PACKAGE = JaxPackage
