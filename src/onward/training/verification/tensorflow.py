"""An exported training in TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onward.runners.undisturbed import variables_kept
from onward.training.verification.package import Array, Batches, Package


class Watched:
    """A model whose results are noted."""

    def __init__(self, net: Any) -> None:
        self.net, self.found = net, []  # type: Any, list[Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.found.append(self.net(*args, **kwargs))
        return self.found[-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.net, name)


class TensorFlowPackage(Package):
    def loaded(self) -> dict[str, Any]:
        net = self.train.load()
        weights = self.train.trained_in(net)
        held = {"net": net, "weights": weights}
        return {**held, "state": self.called(self.train.load_state, **held, step=self.made)}

    def batch(self, arrays: Mapping[str, Array]) -> Any:
        return {name: arrays[name].astype(dtype) for name, dtype in self.train.INPUTS.items()}

    def step(self, batches: Batches) -> list[float]:
        losses = self.called(self.train.train, batches=[self.batch(one) for one in batches])
        self.made += 1
        return [float(loss) for loss in losses]

    def passed(self, batch: Mapping[str, Array]) -> tuple[list[Array], float, dict[str, Array]]:
        import tensorflow as tf

        net = Watched(self.held["net"])
        given = {name: tf.constant(array) for name, array in self.batch(batch).items()}  # as a traced step has them
        slopes = getattr(self.train.slopes, "python_function", self.train.slopes)
        with variables_kept(self.held["net"].variables):
            loss, gradients = self.called(slopes, net=net, batch=given)
        return arrays_of(net.found[0]), float(loss), {name: array_of(slope) for name, slope in gradients.items()}

    def state(self) -> dict[str, Array]:
        net, weights, state = (self.held[name] for name in ("net", "weights", "state"))
        found = {name: variable.numpy() for name, variable in self.train.variables_of(net).items()}
        kept = {name: array for name, array in found.items() if name in self.statistics}
        kept |= {name: array_of(weight) for name, weight in weights.items()}
        return kept | {name: array_of(held) for name, held in state.items() if name != "step"}


def array_of(tensor: Any) -> Array:
    import tensorflow as tf

    return np.array(tf.convert_to_tensor(tensor))


def arrays_of(result: Any) -> list[Array]:
    if isinstance(result, Mapping):
        result = list(result.values())
    return [array_of(one) for one in (result if isinstance(result, tuple | list) else [result])]


PACKAGE = TensorFlowPackage
