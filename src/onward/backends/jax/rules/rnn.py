"""Recurrent layers, as `lax.scan` over time."""

from __future__ import annotations

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.target import jax, jnp, ops, rule
from onward.backends.shared.layer_weights import owned
from onward.backends.shared.rnn import activations, results, scan, stacked_parts, trained_half
from onward.spec.rnn import GATES, Recurrence, Stacked

_PLAIN_ACTIVATIONS = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softsign": jax.nn.soft_sign,
    "softplus": jax.nn.softplus,
}


@rule(*GATES)
def recurrent(
    e: Emitter, x: Expr, w: Expr, r: Expr, b: Expr | None = None, *others: Expr | None, p: Recurrence
) -> list[Expr | None]:
    half = trained_half(e, b)
    if half is not None:
        weight, zeros = half
        bias: Expr | None = jnp.pad(weight, ((0, 0), (0, zeros)))
        given = [x, *owned(e, p.kind.lower(), weight=w, recurrent_weight=r), bias, *others]
    else:
        given = [x, *owned(e, p.kind.lower(), weight=w, recurrent_weight=r, bias=b), *others]
    return scan(e, given, None if p.has_default_activations else activations(p, _PLAIN_ACTIVATIONS), p)


@rule(*(f"onward::{kind}" for kind in GATES))
def stacked(e: Emitter, x: Expr, lengths: Expr | None, *inputs: Expr | None, p: Stacked) -> list[Expr | None]:
    initial, tensors = inputs[: p.states], inputs[p.states :]
    tensors = tuple(owned(e, p.kind.lower(), None, **stacked_parts(tensors, p)))
    size = 4 if p.bias else 2
    weights = [tuple(tensors[i : i + size]) for i in range(0, len(tensors), size)]
    keywords = options(
        bidirectional=bool(p.bidirectional),
        batch_first=bool(p.batch_first),
        activation=None if p.nonlinearity == "tanh" else _PLAIN_ACTIVATIONS[p.nonlinearity],
    )
    call = ops.recurrent_layers(p.kind, x, weights, *leading(lengths, *initial), **keywords)
    return results(e, call, 1 + p.states)
