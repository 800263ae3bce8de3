"""Checkpoints: all that a training run is, in one safetensors file that is replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onward.errors import InvalidModelError, OnwardError, WritingError
from onward.gate import ordinary
from onward.training.info.typed import instance
from onward.writing import new_file

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer

Array = np.ndarray[Any, np.dtype[Any]]
FORMAT = "onward.checkpoint.1"
T = TypeVar("T")
PARTS = ("parameters", "state", "buffers", "sums")


class CheckpointError(OnwardError):
    """A checkpoint cannot be written or read; the training in memory and older checkpoints are as they were."""


@dataclass(frozen=True)
class About:
    """What a checkpoint says beside its tensors."""

    format: str
    optimizer: str
    step: int
    accumulated: int
    lr: float
    seed: int
    progress: dict[str, Any]
    """Of the loop around the trainer."""


def save(
    path: str | os.PathLike[str],
    trainer: Trainer,
    progress: Mapping[str, Any] | None = None,
    more: Mapping[str, Array] | None = None,
) -> None:
    """Write the state of a trainer. `progress` (plain numbers and texts) and `more` arrays are for the loop around it.

    The file is complete on the disk before it takes the place of the last one.
    """
    path = Path(path)
    tensors = {f"{part}/{name}": array for part in PARTS for name, array in getattr(trainer, part).items()}
    tensors |= {f"more/{name}": array for name, array in (more or {}).items()}
    about = About(
        FORMAT,
        trainer.trainable.optimizer.name,
        trainer.steps,
        trainer.accumulated,
        trainer.lr,
        trainer.seed,
        dict(progress or {}),
    )
    try:
        with new_file(path, durable=True) as file:
            write(file, tensors, {"onward": json.dumps(asdict(about))})
    except WritingError as error:
        raise CheckpointError(
            f"{path}: the checkpoint of step {trainer.steps} {str(error).removeprefix(f'{path}: ')}; "
            + ("the one written before is as it was" if path.exists() else "make room, or choose another folder")
        ) from error


def load(path: str | os.PathLike[str], trainer: Trainer) -> tuple[dict[str, Any], dict[str, Array]]:
    """Bring a trainer to the state of a checkpoint; gives the `progress` and `more` that were saved with it.

    Nothing is changed unless all of the checkpoint fits.
    """
    path = Path(path)
    about, tensors = read(path)
    found: dict[str, dict[str, Array]] = {part: {} for part in (*PARTS, "more")}
    for key, array in tensors.items():
        part, _, name = key.partition("/")
        found.setdefault(part, {})[name] = array
    for part in PARTS:
        _check(path, part, found[part], getattr(trainer, part))
    for part in PARTS:
        for name, view in getattr(trainer, part).items():
            view[...] = found[part][name]
    trainer.steps, trainer.accumulated = about.step, about.accumulated
    trainer.lr, trainer.seed = about.lr, about.seed
    trainer.torn = False
    return about.progress, found["more"]


def read(path: str | os.PathLike[str]) -> tuple[About, dict[str, Array]]:
    """What a checkpoint says about itself, and its tensors."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(ordinary(Path(path), CheckpointError), framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("onward", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: this checkpoint cannot be read: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise CheckpointError(f"{path}: this safetensors file is not a checkpoint of a training run")
    made = described(path, About, about)
    if min(made.step, made.accumulated) < 0:
        raise CheckpointError(f"{path}: this checkpoint is damaged: it is of step {made.step}")
    return made, tensors


def described(path: str | os.PathLike[str], kind: type[T], given: Any) -> T:
    """What a checkpoint says, as a dataclass."""
    try:
        return instance(kind, given)
    except InvalidModelError as error:
        raise CheckpointError(f"{path}: this checkpoint is damaged: {error}") from error


def write(file: Any, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """The safetensors format, tensor by tensor: nothing is copied."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, array in tensors.items():
        start, end = end, end + array.nbytes
        if array.dtype.name not in _DTYPES:
            raise OnwardError(f"{name!r} is of {array.dtype}, which files of a training cannot hold")
        header[name] = {"dtype": _DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for array in tensors.values():
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _check(path: Path, part: str, found: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    if odd := sorted(found.keys() ^ wanted.keys()):
        lacks = "the checkpoint lacks it" if odd[0] in wanted else "the training lacks it"
        raise CheckpointError(f"{path}: it belongs to another training: {part} {odd[0]!r}: {lacks}")
    for name, array in wanted.items():
        if (found[name].shape, found[name].dtype) != (array.shape, array.dtype):
            raise CheckpointError(
                f"{path}: it belongs to another training: {part} {name!r} is"
                f" {found[name].dtype}{list(found[name].shape)} there, {array.dtype}{list(array.shape)} here"
            )


_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
