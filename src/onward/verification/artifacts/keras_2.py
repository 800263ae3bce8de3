"""Files of Keras 2: those that Keras 3 does not open are opened by the package tf_keras, which goes on with Keras 2."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from onward.errors import UnsupportedError
from onward.gate import is_trusted, need_trust
from onward.gate.archive import archive, is_archive

PACKAGE = "tf_keras"
LONGEST = 120
"""Characters of what Keras 3 says: the whole configuration of a layer may follow."""


def version(path: Path) -> str:
    """The version of Keras that wrote a file; empty where it does not say."""
    if is_archive(path):
        with archive(path) as found:
            return str(json.loads(found.read("metadata.json")).get("keras_version", ""))
    return str(_attribute(path, "keras_version") or "")


def check_code(path: Path) -> None:
    """Refuse an HDF5 file with code in it, unless it is trusted: not every version of Keras does."""
    config = _attribute(path, "model_config")
    if config is not None and _has_code(json.loads(config)):
        need_trust(path, "a Lambda layer of it holds code")


def opened(path: Path, called: str, error: Exception) -> Any:
    """The model, not compiled, by Keras 2, where Keras 3 failed with an error; `called` is a name that suits Keras."""
    reason = str(error).strip().splitlines() or [type(error).__name__]
    if importlib.util.find_spec(PACKAGE) is None:
        raise UnsupportedError(
            f"{path}: Keras {version(path)} wrote it, and Keras 3 does not open it: what does is brought by"
            f" `pip install --no-deps {PACKAGE}` ({reason[0][:LONGEST]})"
        ) from error
    return importlib.import_module(PACKAGE).models.load_model(called, compile=False, safe_mode=not is_trusted())


def _attribute(path: Path, name: str) -> str | None:
    import h5py

    with h5py.File(path) as file:
        value = file.attrs.get(name)
    return value.decode() if isinstance(value, bytes) else value


def _has_code(config: Any) -> bool:
    """Whether a layer of a configuration is a function that was stored as code, and not by its name."""
    if isinstance(config, list):
        return any(map(_has_code, config))
    if not isinstance(config, dict):
        return False
    return (
        config.get("function_type") == "lambda"
        or config.get("class_name") == "__lambda__"
        or any(map(_has_code, config.values()))
    )
