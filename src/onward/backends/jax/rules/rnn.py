"""Recurrent layers, as `lax.scan` over time."""

from __future__ import annotations

from onward.backends.jax.target import TARGET, jax, jnp
from onward.backends.shared.layer_weights import owned
from onward.backends.shared.rnn import rules_without_modules

_PLAIN_ACTIVATIONS = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softsign": jax.nn.soft_sign,
    "softplus": jax.nn.softplus,
}

TARGET.rules.take(rules_without_modules(_PLAIN_ACTIVATIONS, jnp.pad, owned))
