"""Recurrent layers, as a loop over time."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.rnn import results, scan, stacked_parts, trained_half
from onward.backends.tensorflow.layer_weights import owned
from onward.backends.tensorflow.target import ops, rule, tf
from onward.spec.rnn import GATES, Activation, Recurrence, recurrence

_PLAIN_ACTIVATIONS = {
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "softsign": tf.nn.softsign,
    "softplus": tf.nn.softplus,
}


def _activation(of: Activation) -> Expr:
    plain = _PLAIN_ACTIVATIONS.get(of.name)
    return ops.rnn_activation(of.name, *of.numbers) if plain is None else plain


def _scan(e: Emitter, helper: Expr, meaning: Recurrence, *inputs: Expr | None, **flags: bool) -> list[Expr | None]:
    x, w, r, b, *others = inputs
    half = trained_half(e, b)
    if half is not None:
        weight, zeros = half
        bias: Expr | None = tf.pad(weight, ((0, 0), (0, zeros)))
        given = [x, *owned(e, meaning.kind.lower(), weight=w, recurrent_weight=r), bias, *others]
    else:
        given = [x, *owned(e, meaning.kind.lower(), weight=w, recurrent_weight=r, bias=b), *others]
    activations = None
    if not meaning.has_default_activations:
        activations = tuple(tuple(map(_activation, used)) for used in meaning.activations)
    return scan(e, helper, meaning, given, activations, **flags)


@rule("LSTM")
def lstm(
    e: Emitter,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    lengths: Expr | None = None,
    h0: Expr | None = None,
    c0: Expr | None = None,
    p: Expr | None = None,
    *,
    hidden_size: int = 0,
    input_forget: int = 0,
    **attributes: Any,
) -> Any:
    meaning = recurrence("LSTM", **attributes)
    return _scan(e, ops.lstm, meaning, x, w, r, b, lengths, h0, c0, p, input_forget=bool(input_forget))


@rule("GRU")
def gru(
    e: Emitter,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    lengths: Expr | None = None,
    h0: Expr | None = None,
    *,
    hidden_size: int = 0,
    linear_before_reset: int = 0,
    **attributes: Any,
) -> Any:
    meaning = recurrence("GRU", **attributes)
    return _scan(e, ops.gated_rnn, meaning, x, w, r, b, lengths, h0, reset_after=bool(linear_before_reset))


@rule("RNN")
def rnn(
    e: Emitter,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    lengths: Expr | None = None,
    h0: Expr | None = None,
    *,
    hidden_size: int = 0,
    **attributes: Any,
) -> Any:
    return _scan(e, ops.simple_rnn, recurrence("RNN", **attributes), x, w, r, b, lengths, h0)


def _stacked(kind: str) -> None:
    """The rule for several layers, as `fuse_rnn` finds them."""
    states = 2 if kind == "LSTM" else 1

    @rule(f"onward::{kind}")
    def stacked(
        e: Emitter,
        x: Expr,
        lengths: Expr | None,
        *inputs: Expr | None,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bidirectional: int,
        batch_first: int,
        bias: int,
        nonlinearity: str = "tanh",
    ) -> list[Expr | None]:
        initial, tensors = list(inputs[:states]), list(inputs[states:])
        tensors = owned(e, kind.lower(), None, **stacked_parts(tensors, num_layers, bidirectional, bias))
        size = 4 if bias else 2
        weights = [tuple(tensors[i : i + size]) for i in range(0, len(tensors), size)]
        keywords = options(
            bidirectional=bool(bidirectional),
            batch_first=bool(batch_first),
            activation=None if nonlinearity == "tanh" else _PLAIN_ACTIVATIONS[nonlinearity],
        )
        call = ops.recurrent_layers(kind, x, weights, *leading(lengths, *initial), **keywords)
        return results(e, call, 1 + states)


for _kind in GATES:
    _stacked(_kind)
