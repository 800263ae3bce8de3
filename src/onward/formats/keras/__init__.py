"""A Keras model: a .keras archive, or a .h5 file of an earlier version."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  so that numpy knows the names of its dtypes
import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats import Kind, Opened, named, register
from onward.formats.keras import keras_2
from onward.formats.keras.dangers import CONFIG, METADATA, MODEL, attribute, dangers, dangers_compiled, sources_of
from onward.formats.matching import Declared
from onward.gate import harmless, is_trusted, opens, run_source
from onward.gate.archive import is_archive, names_in
from onward.runners.calls import Inputs, Outputs

HDF5 = b"\x89HDF\r\n\x1a\n"
_COUNT = itertools.count(1)


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    if is_archive(path):
        return {METADATA, CONFIG} <= set(names_in(path))
    with path.open("rb") as file:
        return file.read(len(HDF5)) == HDF5


@opens(dangers)
def open_keras(path: Path) -> Opened:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return open_model(loaded(path), ())


def open_model(model: Any, declared: Sequence[Declared]) -> Opened:
    import keras

    if not getattr(model, "inputs", None):
        raise UnsupportedError("the model does not say what its inputs are: call it once first")
    inputs = [tensor.name for tensor in model.inputs]

    def run(given: Inputs) -> Outputs:
        flat = [keras.ops.convert_to_tensor(given[name]) for name in inputs]
        found = model(keras.tree.pack_sequence_as(structure_of(model), flat), training=False)
        arrays = keras.tree.map_structure(_array, found)
        return arrays if isinstance(arrays, dict) else named(arrays, outputs)

    def _array(tensor: Any) -> Any:
        return np.asarray(keras.ops.convert_to_numpy(tensor))

    outputs = _output_names(model)
    return Opened(run, [_declare(tensor) for tensor in model.inputs], outputs)


@opens(dangers)
def loaded(path: Path) -> Any:
    """The model, with what layers of it are defined in beside it, not compiled.

    Unless the user trusts it, nothing is executed but parts of Keras that compute, and source that Onward wrote.
    """
    return _loaded(path, compiled=False)


@opens(dangers_compiled)
def loaded_compiled(path: Path) -> Any:
    """As `loaded`, with the loss, the metrics and the optimizer that are in the file."""
    return _loaded(path, compiled=True)


def _loaded(path: Path, compiled: bool) -> Any:
    import keras

    for source in sources_of(path):
        run_source(source, f"onward_layers_{next(_COUNT)}")
    with _with_suffix(path) as called:
        try:
            return keras.saving.load_model(called, compile=compiled, safe_mode=not is_trusted())
        except Exception as error:
            if compiled or keras_2.version(path).startswith("3."):
                raise
            return keras_2.opened(path, called, error)


@opens(harmless)
def has_model(path: Path) -> bool:
    """Whether an HDF5 file has the configuration of a model, told before Keras is loaded."""
    try:
        return attribute(path, MODEL) != ""
    except OSError:
        return False


@contextmanager
def _with_suffix(path: Path) -> Iterator[str]:
    """A link to the file, as Keras goes by the suffix and not by what is in it."""
    with tempfile.TemporaryDirectory(prefix="onward-") as folder:
        link = Path(folder) / ("model.keras" if is_archive(path) else "model.h5")
        link.symlink_to(path.absolute())
        yield str(link)


def structure_of(model: Any) -> Any:
    """How a model takes its inputs: as one tensor, a list or a dict; None where it does not say."""
    inputs = getattr(model, "inputs", None)
    return getattr(model, "input", inputs[0] if len(inputs) == 1 else inputs) if inputs else None


def _output_names(model: Any) -> list[str] | None:
    output = getattr(model, "output", None)
    if isinstance(output, dict):
        return list(output)
    names = output_names(model)
    return names if names and len(set(names)) == len(model.outputs) else None


def output_names(model: Any) -> list[str]:
    """What Keras calls the outputs; that of a sequence of layers is called as the last of them."""
    names = list(getattr(model, "output_names", None) or ())
    return names or [layer.name for layer in getattr(model, "layers", None) or ()][-1:]


def _declare(tensor: Any) -> Declared:
    name = getattr(tensor.dtype, "name", tensor.dtype)
    dtype = ir.DataType.STRING if name == "string" else ir.DataType.from_numpy(np.dtype(name))
    return Declared(tensor.name, dtype, None if tensor.shape is None else tuple(tensor.shape))


register(
    Kind(
        "Keras model",
        ("keras",),
        recognise,
        open_keras,
        "a zip with config.json and metadata.json, or HDF5",
        {"keras.src.models.model.Model": open_model, "tf_keras.src.engine.training.Model": open_model},
        ("tensorflow", "h5py"),
    )
)
