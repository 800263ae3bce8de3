"""A model as something that a runtime can read: a file, or bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onward.model import LARGEST_FILE, Model


def own_file(model: Model) -> Path | None:
    """The file that the model was loaded from, which is then read as it is, whatever its size."""
    return model.path


@contextmanager
def readable(model: Model) -> Iterator[str | bytes]:
    """The path of the model's own file, or else its bytes, or for a large model the path of a temporary file."""
    path = own_file(model)
    if path is not None:
        yield str(path)
    elif model.nbytes <= LARGEST_FILE:
        yield bytes(model.to_proto().SerializeToString())
    else:
        with tempfile.TemporaryDirectory(prefix="onward-") as folder:
            temporary = Path(folder) / "model.onnx"
            model.save(temporary, external_data=True)
            yield str(temporary)
