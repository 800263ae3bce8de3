"""The weights of a generated model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file


class Weights:
    """Tensors by their path in the model."""

    def __init__(self, tensors: Mapping[str, np.ndarray], prefix: str = "") -> None:
        self._tensors = tensors
        self._prefix = prefix

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Those of a safetensors file."""
        return cls(load_file(path))

    def at(self, path: str) -> Self:
        """Those of a part of the model."""
        return type(self)(self._tensors, f"{self._prefix}{path}.")

    def variable(self, name: str, trainable: bool = True) -> tf.Variable:
        path = self._prefix + name
        return tf.Variable(self._tensors[path], trainable=trainable, name=path.replace(".", "/"))

    def constant(self, name: str) -> tf.Tensor:
        return tf.constant(self._tensors[self._prefix + name])
