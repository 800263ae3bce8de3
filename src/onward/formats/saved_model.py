"""A TensorFlow SavedModel, by one of its signatures."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.advice.options import option
from onward.backends.tensorflow.remarks import without_remarks
from onward.backends.tensorflow.saved_model import REMARKS
from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats import Kind, Opened, named, register
from onward.formats.matching import Declared
from onward.formats.saved_model_dangers import dangers, parsed
from onward.formats.tensorflow_order import settled
from onward.formats.tensorflow_records import Records, records_in
from onward.gate import opens
from onward.runners.calls import Inputs, Outputs

DEFAULT = "serving_default"


def recognise(path: Path) -> bool:
    return (path / "saved_model.pb").is_file() or (path / "saved_model.pbtxt").is_file()


@opens(dangers)
def open_saved_model(path: Path) -> Opened:
    remarks = path / REMARKS
    casts = remarks.read_text(encoding="utf-8", errors="replace").splitlines() if remarks.is_file() else []
    return replace(open_function(signature_of(path)), notes=[f"cast: {phrase}" for phrase in casts])


@opens(dangers)
def signature_of(path: Path, name: str | None = None) -> Any:
    """One of a SavedModel's functions: the one of that name, else the one that servers use, or the only one."""
    tensorflow = import_tensorflow()
    try:
        with without_remarks():
            model = tensorflow.saved_model.load(str(path), tags=_tags(path))
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidModelError(f"{path}: TensorFlow does not load this SavedModel: {reason[0]}") from error
    signatures = getattr(model, "signatures", {})
    if name is not None and name not in signatures:
        known = ", ".join(sorted(signatures)) or "none"
        raise OnwardError(f"{path} has no signature {name!r}; it has {known}")
    function = signatures[name or choose(signatures)]
    function._onward_keeps = model  # its variables live as long as the object they belong to
    return function


def _tags(path: Path) -> list[str] | None:
    """Of several graphs, as TensorFlow 1 could save them, the one that servers use; None where there is only one."""
    graphs = [sorted(graph.meta_info_def.tags) for graph in parsed(path).meta_graphs]
    if len(graphs) < 2:
        return None
    return next((tags for tags in sorted(graphs, key=len) if "serve" in tags), graphs[0])


def open_function(function: Any, declared: Sequence[Declared] = ()) -> Opened:
    """A concrete function, with the names of its arguments and of the results, where it gives them as a dict.

    Records that it takes are made of their features, which are its inputs then.
    """
    tensorflow = import_tensorflow()
    by_keyword = bool(function.structured_input_signature[1])
    by_name = dict(zip(input_names(function), function.graph.inputs, strict=False))
    records = {name: one for name, one in records_of(function).items() if not one.refused}
    in_order = settled(function)
    results = function.structured_outputs
    outputs = sorted(results, key=_by_number) if isinstance(results, dict) else None

    def run(inputs: Inputs) -> Outputs:
        given = {name: records[name].written(inputs) if name in records else inputs[name] for name in by_name}
        fed = {name: tensorflow.constant(given[name], tensor.dtype) for name, tensor in by_name.items()}
        if in_order is not None:
            found = in_order(list(fed.values()))
        else:
            found = function(**fed) if by_keyword else function(*fed.values())
        if outputs is None:
            return named([to_array(tensor.numpy()) for tensor in tensorflow.nest.flatten(found)])
        return {name: to_array(found[name].numpy()) for name in outputs}

    order = sorted(by_name, key=_by_number) if by_keyword else by_name
    takes: list[Declared] = []
    for name in order:
        own = Declared(name, data_type(by_name[name].dtype), _dims(by_name[name].shape))
        takes += records[name].declared if name in records else [own]
    return Opened(run, takes, outputs)


def input_names(function: Any) -> list[str]:
    """What the inputs are called, in the order of the graph, exactly as a signature says it.

    What TensorFlow derives from these names is not: placeholders are in lower case, and keywords have no dots.
    """
    count = len(function.graph.inputs) - len(function.captured_inputs)
    keywords = list(getattr(function, "_arg_keywords", None) or ())
    return keywords if len(keywords) == count else [tensor.op.name for tensor in function.graph.inputs[:count]]


def records_of(function: Any) -> dict[str, Records]:
    """Those of its inputs, by name, that are records."""
    return records_in(function.graph, dict(zip(input_names(function), function.graph.inputs, strict=False)))


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
        advice = f"; choose one by {option('signature', names[0])}" if names else ""
        raise UnsupportedError(f"it has no signature {DEFAULT!r} to run; it has {', '.join(names) or 'none'}{advice}")
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


register(
    Kind(
        "SavedModel",
        ("tensorflow",),
        recognise,
        open_saved_model,
        "a folder with saved_model.pb",
        {"tensorflow.python.eager.polymorphic_function.concrete_function.ConcreteFunction": open_function},
    )
)
