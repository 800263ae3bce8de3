"""The parts of a .pt2 file, read as data: a program, and tensors beside it."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.errors import InvalidModelError
from onward.formats.pt2.program import Program
from onward.gate.archive import archive
from onward.gate.files import readable

if TYPE_CHECKING:
    import torch

DAMAGED = "this exported program is damaged, or of another version of PyTorch"
PROGRAM, OLD_PROGRAM = "models/model.json", "serialized_exported_program.json"
"""Where the program is; PyTorch before 2.8 wrote the other."""
WEIGHTS, CONSTANTS = ("data/weights", "weights"), ("data/constants", "constants")
"""The folder of tensors, and what the names of lists of them end in."""
OLD_TENSORS = {"weights": "serialized_state_dict.pt", "constants": "serialized_constants.pt"}
KNOWN = re.compile(
    r"archive_format|archive_version|version|byteorder|\.data/(version|serialization_id|alignment)|extra/.*"
    r"|models/model\.json|data/weights/(model_weights_config\.json|model\.pt|weight_\d+)"
    r"|data/constants/(model_constants_config\.json|model\.pt|tensor_\d+)|data/sample_inputs/model\.pt"
    r"|serialized_(exported_program\.json|(state_dict|constants|example_inputs)\.pt)|extra_files/.*"
)
"""What is in a file of a program alone."""
COMPILED, OBJECTS = "data/aotinductor/", ("data/constants/custom_obj_", "data/constants/opaque_obj_")


class Parts:
    """The parts of an archive, by their names in its one folder; in old files, there is none."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        names = file.namelist()
        roots = {name.partition("/")[0] for name in names}
        if len(roots) != 1 and OLD_PROGRAM not in names:
            raise InvalidModelError("it has more than the one folder that PyTorch writes")
        self._root = "" if OLD_PROGRAM in names else f"{roots.pop()}/"
        self._names = {name.removeprefix(self._root) for name in names}

    def dangers(self) -> Iterator[str]:
        """What would be executed by PyTorch, if it opened the file as it is."""
        for name in sorted(self._names):
            if name.startswith(COMPILED):
                yield f"{name} in it is compiled code"
            elif name.startswith(OBJECTS):
                yield f"{name} in it is a pickled object"
            elif not KNOWN.fullmatch(name):
                yield f"{name[:80]!r} in it is no part of a program that PyTorch is known to write"
        yield from self._program.dangers
        for folder, kind in (WEIGHTS, CONSTANTS):
            for name, entry in self._listed(folder, kind).items():
                if entry["use_pickle"] is not False:
                    yield f"the tensor {name[:80]!r} in it is pickled"
                elif not KNOWN.fullmatch(f"{folder}/{entry['path_name']}"):
                    yield f"the tensor {name[:80]!r} in it is at {str(entry['path_name'])[:80]!r}"

    def program(self) -> torch.export.ExportedProgram:
        """The program, of which nothing has been found that would be executed."""
        from torch._export.serde.serialize import SerializedArtifact, deserialize

        weights: Any = self._tensors(*WEIGHTS)
        constants: Any = self._tensors(*CONSTANTS)  # PyTorch takes tensors as well as bytes
        return deserialize(SerializedArtifact(self._program.content, weights, constants, b""))

    @cached_property
    def _program(self) -> Program:
        return Program(self._read(OLD_PROGRAM if OLD_PROGRAM in self._names else PROGRAM))

    def _read(self, name: str) -> bytes:
        if name not in self._names:
            raise InvalidModelError(f"{name} is missing in it")
        return self._file.read(self._root + name)

    def _listed(self, folder: str, kind: str) -> dict[str, Any]:
        """The tensors that are bytes beside a list of what they are; empty where they are a pickle."""
        name = f"{folder}/model_{kind}_config.json"
        if name not in self._names:
            return {}
        config = json.loads(self._read(name))["config"]
        return {key: {"use_pickle": None, "path_name": ""} | entry for key, entry in config.items()}

    def _tensors(self, folder: str, kind: str) -> dict[str, torch.Tensor]:

        entries = self._listed(folder, kind)
        if not entries:
            old = next((name for name in (OLD_TENSORS[kind], f"{folder}/model.pt") if name in self._names), None)
            return {} if old is None else _unpickled(self._read(old))
        storages: dict[str, torch.Tensor] = {}
        found: dict[str, torch.Tensor] = {}
        for name, entry in entries.items():
            path = entry["path_name"]
            if path not in storages:
                storages[path] = _flat(self._read(f"{folder}/{path}"), entry["tensor_meta"])
            found[name] = _shaped(storages[path], entry)
        return found


def _flat(content: bytes, meta: dict[str, Any]) -> torch.Tensor:
    import torch
    from torch._export.serde.serialize import deserialize_scalar_type

    dtype = deserialize_scalar_type(meta["dtype"])
    return torch.frombuffer(bytearray(content), dtype=dtype) if content else torch.empty(0, dtype=dtype)


def _shaped(storage: torch.Tensor, entry: dict[str, Any]) -> torch.Tensor:
    """A tensor in a storage, which it may share with others."""
    import torch

    meta = entry["tensor_meta"]
    sizes, strides = [one["as_int"] for one in meta["sizes"]], [one["as_int"] for one in meta["strides"]]
    tensor = torch.as_strided(storage, sizes, strides, meta["storage_offset"]["as_int"])
    if (kind := meta["device"]["type"]) != "cpu":
        tensor = tensor.to(torch.device(kind, meta["device"].get("index") or 0))
    return torch.nn.Parameter(tensor, requires_grad=meta["requires_grad"]) if entry["is_param"] else tensor


def _unpickled(content: bytes) -> dict[str, torch.Tensor]:
    """As PyTorch before 2.9 wrote them; of a pickle only what makes tensors is opened."""
    import torch

    if not content:
        return {}
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        if any(part.compress_type != zipfile.ZIP_STORED for part in inner.infolist()):
            raise InvalidModelError("weights in it are compressed, which PyTorch does not write")
    found = torch.load(io.BytesIO(content), weights_only=True)
    if not isinstance(found, dict):
        raise InvalidModelError("its weights are not a dictionary")
    return found


@contextmanager
def parts_of(path: Path) -> Iterator[Parts]:
    with archive(path), readable(path, DAMAGED), zipfile.ZipFile(path) as file:
        yield Parts(file)
