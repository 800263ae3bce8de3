"""A generated model as a .keras file, and its source beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onward.backends.emit.names import identifier
from onward.errors import OnwardError
from onward.gate import remember
from onward.gate.written import is_written
from onward.writing import edited

if TYPE_CHECKING:
    from onward.backends.keras.convert import KerasSource


def source_path(path: Path) -> Path:
    """Where the source of a .keras file is: `net_layers.py` beside `net.keras`, a module that can be imported."""
    return path.with_name(f"{identifier(path.stem, 'net')}_layers.py")


def file_names(path: Path) -> list[str]:
    """What is written for a .keras file, by name: that file, and its source."""
    return [path.name, source_path(path).name]


def check_path(path: Path, force: bool = False) -> None:
    """Refuse what Keras would not write, and to replace a file that is not ours unless that is forced."""
    if path.suffix != ".keras":
        raise OnwardError(f"{path}: the name of a Keras file ends with .keras")
    source = source_path(path)
    if not force and source.exists() and not is_written(source.read_bytes()):
        raise edited(source)


def write_keras(source: KerasSource, path: Path) -> Path:
    """Save a model that has been built, with its source beside it."""
    source.net.save(path)
    source_path(path).write_text(source.model, encoding="utf-8")
    remember(source.model)
    return path
