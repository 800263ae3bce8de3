"""Files of Keras 2: those that Keras 3 does not open are opened by the package tf_keras, which goes on with Keras 2."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from onward.errors import UnsupportedError
from onward.formats.keras.dangers import METADATA, attribute, dangers
from onward.gate import is_trusted, need_trust
from onward.gate.archive import archive, is_archive

PACKAGE = "tf_keras"
LONGEST = 120
"""Characters of what Keras 3 says: the whole configuration of a layer may follow."""


def version(path: Path) -> str:
    """The version of Keras that wrote a file; empty where it does not say."""
    if is_archive(path):
        with archive(path) as found:
            return str(json.loads(found.read(METADATA)).get("keras_version", ""))
    return attribute(path, "keras_version")


def opened(path: Path, called: str, error: Exception) -> Any:
    """The model, not compiled, by Keras 2, where Keras 3 failed with an error; `called` is a name that suits Keras."""
    reason = str(error).strip().splitlines() or [type(error).__name__]
    if importlib.util.find_spec(PACKAGE) is None:
        raise UnsupportedError(
            f"{path}: Keras {version(path)} wrote it, and Keras 3 does not open it: install Keras 2 by"
            f" `pip install --no-deps {PACKAGE}` ({reason[0][:LONGEST]})"
        ) from error
    reader = importlib.import_module(PACKAGE)
    if not is_trusted():
        for danger in dangers(path, PACKAGE):
            need_trust(path, danger)
    return reader.models.load_model(called, compile=False, safe_mode=not is_trusted())
