"""An exported training in Keras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onward.runners.undisturbed import variables_kept
from onward.training.verification.package import Array, Batches, Package
from onward.training.verification.tensorflow import array_of, arrays_of


class KerasPackage(Package):
    def loaded(self) -> dict[str, Any]:
        net = self.train.load()
        self.train.prepare(net, self.made)
        return {"net": net}

    def batch(self, arrays: Mapping[str, Array]) -> Any:
        return {name: arrays[name].astype(dtype) for name, dtype in self.train.INPUTS.items()}

    def step(self, batches: Batches) -> list[float]:
        losses = self.called(self.train.train, batches=[self.batch(one) for one in batches])
        self.made += 1
        return [float(loss) for loss in losses]

    def passed(self, batch: Mapping[str, Array]) -> tuple[list[Array], float, dict[str, Array]]:
        """As the step of `fit` computes it."""
        import tensorflow as tf

        net = self.held["net"]
        x, y = self.train.Batches([self.batch(batch)])[0]
        with variables_kept(net.variables), tf.GradientTape() as tape:
            result = net(x, training=True)
            loss = net.compute_loss(x=x, y=y, y_pred=result, training=True)
        variables = [variable.value for variable in net.trainable_variables]
        slopes = tape.gradient(loss, variables, unconnected_gradients="zero")
        gradients = dict(zip(self.train.trained_in(net), map(array_of, slopes), strict=True))
        return arrays_of(result), float(loss), gradients

    def state(self) -> dict[str, Array]:
        import keras

        net = self.held["net"]
        variables = self.train.variables_of(net)
        wanted = {*self.statistics, *self.train.TRAINED}
        found = {name: array_of(variable) for name, variable in variables.items() if name in wanted}
        if not hasattr(self.train, "states_of"):
            return found
        states = {name: array_of(held) for name, held in self.train.states_of(net, net.optimizer).items()}
        if type(net.optimizer) is keras.optimizers.SGD:  # whose momentum is a move, with the learning rate in it
            rate = float(net.optimizer.learning_rate)
            states = {name: array / -rate for name, array in states.items()}
        return found | states


PACKAGE = KerasPackage
