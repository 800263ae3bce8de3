"""Functions of TensorFlow, models of Keras and of TensorFlow Lite as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from onward.advice.extras import missing_packages
from onward.errors import OnwardError
from onward.frontends.opset import OPSET
from onward.frontends.states import without_states
from onward.model import Model
from onward.passes.unsigned_bytes import unsigned_bytes
from onward.verification.check import prove_source

if TYPE_CHECKING:
    from onward.formats.graph_def import Names
    from onward.training.trainable import Trainable


@overload
def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    training: Literal[False] = False,
    opset: int = OPSET,
    allow_custom_ops: bool = False,
    trust: bool = False,
    check: bool = True,
) -> Model: ...


@overload
def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    training: Literal[True],
    trust: bool = False,
    labels: Sequence[Any] | None = None,
    dense_gradients: bool = False,
    sample_weight: bool = False,
    class_weight: Mapping[int, float] | None = None,
) -> Trainable: ...


def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    training: bool = False,
    opset: int = OPSET,
    allow_custom_ops: bool = False,
    trust: bool = False,
    check: bool = True,
    labels: Sequence[Any] | None = None,
    dense_gradients: bool = False,
    sample_weight: bool = False,
    class_weight: Mapping[int, float] | None = None,
) -> Model | Trainable:
    """A Keras model, or the file of one, as an ONNX model for inference; a compiled one as a trainable model.

    `signature` is the `tf.TensorSpec` of each input, which only a subclassed model that was never called needs. With
    `trust` code in a file, and in modules beside it, is executed; without it such files are refused. Of `training`,
    with `labels`, `dense_gradients`, `sample_weight` and `class_weight`, `onward.training.from_keras` says more. Unless
    `check` is false, the ONNX model is run beside the Keras model, and `VerificationError` is raised if they differ.

    >>> import keras, onward
    >>> net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    >>> onward.from_keras(net).save("dense.onnx")
    """
    from onward.frontends.keras.convert import converted, opened

    if training:
        from onward.training.capture.keras import from_keras as captured

        if opset != OPSET or allow_custom_ops:
            raise OnwardError(
                "training chooses its own opset and has no custom ops: leave out opset and allow_custom_ops"
            )
        with missing_packages():
            compiled = opened(model, trust, compiled=True)
        return captured(
            compiled,
            signature,
            labels=labels,
            dense_gradients=dense_gradients,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )
    options = {"labels": labels is not None, "dense_gradients": dense_gradients, "sample_weight": sample_weight}
    if option := next((name for name, given in {**options, "class_weight": class_weight}.items() if given), None):
        raise OnwardError(f"{option} is an option of training: give training=True as well")
    with missing_packages():
        made, original = converted(model, signature, opset, allow_custom_ops, trust)
    if check:
        prove_source(made, original, "Keras")
    return made


def from_tensorflow(
    source: Any,
    signature: str | Sequence[Any] | None = None,
    *,
    inputs: Names | None = None,
    outputs: Sequence[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    opset: int = OPSET,
    allow_custom_ops: bool = False,
    trust: bool = False,
    check: bool = True,
) -> Model:
    """A TensorFlow function, a SavedModel, or a frozen graph, as an ONNX model.

    `source` is a `tf.function`, a concrete function, any callable of tensors, the folder of a SavedModel, or the file
    of a graph. `signature` is the name of one of a SavedModel's signatures, or for a function the `tf.TensorSpec` of
    each argument. `inputs` and `outputs` are names of tensors of a graph: its placeholders unless given, and what
    nothing reads; as a dict, `inputs` says their shapes too. Variables of a function, which stays as it is, or of a
    graph have the values of a `checkpoint`, where one is given. `trust` lets a file have ops that do more than compute,
    such as to write files; without it, such files are refused. Unless `check` is false, the model is run beside
    TensorFlow, and `VerificationError` is raised if they differ.

    >>> import onward, tensorflow as tf
    >>> model = onward.from_tensorflow(lambda x: tf.nn.relu(x) + 1, [tf.TensorSpec([None, 3], name="x")])
    >>> model.save("function.onnx")
    """
    from onward.frontends.tensorflow.convert import converted

    with missing_packages():
        model, original = converted(source, signature, inputs, outputs, checkpoint, opset, allow_custom_ops, trust)
    if check:
        prove_source(model, original, "TensorFlow")
    return model


def from_tflite(
    source: str | os.PathLike[str] | bytes,
    *,
    signature: str | None = None,
    opset: int | None = None,
    check: bool = True,
) -> Model:
    """A model of TensorFlow Lite, by its path or as bytes, as an ONNX model; quantised ones have QDQ pairs.

    `signature` chooses one of several functions. The opset is one that ONNX Runtime runs all of the model in, unless it
    is given. Unless `check` is false, the model is run beside the interpreter, and `VerificationError` is raised if
    they differ.

    >>> import onward
    >>> onward.to_tflite("examples/digits/digits.onnx", "lite.tflite").name
    'lite.tflite'
    >>> onward.from_tflite("lite.tflite").save("from_lite.onnx")
    """
    from onward.frontends.tflite.convert import converted

    with missing_packages():
        model, original = converted(source, opset, signature)
    unsigned_bytes(model.ir)
    if check:
        prove_source(without_states(model), original, "TensorFlow Lite")
    return model
