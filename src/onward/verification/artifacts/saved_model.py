"""A TensorFlow SavedModel, by one of its signatures."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.verification.artifacts import Kind, Opened, register
from onward.verification.artifacts.matching import Declared
from onward.verification.runners import Inputs, Outputs

DEFAULT = "serving_default"


def recognise(path: Path) -> bool:
    return (path / "saved_model.pb").is_file()


def open_saved_model(path: Path) -> Opened:
    tensorflow = import_tensorflow()
    model = tensorflow.saved_model.load(str(path))
    signature = model.signatures[choose(model.signatures)]
    specs = signature.structured_input_signature[1]
    outputs = sorted(signature.structured_outputs, key=_by_number)

    def run(inputs: Inputs) -> Outputs:
        assert model is not None  # which has the variables, and would otherwise be gone
        fed = {name: tensorflow.constant(inputs[name], spec.dtype) for name, spec in specs.items()}
        found = signature(**fed)
        return {name: to_array(found[name].numpy()) for name in outputs}

    declared = [
        Declared(name, data_type(specs[name].dtype), _dims(specs[name].shape)) for name in sorted(specs, key=_by_number)
    ]
    return Opened(run, declared, outputs)


def import_tensorflow() -> Any:
    """TensorFlow, told to keep its remarks to itself."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    return tensorflow


def choose(signatures: Any) -> str:
    """The one that servers use, or the only one."""
    names: list[str] = sorted(signatures)
    if DEFAULT in names:
        return DEFAULT
    if len(names) != 1:
        raise UnsupportedError(f"it has no signature {DEFAULT!r} to run it by, but {', '.join(names) or 'none'}")
    return names[0]


def _by_number(name: str) -> list[Any]:
    """Sorts output_2 before output_10: TensorFlow keeps no other order."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def data_type(dtype: Any) -> ir.DataType:
    numpy = np.dtype(dtype.as_numpy_dtype)
    return ir.DataType.STRING if numpy.kind in "OSU" else ir.DataType.from_numpy(numpy)


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())


def to_array(value: Any) -> Any:
    """TensorFlow's strings are bytes."""
    array = np.asarray(value)
    if array.dtype.kind not in "OS":
        return array
    texts = [item.decode() if isinstance(item, bytes) else item for item in array.reshape(-1).tolist()]
    return np.array(texts, object).reshape(array.shape)


register(Kind("SavedModel", ("tensorflow",), recognise, open_saved_model))
