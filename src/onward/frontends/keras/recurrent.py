"""Recurrent layers of Keras, each one node of ONNX instead of a loop.

While a model is traced, a recurrent layer is traced as a function of its own, and what the layer is stands beside the
name of that function: where it is called, the translator writes ONNX's LSTM, GRU or RNN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.frontends.recurrence.layer import Activation, Layer, Series
from onward.frontends.tensorflow.composite import COMPOSITES
from onward.frontends.tensorflow.values import Value, Variable
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2), "SimpleRNN": (0,)}
"""Where each gate of ONNX's order stands in Keras' order."""

ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": ("Sigmoid", None, None),
    "tanh": ("Tanh", None, None),
    "relu": ("Relu", None, None),
    "hard_sigmoid": ("HardSigmoid", 1 / 6, 0.5),
    "linear": ("Affine", 1.0, 0.0),
    "softsign": ("Softsign", None, None),
    "softplus": ("Softplus", None, None),
    "elu": ("Elu", 1.0, None),
}


@dataclass(frozen=True)
class Recurrent:
    """What a recurrent layer is, and the order of what its function takes."""

    kind: str
    units: int
    activations: tuple[str, ...]
    returns_sequences: bool
    returns_state: bool
    backwards: bool
    zero_output_for_mask: bool
    reset_after: bool
    masked: bool
    states: int
    """How many initial states are given."""
    roles: tuple[str, ...]
    """Which weight each captured variable is; the seeds of dropout, which is not drawn, are none."""

    def __call__(self, op: Writer, *inputs: Value) -> Sequence[Value]:
        tensors = [value for value in inputs if isinstance(value, Tensor)]
        variables = [value for value in inputs if isinstance(value, Variable)]
        own = {role: variable for role, variable in zip(self.roles, variables, strict=True) if role}
        weights = {role: op.translator.weight(variable) for role, variable in own.items()}
        sequence, rest = tensors[0], tensors[1:]
        mask = rest.pop(0) if self.masked else None
        x = op.transpose(sequence.ranked(3), [1, 0, 2])
        if self.backwards:
            x = op.turned_round(x, [0])
            mask = None if mask is None else op.turned_round(mask, [1])
        series = Series(op, self._layer(op, weights), x, mask, rest)
        results = [series.last[0]]
        if self.returns_sequences:
            results = [op.transpose(series.steps(zero=self.zero_output_for_mask), [1, 0, 2])]
        return results + (series.last if self.returns_state else [])

    def _layer(self, op: Writer, weights: dict[str, Tensor]) -> Layer:
        return Layer(
            {"SimpleRNN": "RNN"}.get(self.kind, self.kind),
            self.units,
            tuple(ACTIVATIONS[name] for name in self.activations),
            self._gates(op, weights["kernel"]),
            self._gates(op, weights["recurrent_kernel"]),
            self._bias(op, weights["bias"]) if "bias" in weights else None,
            self.kind == "GRU" and self.reset_after,
        )

    def _gates(self, op: Writer, weight: Tensor) -> Tensor:
        """From columns of gates in Keras' order to rows in ONNX's."""
        order = GATES[self.kind]
        known = op.known(weight)
        if known is None:
            return op.unsqueeze(op.transpose(self._ordered(op, weight), [1, 0]), [0])
        parts = np.split(known, len(order), axis=1)
        return op.stored(weight, np.concatenate([parts[i] for i in order], axis=1).T[None])

    def _ordered(self, op: Writer, weight: Tensor) -> Tensor:
        """A weight that is trained, with the gates along its last axis in ONNX's order."""
        order = GATES[self.kind]
        if list(order) == sorted(order):
            return weight
        parts = op.many("Split", len(order), weight, op.ints([self.units] * len(order)), axis=-1)
        return op.Concat(*(parts[i] for i in order), axis=-1)

    def _bias(self, op: Writer, weight: Tensor) -> Tensor:
        order = GATES[self.kind]
        known = op.known(weight)
        if known is None:
            one = op.Reshape(self._ordered(op, weight), op.ints([1, -1]))
            return one if weight.rank == 2 else op.Concat(one, op.zeros_like(one), axis=1)
        rows = known.reshape(-1, known.shape[-1])
        placed = [np.concatenate([np.split(row, len(order))[i] for i in order]) for row in rows]
        if len(placed) == 1:
            return op.half_trained(op.stored(weight, np.concatenate([placed[0], np.zeros_like(placed[0])])[None]))
        return op.stored(weight, np.concatenate(placed)[None])


@contextmanager
def recurrent_layers_whole() -> Iterator[None]:
    """While it lasts, recurrent layers that ONNX has a node for are traced as functions of their own."""
    import keras

    kinds = {name: getattr(keras.layers, name) for name in GATES}
    originals = {name: kind.call for name, kind in kinds.items()}
    for name, kind in kinds.items():
        kind.call = _whole(name, originals[name])
    try:
        yield
    finally:
        for name, kind in kinds.items():
            kind.call = originals[name]


def _whole(name: str, original: Any) -> Any:
    import keras
    import tensorflow as tf

    def call(self: Any, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False) -> Any:
        activations = [keras.activations.serialize(self.activation)]
        if name != "SimpleRNN":
            activations.insert(0, keras.activations.serialize(self.recurrent_activation))
        if name == "LSTM":
            activations.append(activations[1])
        exact = type(self) is getattr(keras.layers, name) and not self.stateful and self.compute_dtype != "float64"
        drops = training and (self.dropout or self.recurrent_dropout)
        if drops or not exact or not all(isinstance(a, str) and a in ACTIVATIONS for a in activations):
            return original(self, sequences, initial_state=initial_state, mask=mask, training=training)
        states = keras.tree.flatten(initial_state) if initial_state is not None else []
        tensors = [sequences, *([] if mask is None else [mask]), *states]

        def inner(*given: Any) -> Any:
            rest = list(given[1:])
            own_mask = rest.pop(0) if mask is not None else None
            own_states = rest if states else None
            return original(self, given[0], initial_state=own_states, mask=own_mask, training=False)

        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
        concrete = tf.function(inner, autograph=False).get_concrete_function(*specs)
        cell = self.cell
        weights = {
            "kernel": cell.kernel,
            "recurrent_kernel": cell.recurrent_kernel,
            "bias": getattr(cell, "bias", None),
        }
        handles = {id(w._value.handle): role for role, w in weights.items() if w is not None}
        roles = tuple(handles.get(id(captured), "") for captured in concrete.captured_inputs)
        if not set(handles.values()) <= set(roles):
            return original(self, sequences, initial_state=initial_state, mask=mask, training=training)
        COMPOSITES[concrete.name if isinstance(concrete.name, str) else concrete.name.decode()] = Recurrent(
            name,
            self.units,
            tuple(activations),
            self.return_sequences,
            self.return_state,
            self.go_backwards,
            getattr(self, "zero_output_for_mask", False),
            getattr(self, "reset_after", False),
            mask is not None,
            len(states),
            roles,
        )
        return concrete(*tensors)

    return call
