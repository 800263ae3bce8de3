"""What a file of Keras would have executed, or read from elsewhere, when it is opened.

The whole configuration is walked before Keras sees it: every class and function that it names, wherever, has to be one
of `parts`. Keras' own safe mode looks only at some of them, and Keras 2 imports any module that a file names.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from onward.errors import InvalidModelError
from onward.formats.keras import parts
from onward.gate import is_written, ordinary
from onward.gate.archive import archive, is_archive

CONFIG, METADATA, WEIGHTS, ASSETS = "config.json", "metadata.json", "model.weights.h5", "assets/"
MODEL, COMPILED = "model_config", "training_config"
"""Of an HDF5 file: what the configurations of a model, and of how it was compiled, are in."""
COMPILED_PART = "compile_config"
"""Where the configuration of a .keras file says how the model was compiled."""
DAMAGED = (KeyError, ValueError, RecursionError, OSError, RuntimeError)
"""What the readers of JSON and HDF5 raise."""


def dangers_compiled(path: Path) -> Iterator[str]:
    """As `dangers`, of a file that is opened with its loss, metrics and optimizer."""
    return dangers(path, compiled=True)


def dangers(path: Path, reader: str = "keras", compiled: bool = False) -> Iterator[str]:
    """All that a file would do beside computing; `reader` is the package that opens it.

    How a model was compiled no reader looks at, unless it is opened `compiled`.
    """
    try:
        beside = sources_of(path) if reader == "keras" else []
        written = {source.stem for source in beside if is_written(source.read_bytes())}
        if foreign := [source.name for source in beside if source.stem not in written]:
            yield f"layers of it are defined in {', '.join(foreign)} beside it"
        for config in configs(path, compiled):
            for part in parts_in(config):
                if not (is_registered(part, reader) or _is_defined(part, written)):
                    yield from dangers_of_part(part)
        yield from _dangers_of_weights(path)
    except DAMAGED as error:
        raise InvalidModelError(f"{path}: it is damaged, or is not a model of Keras: {_reason(error)}") from error


def configs(path: Path, compiled: bool = False) -> list[Any]:
    """The configurations in a file: of the model and, if asked for, of how it was compiled."""
    if is_archive(path):
        with archive(path) as found:
            config = json.loads(found.read(CONFIG))
        if not compiled and isinstance(config, dict):
            config.pop(COMPILED_PART, None)
        return [config]
    return [json.loads(text) for name in (MODEL, COMPILED)[: 1 + compiled] if (text := attribute(path, name))]


def attribute(path: Path, name: str) -> str:
    """A text that an HDF5 file has in its root; empty where there is none."""
    import h5py

    with h5py.File(path, "r") as file:
        value = file.attrs.get(name, "")
    return value.decode() if isinstance(value, bytes) else str(value)


def parts_in(config: Any) -> Iterator[dict[str, Any]]:
    """Whatever names a class or a function, however deep."""
    waiting = [config]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if "class_name" in found or "vocabulary" in found:
                yield found
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


def dangers_of_part(part: dict[str, Any]) -> Iterator[str]:
    """What one part of a configuration would do; what it does is known of those of Keras alone."""
    if isinstance(part.get("vocabulary"), str):
        yield f"it reads its vocabulary from another file, {part['vocabulary']!r}"
    if "class_name" not in part:
        return
    name, inner = part["class_name"], part.get("config")
    if name in ("Lambda", "__lambda__"):
        yield "a Lambda layer of it holds code"
    elif name == "function":
        known = isinstance(inner, str) and inner in parts.FUNCTIONS
        if not known or not _is_own(part.get("module")) or part.get("registered_name") not in (None, inner):
            yield f"its function {inner!r} is not one of Keras that computes"
    elif not _is_class(part):
        origin = f" of {part['module']!r}" if part.get("module") else ""
        yield f"its part {name!r}{origin} is not one of Keras that computes"
    elif name in ("TFOpLambda", "SlicingOpLambda"):
        called = inner.get("function") if isinstance(inner, dict) else None
        if not isinstance(called, str) or not parts.OPS_OF_TENSORFLOW.fullmatch(called):
            yield f"it calls tf.{called}"


def _is_class(part: dict[str, Any]) -> bool:
    name, module = part["class_name"], part.get("module")
    if not isinstance(name, str):
        return False
    plain = name.removeprefix("Custom>")
    if part.get("registered_name") not in (None, name, f"Custom>{plain}"):
        return False
    if isinstance(module, str) and parts.OPS.fullmatch(module):
        return name.isidentifier()
    return _is_own(module) and (plain in parts.CLASSES or plain in parts.LOWERED)


def _is_own(module: Any) -> bool:
    return module is None or (isinstance(module, str) and parts.OWN.fullmatch(module) is not None)


def module_of(part: dict[str, Any]) -> str | None:
    """The module that a part is said to be of, if that is a name."""
    module = part.get("module")
    return module if isinstance(module, str) and module.isidentifier() else None


def is_registered(part: dict[str, Any], reader: str) -> bool:
    """Whether a program told Keras what this part is, before it opened the file; `reader` is the package it told."""
    if reader not in sys.modules or str(part.get("class_name", "__")).startswith("__"):
        return False
    by_value = part["class_name"] == "function"
    name = part.get("config") if by_value else part.get("registered_name", part["class_name"])
    return isinstance(name, str) and sys.modules[reader].saving.get_registered_object(name) is not None


def _is_defined(part: dict[str, Any], written: set[str]) -> bool:
    """Whether it is a class that a module beside the file registers, of those modules that Onward wrote."""
    name, registered = part.get("class_name"), part.get("registered_name")
    is_class = isinstance(name, str) and isinstance(registered, str) and registered.endswith(f">{name}")
    return is_class and not str(name).startswith("__") and module_of(part) in written


def sources_of(path: Path) -> list[Path]:
    """The modules beside a .keras file that define parts of it which nothing else does."""
    if not is_archive(path):
        return []
    unknown = [part for config in configs(path) for part in parts_in(config) if not is_registered(part, "keras")]
    names = sorted({name for part in unknown if (name := module_of(part))})
    beside = [path.absolute().parent / f"{name}.py" for name in names]
    return [ordinary(source) for source in beside if source.exists()]


def _dangers_of_weights(path: Path) -> Iterator[str]:
    if not is_archive(path):
        yield from _dangers_of_hdf5(path)
        return
    with archive(path) as found:
        for name in found.names:
            if name not in (CONFIG, METADATA, WEIGHTS) and not name.startswith(ASSETS):
                yield f"it holds {name!r}, which Keras does not write"
        if WEIGHTS in found.names:
            yield from _dangers_of_hdf5(io.BytesIO(found.read(WEIGHTS, whole=True)))


def _dangers_of_hdf5(source: Path | BinaryIO) -> Iterator[str]:
    """Links and datasets that lead to other files."""
    import h5py

    with h5py.File(source, "r") as file:
        waiting, seen = [file], set()
        while waiting:
            group = waiting.pop()
            place = h5py.h5o.get_info(group.id).addr
            if place in seen:
                continue
            seen.add(place)
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    yield f"its {name!r} is a link, which may lead to another file"
                    continue
                child = group[name]
                if isinstance(child, h5py.Group):
                    waiting.append(child)
                elif isinstance(child, h5py.Dataset) and (child.external or child.is_virtual):
                    yield f"its {name!r} is stored in another file"


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
