"""What can be converted: each kind of source as a concrete function, and what that function captures."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from onward.errors import OnwardError
from onward.frontends.tensorflow.values import Table, Variable


def concrete(source: Any, signature: str | Sequence[Any] | None) -> Any:
    """The concrete function that a source is, or has under the name of a signature."""
    import tensorflow as tf

    if isinstance(source, str | os.PathLike):
        return _signature(pathlib.Path(source), signature)
    if hasattr(source, "structured_input_signature"):
        return source
    if not callable(source):
        raise OnwardError(f"{type(source).__name__} is neither a function nor the folder of a SavedModel")
    function = source if hasattr(source, "get_concrete_function") else tf.function(source)
    if isinstance(signature, str):
        raise OnwardError(f"a function has no signature {signature!r}: give the tf.TensorSpec of each argument")
    if signature is None and getattr(function, "input_signature", None) is None:
        raise OnwardError(
            "the function does not say what it takes: give `signature=`, a tf.TensorSpec for each argument"
        )
    return function.get_concrete_function(*(signature or ()))


def _signature(path: pathlib.Path, name: Any) -> Any:
    import tensorflow as tf

    if not (path / "saved_model.pb").is_file() and not (path / "saved_model.pbtxt").is_file():
        raise OnwardError(f"{path} is not a SavedModel: it has no saved_model.pb")
    loaded = tf.saved_model.load(str(path))
    signatures = dict(loaded.signatures)
    if not signatures:
        raise OnwardError(f"{path} has no signatures")
    if name is None:
        name = "serving_default" if "serving_default" in signatures else sorted(signatures)[0]
    if name not in signatures:
        raise OnwardError(f"{path} has no signature {name!r}; it has {', '.join(sorted(signatures))}")
    function = signatures[name]
    function._onward_keeps = loaded  # its variables live as long as the object they belong to
    return function


def resources(function: Any) -> list[Any]:
    """What a concrete function captures, in the order of its last inputs: variables, tables, constants."""
    import tensorflow as tf

    handles = {id(variable.handle): variable for variable in function.graph.variables}
    found: list[Any] = []
    for captured in function.captured_inputs:
        variable = handles.get(id(captured))
        if variable is not None:
            found.append(Variable(variable.name.split(":")[0], variable.numpy(), bool(variable.trainable)))
        elif captured.dtype == tf.resource:
            found.append(Table(captured))
        else:
            array = captured.numpy()
            found.append(np.asarray(array, object) if captured.dtype == tf.string else np.asarray(array))
    return found
