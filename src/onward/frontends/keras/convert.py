"""Keras models as ONNX models."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats.keras import has_model, loaded, loaded_compiled, output_names, recognise, structure_of
from onward.formats.saved_model import to_array
from onward.frontends.keras.recurrent import recurrent_layers_whole
from onward.frontends.keras.time_distributed import steps_as_batch
from onward.frontends.opset import written_opset
from onward.frontends.tensorflow.convert import RULES, translated
from onward.gate import trusting
from onward.gate.archive import is_archive
from onward.gate.files import absent
from onward.model import Model
from onward.registry import import_files
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.undisturbed import variables_kept

CAUSE = "Exception encountered: "
"""How Keras begins the line that says what went wrong inside a model."""


def converted(
    model: Any,
    signature: Sequence[Any] | None,
    opset: int,
    custom_ops: bool,
    trust: bool,
) -> tuple[Model, Callable[[], Run]]:
    """The ONNX model, and what opens the Keras model that it is of, to be run beside it."""
    written_opset(opset)  # before anything of it is loaded
    import_files(RULES)
    name = pathlib.Path(model).stem if isinstance(model, str | os.PathLike) else "model"
    keras_model = opened(model, trust)
    function, names = traced(keras_model, signature)
    fixed = {id(variable.value) for variable in keras_model.non_trainable_weights}
    made = translated(function, opset, custom_ops, name, names, batched=True, fixed=fixed)
    return made, lambda: _runner(keras_model, made)


def opened(model: Any, trust: bool, compiled: bool = False) -> Any:
    """A model as it is, or that of a file; `compiled` with the loss and the optimizer that are in it if asked for."""
    if not isinstance(model, str | os.PathLike):
        return model
    with trusting(trust):
        return _read(pathlib.Path(model), compiled)


def _read(path: pathlib.Path, compiled: bool) -> Any:
    if not path.is_file():
        raise OnwardError(absent(path))
    if not recognise(path):
        raise InvalidModelError(f"{path}: it is neither a .keras archive nor an HDF5 file")
    if not is_archive(path) and not has_model(path):
        raise InvalidModelError(f"{path}: there is no Keras model in this HDF5 file")
    try:
        return loaded_compiled(path) if compiled else loaded(path)
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
