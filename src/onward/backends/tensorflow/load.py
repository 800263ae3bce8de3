"""Runs generated source in memory: what `to_tensorflow` returns is what `convert` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from onward.backends.emit.execute import execute
from onward.backends.emit.safetensors import carried
from onward.backends.tensorflow._compat import check_version

if TYPE_CHECKING:
    from onward.backends.emit.package import Source


def run(source: Source) -> tf.Module:
    """Execute the generated modules and fill in the weights."""
    check_version(tf.__version__)
    package = execute(source)
    tensors = {path: carried(tensor, source.dtypes) for path, tensor in source.tensors.items()}
    model: tf.Module = package.model.Model(package.ops.Weights(tensors))
    return model
