"""An exported training whose graphs are called, in any framework."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from onward.training.verification.package import Array, Batches, Package


class WholeStep(Package):
    """What it holds has the names and forms of the ONNX file."""

    def loaded(self) -> dict[str, Any]:
        return {"state": self.train.load_state()}

    def batch(self, arrays: Mapping[str, Array]) -> Any:
        read = getattr(getattr(self.train, "torch", None), "from_numpy", None)
        if read is not None:
            return {name: read(arrays[name]).to(dtype) for name, dtype in self.train.INPUTS.items()}
        return {name: arrays[name].astype(dtype) for name, dtype in self.train.INPUTS.items()}

    def step(self, batches: Batches) -> list[float]:
        losses = self.called(self.train.train, batches=[self.batch(one) for one in batches], start=self.made)
        self.made += 1
        return [float(loss) for loss in losses]

    def passed(self, batch: Mapping[str, Array]) -> tuple[list[Array], float, dict[str, Array]]:
        """Of outputs there are none: they are inside the graph of the loss."""
        more = {}
        if "key" in inspect.signature(self.train.passed).parameters:
            more["key"] = self.train.jax.random.key(0)
        found = self.train.passed(self.held["state"], self.batch(batch), **more)
        slopes = {
            name.removesuffix(".grad"): np.asarray(g).copy() for name, g in found.items() if name.endswith(".grad")
        }
        return [], float(found["onward.loss"]), slopes

    def state(self) -> dict[str, Array]:
        return {name: np.asarray(tensor).copy() for name, tensor in self.held["state"].items()}


PACKAGE = WholeStep
