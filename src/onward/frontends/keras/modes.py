"""Layers that behave differently in training, each one node of ONNX that has both modes.

While a model is traced for training, batch normalisation and dropout are traced as functions of their own, and what
they are stands beside the name of that function: where it is called, the translator writes ONNX's node as it is in
inference. To switch these nodes to training is for whoever differentiates the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.frontends.tensorflow.composite import COMPOSITES
from onward.frontends.tensorflow.values import Value, Variable
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@dataclass(frozen=True)
class _Normalised:
    """Batch normalisation, and which weight each captured variable is."""

    axis: int
    epsilon: float
    momentum: float
    roles: tuple[str, ...]

    def __call__(self, op: Writer, *inputs: Value) -> Sequence[Value]:
        (x,) = (value for value in inputs if isinstance(value, Tensor))
        variables = [value for value in inputs if isinstance(value, Variable)]
        weights = {role: op.translator.weight(v) for role, v in zip(self.roles, variables, strict=True)}
        rank = op.rank(x, "what is normalised")
        axis = op.axis(self.axis, rank)
        size = (weights["moving_mean"].sizes or [])[0]
        scale = weights.get("gamma", op.constant(np.ones(size, np.float32)))
        offset = weights.get("beta", op.constant(np.zeros(size, np.float32)))
        order = [0, axis, *(i for i in range(1, rank) if i != axis)]
        y = op.BatchNormalization(
            op.transpose(x, order),
            scale,
            offset,
            weights["moving_mean"],
            weights["moving_variance"],
            epsilon=self.epsilon,
            momentum=self.momentum,
        )
        return [op.transpose(y, [order.index(i) for i in range(rank)])]


@dataclass(frozen=True)
class _Dropped:
    """Dropout; where the shape of the noise is given, what is dropped together is together."""

    rate: float

    def __call__(self, op: Writer, x: Tensor, shape: Tensor | None = None) -> Sequence[Value]:
        ratio = op.constant(np.asarray(self.rate, np.float32))
        if shape is None:
            return [op.Dropout(x, ratio)]
        return [x * op.Dropout(op.Expand(op.like(1, x), op.int64(shape)), ratio)]


@contextmanager
def modes_kept() -> Iterator[dict[str, str]]:
    """While it lasts, batch normalisation that is trained and dropout are traced as functions of their own.

    Gives the names of running statistics that follow batches, each with the layer that it is of.
    """
    import keras
    import tensorflow as tf

    layer, experimental = keras.layers.BatchNormalization, tf.nn.experimental
    call, dropout = layer.call, experimental.stateless_dropout
    statistics: dict[str, str] = {}
    layer.call = _normalisation(call, statistics)
    experimental.stateless_dropout = _dropout(dropout)
    try:
        yield statistics
    finally:
        layer.call, experimental.stateless_dropout = call, dropout


def _normalisation(original: Any, statistics: dict[str, str]) -> Any:
    import keras

    def call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        exact = type(self) is keras.layers.BatchNormalization and not self.renorm and mask is None
        if not (training and self.trainable and exact and inputs.dtype == self.moving_mean.dtype == "float32"):
            return original(self, inputs, training=training, mask=mask)
        own = {"moving_mean": self.moving_mean, "moving_variance": self.moving_variance}
        own |= {"gamma": self.gamma} if self.scale else {}
        own |= {"beta": self.beta} if self.center else {}

        def inner(x: Any) -> Any:
            return original(self, x, training=False)

        handles = {id(variable.value.handle): role for role, variable in own.items()}
        function = _function(inner, inputs)
        roles = tuple(handles[id(captured)] for captured in function.captured_inputs)
        COMPOSITES[_name(function)] = _Normalised(self.axis, self.epsilon, self.momentum, roles)
        for role in ("moving_mean", "moving_variance"):
            statistics[own[role].value.name.split(":")[0]] = self.name
        return function(inputs)

    return call


def _dropout(original: Any) -> Any:
    import tensorflow as tf

    def stateless_dropout(x: Any, rate: Any, seed: Any, noise_shape: Any = None, **options: Any) -> Any:
        if not isinstance(rate, int | float):
            return original(x, rate, seed, noise_shape=noise_shape, **options)
        given = [x] if noise_shape is None else [x, tf.convert_to_tensor(noise_shape, tf.int32)]
        function = _function(lambda x, *_: tf.identity(x), *given)
        COMPOSITES[_name(function)] = _Dropped(float(rate))
        return function(*given)

    return stateless_dropout


def _function(inner: Any, *tensors: Any) -> Any:
    import tensorflow as tf

    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
    return tf.function(inner, autograph=False).get_concrete_function(*specs)


def _name(function: Any) -> str:
    return function.name if isinstance(function.name, str) else str(function.name.decode())
