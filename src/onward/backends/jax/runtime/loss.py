"""Losses of classifiers whose classes are the second axis."""

import jax.numpy as jnp
from jax import Array


def negative_log_likelihood(
    log_probabilities: Array,
    labels: Array,
    weight: Array | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Minus the log-probability of each label (samples, …), weighted by its class: each, their sum or weighted mean.

    Labels that are `ignore_index` count for nothing, in the mean as well.
    """
    kept = jnp.ones_like(labels, bool) if ignore_index is None else labels != ignore_index
    known = jnp.where(kept, labels, 0)
    loss = -jnp.take_along_axis(log_probabilities, known[:, None], 1)[:, 0]
    factors = jnp.where(kept, 1 if weight is None else weight[known], 0).astype(loss.dtype)
    loss = jnp.where(kept, loss * factors, 0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / factors.sum()
