"""Recurrent layers, as a loop over time."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.owned import owned
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


def _scan(e: Emitter, helper: Expr, meaning: Recurrence, *inputs: Expr | None, **options: bool) -> list[Expr | None]:
    """Call the helper that walks over time, with only those options that are not its defaults."""
    x, w, r, b, *others = inputs
    given = [x, *owned(e, meaning.kind.lower(), weight=w, recurrent_weight=r, bias=b), *others]
    while given[-1] is None:
        given.pop()
    keywords: dict[str, Any] = {}
    if not meaning.has_default_activations:
        keywords["activations"] = tuple(tuple(map(_activation, used)) for used in meaning.activations)
    if meaning.reverse != (False,):
        keywords["reverse"] = meaning.reverse
    if meaning.clip is not None:
        keywords["clip"] = meaning.clip
    if meaning.batch_first:
        keywords["batch_first"] = True
    call = helper(*given, **keywords, **{k: True for k, v in options.items() if v})
    return _results(e, call, 3 if meaning.kind == "LSTM" else 2)


def _results(e: Emitter, call: Expr, count: int) -> list[Expr | None]:
    """Those of the results that are read."""
    used = [i for i in range(count) if e.used(i)]
    if len(used) == 1:
        return [call[i] if i in used else None for i in range(count)]
    return list(e.unpack(call, count))


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
        size = 4 if bias else 2
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[:size]
        suffixes = [f"_l{i}{end}" for i in range(num_layers) for end in ("", "_reverse")[: 1 + bidirectional]]
        parts = dict(zip((n + s for s in suffixes for n in names), tensors, strict=True))
        tensors = owned(e, kind.lower(), None, **parts)
        weights = [tuple(tensors[i : i + size]) for i in range(0, len(tensors), size)]
        given = [lengths, *initial]
        while given and given[-1] is None:
            given.pop()
        flags = {"bidirectional": bidirectional, "batch_first": batch_first}
        options: dict[str, Any] = {name: True for name, value in flags.items() if value}
        if nonlinearity != "tanh":
            options["activation"] = _PLAIN_ACTIVATIONS[nonlinearity]
        return _results(e, ops.recurrent_layers(kind, x, weights, *given, **options), 1 + states)


for _kind in GATES:
    _stacked(_kind)
