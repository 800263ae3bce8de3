"""A model as something that a runtime can read: a file, or bytes."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import OnwardError
from onward.hub.collector import no_garbage_collection
from onward.hub.stored import in_place
from onward.hub.write import Writer
from onward.model import LARGEST_FILE, Model, load

SMALL = 4096
"""Bytes of a weight that is compared as a part of the message around it."""


_AS_LOADED: weakref.WeakSet[Model] = weakref.WeakSet()
"""Models that nobody has changed since they were loaded."""


def load_to_run(path: str | os.PathLike[str]) -> Model:
    """A model that is only run, not changed: its runtime reads its file without asking whether it still is the same."""
    model = load(path)
    _AS_LOADED.add(model)
    return model


def own_file(model: Model) -> Path | None:
    """The file that the model was loaded from, if it still holds this very model.

    A runtime had better read it than a copy: the copy is ours, and may be too large for one file.
    """
    if model.path is None or model in _AS_LOADED:
        return model.path
    try:
        return model.path if _same(model.ir, load(model.path).ir) else None
    except OnwardError:
        return None


def _same(a: ir.Model, b: ir.Model) -> bool:
    (text, weights), (other_text, other_weights) = _parts(a), _parts(b)
    return (
        text == other_text
        and len(weights) == len(other_weights)
        and all(np.array_equal(_bytes(x), _bytes(y)) for x, y in zip(weights, other_weights, strict=True))
    )


def _parts(model: ir.Model) -> tuple[bytes, list[ir.TensorProtocol]]:
    """The message without its weights, and the weights, which stay where they are."""
    weights: list[ir.TensorProtocol] = []

    def put_aside(tensor: ir.TensorProtocol, proto: onnx.TensorProto) -> bool:
        if tensor.nbytes < SMALL:
            return False
        weights.append(tensor)
        return True

    with no_garbage_collection():
        proto = Writer(put_aside).model(model)
    return proto.SerializeToString(deterministic=True), weights


def _bytes(tensor: ir.TensorProtocol) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(in_place(tensor)).reshape(-1).view(np.uint8)


@contextmanager
def readable(model: Model) -> Iterator[str | bytes]:
    """The path of the model's own file, or else its bytes, or for a large model the path of a temporary file."""
    if path := own_file(model):
        yield str(path)
    elif model.nbytes <= LARGEST_FILE:
        yield bytes(model.to_proto().SerializeToString())
    else:
        with tempfile.TemporaryDirectory(prefix="onward-") as folder:
            temporary = Path(folder) / "model.onnx"
            model.save(temporary, external_data=True)
            yield str(temporary)
