"""One step of ONNX's optimizers for one tensor, as the standard's pseudo code has them, and derivatives."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def gradients(function: Callable[..., tf.Tensor], xs: list[tf.Tensor], *others: tf.Tensor) -> Any:
    """The derivatives of the sum of `function(*xs, *others)` with respect to each of the xs."""
    xs = [tf.convert_to_tensor(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs, *others)
    return tape.gradient(y, xs, unconnected_gradients="zero")


def adam_step(
    rate: tf.Tensor,
    count: tf.Tensor,
    x: tf.Tensor,
    gradient: tf.Tensor,
    average: tf.Tensor,
    squares: tf.Tensor,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The new tensor, average of gradients and average of their squares."""
    gradient = norm_coefficient * x + gradient
    average = alpha * average + (1 - alpha) * gradient
    squares = beta * squares + (1 - beta) * tf.square(gradient)
    steps = tf.cast(count, tf.float64)
    correction = tf.where(steps > 0, tf.sqrt(1 - beta**steps) / (1 - alpha**steps), 1.0)
    rate = tf.cast(tf.cast(rate, tf.float64) * correction, x.dtype)
    x = x - rate * average / (tf.sqrt(squares) + epsilon)
    return (1 - norm_coefficient_post) * x, average, squares


def adagrad_step(
    rate: tf.Tensor,
    count: tf.Tensor,
    x: tf.Tensor,
    gradient: tf.Tensor,
    squares: tf.Tensor,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The new tensor and sum of squared gradients."""
    gradient = norm_coefficient * x + gradient
    squares = squares + tf.square(gradient)
    rate = tf.cast(rate / (1 + tf.cast(count, rate.dtype) * decay_factor), x.dtype)
    return x - rate * gradient / (tf.sqrt(squares) + epsilon), squares


def momentum_step(
    rate: tf.Tensor,
    count: tf.Tensor,
    x: tf.Tensor,
    gradient: tf.Tensor,
    momentum: tf.Tensor,
    *,
    alpha: float,
    beta: float,
    norm_coefficient: float,
    nesterov: bool = False,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The new tensor and momentum; at the first step, the gradient counts in full."""
    gradient = norm_coefficient * x + gradient
    share = tf.cast(tf.where(count > 0, beta, 1.0), x.dtype)
    momentum = alpha * momentum + share * gradient
    direction = gradient + alpha * momentum if nesterov else momentum
    return x - tf.cast(rate, x.dtype) * direction, momentum
