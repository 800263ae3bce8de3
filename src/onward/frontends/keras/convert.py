"""Keras models as ONNX models."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats.keras import has_model, loaded, output_names, recognise, structure_of
from onward.formats.saved_model import to_array
from onward.frontends.keras.recurrent import recurrent_layers_whole
from onward.frontends.keras.time_distributed import steps_as_batch
from onward.frontends.tensorflow.convert import OPSET, checked_opset, load_rules, translated
from onward.gate import trusting
from onward.gate.archive import is_archive
from onward.model import Model
from onward.runners import Inputs, Outputs, Run
from onward.runners.undisturbed import variables_kept
from onward.verification.check import prove_source

if TYPE_CHECKING:
    from onward.training.trainable import Trainable

CAUSE = "Exception encountered: "
"""How Keras begins the line that says what went wrong inside a model."""


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
    model: Any, signature: Sequence[Any] | None = None, *, training: Literal[True], trust: bool = False, **options: Any
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
    **options: Any,
) -> Model | Trainable:
    """A Keras model, or the file of one, as an ONNX model for inference; a compiled one as a trainable model.

    `signature` is the `tf.TensorSpec` of each input, which only a subclassed model that was never called needs. With
    `trust` code in a file, and in modules beside it, is executed; without it such files are refused. Of `training`,
    with its `options`, `onward.training.from_keras` says more. Unless `check` is false, the ONNX model is run beside
    the Keras model, and `VerificationError` is raised if they differ.
    """
    checked_opset(opset)
    load_rules()
    name = "model"
    if isinstance(model, str | os.PathLike):
        name = pathlib.Path(model).stem
        with trusting(trust):
            model = opened(pathlib.Path(model), compiled=training)
    if training:
        from onward.training.capture.keras import from_keras as captured

        if opset != OPSET or allow_custom_ops:
            raise OnwardError("a model that is trained has the opset that gradients are written in, and no custom ops")
        return captured(model, signature, **options)
    if options:
        raise OnwardError(f"{sorted(options)[0]} is an option of training: give training=True as well")
    function, names = traced(model, signature)
    fixed = {id(variable.value) for variable in model.non_trainable_weights}
    made = translated(function, opset, allow_custom_ops, name, names, batched=True, fixed=fixed)
    if check:
        prove_source(made, lambda: _runner(model, made), "Keras")
    return made


def opened(path: pathlib.Path, compiled: bool = False) -> Any:
    """The model of a file, `compiled` with the loss and the optimizer that are in it if asked for."""
    if not path.is_file():
        raise OnwardError(f"{path}: there is no such file")
    if not recognise(path):
        raise InvalidModelError(f"{path}: it is neither a .keras archive nor an HDF5 file")
    if not is_archive(path) and not has_model(path):
        raise InvalidModelError(f"{path}: there is no Keras model in this HDF5 file")
    try:
        return loaded(path, compiled)
    except OnwardError:
        raise
    except Exception as error:
        kind = "archive" if is_archive(path) else "HDF5 file"
        lines = str(error).strip().splitlines() or [type(error).__name__]
        inner = [line.removeprefix(CAUSE) for line in lines if line.startswith(CAUSE)]
        raise InvalidModelError(f"{path}: Keras does not open this {kind}: {(inner or lines)[0]}") from error


def traced(model: Any, signature: Sequence[Any] | None) -> tuple[Any, list[str] | None]:
    """The model as a concrete function, in the mode of inference, and what its outputs are called."""
    import keras
    import tensorflow as tf

    if keras.backend.backend() != "tensorflow":
        raise UnsupportedError(f"Keras runs on {keras.backend.backend()} here: set KERAS_BACKEND=tensorflow")
    structure = structure_of(model)
    if structure is None and signature is None:
        raise OnwardError(f"{type(model).__name__} does not say what it takes: call it once, or give `signature=`")
    if signature is not None:
        specs = list(signature)
    else:
        specs = [_spec(tensor) for tensor in keras.tree.flatten(structure)]
        if len({spec.name for spec in specs}) < len(specs):
            specs = [tf.TensorSpec(s.shape, s.dtype, name=f"input_{i}") for i, s in enumerate(specs)]

    def call(*tensors: Any) -> Any:
        return model(packed(model, tensors), training=False)

    with recurrent_layers_whole(), steps_as_batch():
        function = tf.function(call, autograph=False).get_concrete_function(*specs)
    return function, _output_names(model, function)


def _runner(model: Any, made: Model) -> Run:
    """How Keras itself runs the model that `made` was made of, on inputs and to outputs as that has them."""
    import tensorflow as tf

    taken = [value.name or "" for value in made.ir.graph.inputs]
    given = [value.name or "" for value in made.ir.graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        with variables_kept(model.non_trainable_variables):
            found = model(packed(model, [tf.convert_to_tensor(inputs[name]) for name in taken]), training=False)
        tensors = tf.nest.flatten(found, expand_composites=True)
        return dict(zip(given, [to_array(tensor.numpy()) for tensor in tensors], strict=True))

    return run


def packed(model: Any, tensors: Sequence[Any]) -> Any:
    """What a model is called with, of the tensors that its inputs are."""
    import keras

    structure = structure_of(model)
    if structure is not None:
        return keras.tree.pack_sequence_as(structure, list(tensors))
    return tensors if len(tensors) > 1 else tensors[0]


def _spec(tensor: Any) -> Any:
    import tensorflow as tf

    return tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name)


def _output_names(model: Any, function: Any) -> list[str] | None:
    """Those that Keras has for outputs, where each has one of its own."""
    if isinstance(function.structured_outputs, dict):
        return None
    names = output_names(model)
    return names if len(names) == len(set(names)) == len(function.outputs) else None
