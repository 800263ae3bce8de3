"""ONNX models as models of frameworks, each run beside the original before it is handed over."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from onward.backends.emit.package import Trainable
from onward.model import load
from onward.verification.check import prove, reordered

if TYPE_CHECKING:
    import keras
    import tensorflow as tf
    import torch

logger = logging.getLogger(__name__)


def to_torch(source: Any, *, trainable: Trainable = True, check: bool = True) -> torch.nn.Module:
    """An `nn.Module` that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the parameters that a
    fine-tuning step changes, by patterns such as "head.*"; by default those that the original trains. Unless `check` is
    false, both are run on the same data, and `VerificationError` is raised if they differ.
    """
    from onward.backends.torch.convert import generate
    from onward.backends.torch.load import run
    from onward.runners.torch import runner_of

    model = load(source)
    net = run(generate(model, trainable))
    if check:
        prove(model, runner_of(net, model.ir.graph))
    return net


def to_tensorflow(
    source: Any,
    *,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    cast: str = "none",
    check: bool = True,
) -> tf.Module:
    """A `tf.Module` that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the variables that a
    fine-tuning step changes, by patterns such as "head.*"; by default those that the original trains. The module is
    called with the model's inputs, and `training=True` for batch normalisation and dropout as in training. Inputs and
    outputs named in `inputs_nhwc` and `outputs_nhwc` are handed over channels last, all others as in the file. Ops in
    dtypes that TensorFlow has no kernels for are refused; with `cast` they are computed in a wider dtype ("up"), in a
    narrower one ("down"), or in whichever there is ("both"), and each is logged. Unless `check` is false, both are run
    on the same data, and `VerificationError` is raised if they differ.
    """
    from onward.backends.tensorflow.convert import generate
    from onward.backends.tensorflow.load import run
    from onward.runners.tensorflow import runner_of

    model = load(source)
    made = generate(model, trainable, inputs_nhwc, outputs_nhwc, cast=cast)
    for phrase in made.casts:
        logger.warning("%s", phrase)
    net = run(made)
    if check:
        execute = reordered(runner_of(net, model.ir.graph), made.input_orders, made.output_orders)
        prove(model, execute, made.excuse)
    return net


def to_keras(
    source: Any,
    *,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    check: bool = True,
) -> keras.Model:
    """A functional Keras model that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the weights that `fit`
    changes, by patterns such as "head.*"; by default those that the original trains. Several inputs are a list, or a
    dict by name; several outputs a dict by name. Those named in `inputs_nhwc` and `outputs_nhwc` are handed over
    channels last, all others as in the file. Unless `check` is false, both are run on the same data, and
    `VerificationError` is raised if they differ.
    """
    from onward.backends.keras.convert import built
    from onward.runners.keras import runner_of

    model = load(source)
    made = built(model, trainable, inputs_nhwc, outputs_nhwc)
    if check:
        prove(model, reordered(runner_of(made.net, model.ir.graph), made.input_orders, made.output_orders))
    net: keras.Model = made.net
    return net
