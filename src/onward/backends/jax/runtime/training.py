"""One step of ONNX's optimizers for one tensor, as the standard's pseudo code has them."""

import jax.numpy as jnp
from jax import Array


def adam_step(
    rate: Array,
    count: Array,
    x: Array,
    gradient: Array,
    average: Array,
    squares: Array,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Array, Array, Array]:
    """The new tensor, average of gradients and average of their squares."""
    gradient = norm_coefficient * x + gradient
    average = alpha * average + (1 - alpha) * gradient
    squares = beta * squares + (1 - beta) * gradient * gradient
    steps = count.astype(float)
    correction = jnp.where(count > 0, jnp.sqrt(1 - beta**steps) / (1 - alpha**steps), 1.0)
    x = x - (rate * correction).astype(x.dtype) * average / (jnp.sqrt(squares) + epsilon)
    return (1 - norm_coefficient_post) * x, average, squares


def adagrad_step(
    rate: Array,
    count: Array,
    x: Array,
    gradient: Array,
    squares: Array,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Array, Array]:
    """The new tensor and sum of squared gradients."""
    gradient = norm_coefficient * x + gradient
    squares = squares + gradient * gradient
    rate = (rate / (1 + count * decay_factor)).astype(x.dtype)
    return x - rate * gradient / (jnp.sqrt(squares) + epsilon), squares


def momentum_step(
    rate: Array,
    count: Array,
    x: Array,
    gradient: Array,
    momentum: Array,
    *,
    alpha: float,
    beta: float,
    norm_coefficient: float,
    nesterov: bool = False,
) -> tuple[Array, Array]:
    """The new tensor and momentum; at the first step, the gradient counts in full."""
    gradient = norm_coefficient * x + gradient
    share = jnp.where(count > 0, beta, 1.0).astype(x.dtype)
    momentum = alpha * momentum + share * gradient
    direction = gradient + alpha * momentum if nesterov else momentum
    return x - rate.astype(x.dtype) * direction, momentum
