"""A Keras model: a .keras archive, or a .h5 file of an earlier version."""

from __future__ import annotations

import json
import os
import runpy
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  so that numpy knows the names of its dtypes
import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.gate import is_trusted
from onward.gate.archive import archive, is_archive, names_in
from onward.verification.artifacts import Kind, Opened, keras_2, named, register
from onward.verification.artifacts.matching import Declared
from onward.verification.runners import Inputs, Outputs

HDF5 = b"\x89HDF\r\n\x1a\n"


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    if is_archive(path):
        return {"metadata.json", "config.json"} <= set(names_in(path))
    with path.open("rb") as file:
        return file.read(len(HDF5)) == HDF5


def open_keras(path: Path) -> Opened:
    """In Keras' safe mode, in which nothing that is in the file is executed; sources of layers beside it are."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    define_layers(path)
    return open_model(loaded(path), ())


def open_model(model: Any, declared: Sequence[Declared]) -> Opened:
    import keras

    if not getattr(model, "inputs", None):
        raise UnsupportedError("the model does not say what its inputs are")
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


def define_layers(path: Path) -> None:
    """Run the modules beside a .keras file that define layers of it."""
    for number, source in enumerate(sources_of(path)):
        runpy.run_path(str(source), run_name=f"onward_layers_{number}")


def loaded(path: Path, compiled: bool = False) -> Any:
    """The model, `compiled` if asked for; nothing that is in the file is executed, unless the user trusts it."""
    import keras

    if not is_archive(path):
        keras_2.check_code(path)
    with _with_suffix(path) as called:
        try:
            return keras.saving.load_model(called, compile=compiled, safe_mode=not is_trusted())
        except Exception as error:
            if compiled or not keras_2.version(path).startswith(("1.", "2.")):
                raise
            return keras_2.opened(path, called, error)


def sources_of(path: Path) -> list[Path]:
    """The modules beside a .keras file that define layers of it."""
    if not is_archive(path):
        return []
    with archive(path) as found:
        config = json.loads(found.read("config.json"))
    beside = (path.absolute().parent / f"{name}.py" for name in sorted(_modules(config)) if name.isidentifier())
    return [source for source in beside if source.is_file()]


def _modules(config: Any) -> set[str]:
    """The modules that a configuration says its parts are of."""
    if isinstance(config, list):
        return {name for part in config for name in _modules(part)}
    if not isinstance(config, dict):
        return set()
    own = {config["module"]} if isinstance(config.get("module"), str) and "class_name" in config else set()
    return own | {name for part in config.values() for name in _modules(part)}


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
    )
)
