"""Recurrent layers, as `fuse_rnn` finds them: batch first, from a state of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.weights import Array, Part
from onward.backends.keras.target import applied, layers, made, owning, owns, rule, typed
from onward.backends.tensorflow.target import tf
from onward.spec.rnn import Stacked

LAYER = {"RNN": "SimpleRNN", "GRU": "GRU", "LSTM": "LSTM"}
ACTIVATIONS = ("tanh", "relu", "sigmoid", "softsign", "softplus")


@rule(*(f"onward::{kind}" for kind in LAYER))
def stacked(e: Emitter, x: Expr, lengths: Expr | None, *inputs: Expr | None, p: Stacked) -> list[Expr | None] | None:
    kind, states, initial, tensors = p.kind, p.states, inputs[: p.states], inputs[p.states :]
    if not p.batch_first:
        batched = None if e.used(0) else _before_transpose(e, x)
        if batched is None:
            return None
        x = batched
    if lengths is not None or any(start is not None for start in initial) or p.nonlinearity not in ACTIVATIONS:
        return None
    if (e.shape(x) or (None,))[-1] is None or not owns(e, *tensors):
        return None
    if p.bias and getattr(e.target, "trains", False):
        return None  # Keras has one tensor for both biases
    with_states = e.used(1) or e.used(2)
    size, directions = 4 if p.bias else 2, 1 + p.bidirectional
    options: dict[str, Any] = {"return_sequences": True} | ({"return_state": True} if with_states else {})
    options |= {} if p.bias else {"use_bias": False}
    options |= {} if p.nonlinearity == "tanh" else {"activation": p.nonlinearity}
    y, finals = x, []
    for number in range(p.num_layers):
        own = [tensors[size * i : size * (i + 1)] for i in range(directions * number, directions * (number + 1))]
        parts = {k: v for d, given in enumerate(own) for k, v in _parts(e, kind, number, d, given).items()}
        layer: Expr = made(e, x, LAYER[kind], p.hidden_size, **options)
        if p.bidirectional:
            layer = layers.Bidirectional(layer, **typed(e, x))
        called = applied(e, owning(e, layer, kind.lower(), **parts), y)
        if with_states:
            y, *last = e.unpack(called, 1 + states * directions)
            finals += [last[states * d : states * (d + 1)] for d in range(directions)]
        else:
            y = called
    return [y, *(tf.stack([final[i] for final in finals]) if finals else None for i in range(states))]


def _before_transpose(e: Emitter, x: Expr) -> Expr | None:
    """The sequences batch first, where they have been turned only to be read here."""
    assert isinstance(x, Arg)
    node = x._value.producer()
    turned = (
        node is not None and node.op_type == "Transpose" and list(node.attributes.get_ints("perm", ())) == [1, 0, 2]
    )
    return e.arg(node.inputs[0]) if node is not None and turned else None


def _parts(e: Emitter, kind: str, number: int, direction: int, given: Any) -> dict[str, Part]:
    """The weights of one direction of one layer: of inputs, of states, and the biases, as Keras has them."""
    suffix = f"_l{number}" + ("_reverse" if direction else "")
    w, r, *biases = given
    found = {
        f"weight_ih{suffix}": Part(w, lambda a: np.transpose(_gates(kind, a)), "columns"),
        f"weight_hh{suffix}": Part(r, lambda a: np.transpose(_gates(kind, a)), "columns"),
    }
    if biases:
        rows = [_gates(kind, np.asarray(e.const(b))) for b in biases]
        found[f"bias{suffix}"] = Part(np.stack(rows) if kind == "GRU" else rows[0] + rows[1])
    return found


def _gates(kind: str, rows: Array) -> Array:
    """In Keras' order: a GRU's update gate comes before its reset gate."""
    if kind != "GRU":
        return rows
    reset, update, new = np.split(rows, 3)
    return np.concatenate([update, reset, new])
