"""What TensorFlow computes, on every processor alike."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def computed(function: Callable[..., Any], *arguments: Any) -> Any:
    """By TensorFlow's kernels; by XLA's where it lacks one.

    Without oneDNN, which it uses on few processors, it has none for convolutions channels first, for volumes with
    dilations, and for gradients with dilations.
    """
    try:
        return function(*arguments)
    except (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError):
        return tf.function(function, jit_compile=True)(*arguments)
