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
import onnx_ir as ir

from onward.canon.build import Tensor
from onward.frontends.tensorflow.composite import COMPOSITES
from onward.frontends.tensorflow.values import Value, Variable
from onward.frontends.tensorflow.writer import Writer

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2), "SimpleRNN": (0,)}
"""Where each gate of ONNX's order stands in Keras' order."""

ACTIVATIONS: dict[str, tuple[str, float | None, float | None]] = {
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
    """Which weight each captured variable is."""

    def __call__(self, op: Writer, *inputs: Value) -> Sequence[Value]:
        tensors = [value for value in inputs if isinstance(value, Tensor)]
        variables = [value for value in inputs if isinstance(value, Variable)]
        weights = {role: op.translator.weight(variable) for role, variable in zip(self.roles, variables, strict=True)}
        sequence, rest = tensors[0], tensors[1:]
        mask = rest.pop(0) if self.masked else None
        return _Written(op, self, weights).results(sequence, mask, rest)


@dataclass
class _Written:
    op: Writer
    layer: Recurrent
    weights: dict[str, Tensor]

    def results(self, sequence: Tensor, mask: Tensor | None, states: list[Tensor]) -> list[Tensor]:
        op, layer = self.op, self.layer
        x = op.transpose(sequence.ranked(3), [1, 0, 2])
        if layer.backwards:
            x = _reversed(op, x)
            mask = None if mask is None else _reversed(op, mask, axis=1)
        lengths = count = None
        if mask is not None:
            kept = mask.cast(ir.DataType.INT64)
            count = op.CumSum(kept, op.index(1))
            lengths = op.reduced("ReduceSum", kept, [1], keepdims=False).cast(ir.DataType.INT32)
            x = op.transpose(_gathered(op, op.transpose(x, [1, 0, 2]), _first(op, mask)), [1, 0, 2])
        y, *last = self._node(x, lengths, states)
        last = [op.squeeze(state, [0]) for state in last]
        results = [last[0]]
        if layer.returns_sequences:
            whole = op.transpose(op.squeeze(y, [1]), [1, 0, 2])
            results = [whole if count is None or mask is None else self._spread(whole, count, mask)]
        return results + (last if layer.returns_state else [])

    def _spread(self, whole: Tensor, count: Tensor, mask: Tensor) -> Tensor:
        """A step that is left out repeats the one before, or is zero."""
        op = self.op
        found = _gathered(op, whole, op.Max(count - op.index(1), op.index(0)))
        there = mask if self.layer.zero_output_for_mask else count > 0
        return op.where(op.unsqueeze(there, [2]), found, 0)

    def _node(self, x: Tensor, lengths: Tensor | None, states: list[Tensor]) -> list[Tensor]:
        op, layer = self.op, self.layer
        kernel, recurrent = (self._gates(self.weights[name]) for name in ("kernel", "recurrent_kernel"))
        bias = self._bias()
        initial = [op.unsqueeze(state, [0]) for state in states]
        names, alphas, betas = zip(*(ACTIVATIONS[name] for name in layer.activations), strict=True)
        options: dict[str, Any] = {"hidden_size": layer.units, "activations": list(names)}
        if any(a is not None for a in alphas):
            options["activation_alpha"] = [a or 0.0 for a in alphas]
            options["activation_beta"] = [b or 0.0 for b in betas]
        if layer.kind == "GRU" and layer.reset_after:
            options["linear_before_reset"] = 1
        op_type = {"SimpleRNN": "RNN"}.get(layer.kind, layer.kind)
        outputs = 3 if layer.kind == "LSTM" else 2
        return op.many(op_type, outputs, x, kernel, recurrent, bias, lengths, *initial, **options)

    def _gates(self, weight: Tensor) -> Tensor:
        """From columns of gates in Keras' order to rows in ONNX's."""
        order = GATES[self.layer.kind]
        known = self.op.known(weight)
        if known is None:
            return self.op.unsqueeze(self.op.transpose(self._ordered(weight), [1, 0]), [0])
        parts = np.split(known, len(order), axis=1)
        return self.op.stored(weight, np.concatenate([parts[i] for i in order], axis=1).T[None])

    def _bias(self) -> Tensor | None:
        weight = self.weights.get("bias")
        if weight is None:
            return None
        order = GATES[self.layer.kind]
        known = self.op.known(weight)
        if known is None:
            placed = self.op.Reshape(self._ordered(weight), self.op.ints([1, -1]))
            return placed if weight.rank == 2 else self.op.Concat(placed, self.op.zeros_like(placed), axis=1)
        rows = known.reshape(-1, known.shape[-1])
        both = [np.concatenate([np.split(row, len(order))[i] for i in order]) for row in rows]
        if len(both) == 1:
            both.append(np.zeros_like(both[0]))
        return self.op.stored(weight, np.concatenate(both)[None])

    def _ordered(self, weight: Tensor) -> Tensor:
        """A weight that is trained, with the gates along its last axis in ONNX's order."""
        op, order = self.op, GATES[self.layer.kind]
        if list(order) == sorted(order):
            return weight
        sizes = op.ints([self.layer.units] * len(order))
        parts = op.many("Split", len(order), weight, sizes, axis=-1)
        return op.Concat(*(parts[i] for i in order), axis=-1)


def _reversed(op: Writer, x: Tensor, axis: int = 0) -> Tensor:
    back = op.ints([-1])
    return op.Slice(x, back, op.ints([-(2**31)]), op.ints([axis]), back)


def _first(op: Writer, mask: Tensor) -> Tensor:
    """For each row the places that count, in their order, and then the others."""
    steps = op.Gather(op.Shape(mask), op.index(1))
    places = op.unsqueeze(op.Range(op.index(0), steps, op.index(1)), [0])
    key = op.where(mask, places, places + steps)
    return op.many("TopK", 2, key, op.flat(steps), axis=1, largest=0, sorted=1)[1]


def _gathered(op: Writer, rows: Tensor, places: Tensor) -> Tensor:
    """Of [batch, time, features], for each row the steps at some places."""
    return op.GatherND(rows, op.unsqueeze(places, [2]), batch_dims=1)


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
        if set(roles) == set(handles.values()) and len(roles) == len(handles):
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
