"""Inputs given by the user.

| given                                        | is taken as                                                          |
|----------------------------------------------|----------------------------------------------------------------------|
| a dictionary of arrays, or a list of such    | a set each                                                           |
| `.npz`                                       | one set; arrays by the names of inputs, else by their order          |
| `.npy`, `.pb`                                | the input of a model that has one                                    |
| an image                                     | the image input of a model that has one, see `images`                |
| a folder of `test_data_set_*`, or one itself | `input_k.pb` and, to compare with, `output_k.pb`, as ONNX ships them |
| a folder of `.npy` files named as the inputs | one set                                                              |
| any other folder of `.npz`, `.npy`, images   | a set each, in the order of their names                              |

Files are only read as data: arrays of Python objects, which would have to be unpickled, are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from onward.errors import InvalidDataError
from onward.gate import ordinary
from onward.gate.arrays import read_npy, read_npz
from onward.graph.slots import MAP, OPTIONAL, SEQUENCE, Slot, containers
from onward.hub.wording import quote
from onward.model import Model
from onward.runners.calls import Inputs, Outputs
from onward.verification.data.images import EXTENSIONS, image_input, read_image
from onward.verification.data.linked_sizes import Array

KNOWN = "npz, npy, pb, images (png, jpg, …), or folders of test_data_set_*/input_k.pb"


@dataclass(frozen=True)
class DataSet:
    """What a model is fed."""

    label: str
    """'random, batch=2, seq=12', 'test_data_set_0'."""
    inputs: Inputs
    expected: Outputs | None = None
    """The outputs that came with the inputs."""


def read(
    given: Any, slots: Sequence[Slot], model: Model | None = None, dims: Mapping[str, int] | None = None
) -> Iterator[DataSet]:
    """The sets that the user gave, checked against what the model takes.

    `model` is needed for expected outputs, and `dims` are sizes for images where the model leaves them open.
    """
    if isinstance(given, str) and not given:
        raise InvalidDataError("the path of the inputs is empty")
    if isinstance(given, str | os.PathLike):
        yield from Reader(slots, model, dims or {}).path(Path(given))
    elif isinstance(given, Mapping):
        yield DataSet("given", checked(given, slots, "the inputs given"))
    elif isinstance(given, Sequence):
        if not given:
            raise InvalidDataError("the list of inputs is empty")
        for number, item in enumerate(given):
            if isinstance(item, str | os.PathLike):
                yield from Reader(slots, model, dims or {}).path(Path(item))
            elif isinstance(item, Mapping):
                yield DataSet(f"given {number}", checked(item, slots, f"set {number} of the inputs given"))
            else:
                raise InvalidDataError(f"set {number} of the inputs given is {type(item).__name__}, not arrays by name")
    else:
        raise InvalidDataError(f"inputs are arrays by name, a list of such, or a path; got {type(given).__name__}")


def read_unchecked(given: Any) -> Iterator[DataSet]:
    """Sets for a model that does not say which inputs it takes: arrays by name, as they are."""
    items = given if isinstance(given, list | tuple) else [given]
    for number, item in enumerate(items):
        if isinstance(item, Mapping):
            yield DataSet(f"given {number}" if len(items) > 1 else "given", dict(item))
        elif isinstance(item, str | os.PathLike) and Path(item).suffix.lower() == ".npz":
            yield DataSet(str(item), dict(read_npz(Path(item))))
        else:
            raise InvalidDataError("the model does not say which inputs it takes: give arrays by name, or an npz")


def checked(given: Mapping[str, Any], slots: Sequence[Slot], where: str) -> Inputs:
    """The inputs in the model's order; one clear error unless names, dtypes and shapes are the model's."""
    names = [slot.name for slot in slots]
    if unknown := [name for name in given if name not in names]:
        raise InvalidDataError(f"{where}: there is no input {quote(unknown[0])}; the model takes {_takes(slots)}")
    made: Inputs = {}
    for slot in slots:
        if slot.name in given:
            made[slot.name] = _checked(
                given[slot.name], slot, slot.containers, f"{where}: the input {quote(slot.name)}"
            )
        elif OPTIONAL in slot.containers[:1]:
            made[slot.name] = None
        else:
            raise InvalidDataError(f"{where}: nothing is given for {quote(slot.name)}; the model takes {_takes(slots)}")
    return made


def _takes(slots: Sequence[Slot]) -> str:
    return ", ".join(f"{quote(slot.name)} ({slot.spelled})" for slot in slots) or "no inputs"


def _checked(value: Any, slot: Slot, containers: tuple[str, ...], where: str) -> Any:
    if containers[:1] == (OPTIONAL,):
        return None if value is None else _checked(value, slot, containers[1:], where)
    if containers[:1] == (SEQUENCE,):
        if not isinstance(value, list | tuple):
            raise InvalidDataError(f"{where} is a {slot.spelled}, but {type(value).__name__} was found")
        return [_checked(item, slot, containers[1:], where) for item in value]
    if containers[:1] == (MAP,):
        if not isinstance(value, Mapping):
            raise InvalidDataError(f"{where} is a {slot.spelled}, but {type(value).__name__} was found")
        return dict(value)
    return _array(value, slot, where)


def _array(value: Any, slot: Slot, where: str) -> Array:
    if value is None or isinstance(value, Mapping):
        raise InvalidDataError(f"{where} is {slot.spelled}, but {type(value).__name__} was found")
    array = _typed(value, slot)
    if array is None:
        found = value if isinstance(value, np.ndarray | np.generic) else np.asarray(value, dtype=object)
        what = "something else" if found.dtype.kind == "O" else f"{found.dtype} {list(found.shape)}"
        raise InvalidDataError(f"{where} is {slot.spelled}, but {what} was found")
    pairs = list(zip(array.shape, slot.dims, strict=False))
    fits = len(slot.dims) == array.ndim and all(size == dim for size, dim in pairs if isinstance(dim, int))
    if not fits and slot.value.shape is not None:
        raise InvalidDataError(f"{where} is {slot.spelled}, but the shape {list(array.shape)} was found")
    return array


def _typed(value: Any, slot: Slot) -> Array | None:
    """The value as an array of the declared dtype: nothing is converted that has a dtype of its own."""
    if slot.dtype == ir.DataType.STRING:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            return array if all(isinstance(item, str) for item in array.reshape(-1)) else None
        return array.astype(str).astype(object) if array.dtype.kind in "UT" else None
    wanted = slot.dtype.numpy()
    if not isinstance(value, np.ndarray | np.generic):
        try:
            return np.asarray(value, dtype=wanted)
        except (TypeError, ValueError, OverflowError):
            return None
    array = np.asarray(value)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)  # numpy writes bfloat16 and its like as bytes without a name
    return array if array.dtype == wanted else None


@dataclass(frozen=True)
class Reader:
    """Reads files for a model."""

    slots: Sequence[Slot]
    model: Model | None
    dims: Mapping[str, int]

    def path(self, path: Path) -> Iterator[DataSet]:
        if ordinary(path, InvalidDataError).is_dir():
            yield from self._folder(path)
        else:
            yield self._file(path, str(path))

    def _file(self, path: Path, label: str) -> DataSet:
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return DataSet(label, checked(self._by_name(read_npz(path), path), self.slots, str(path)))
        if suffix in (".npy", ".pb"):
            slot = self._only(path)
            value = read_npy(path) if suffix == ".npy" else read_pb(path, slot.containers)
            return DataSet(label, checked({slot.name: value}, self.slots, str(path)))
        if suffix in EXTENSIONS:
            slot = image_input(self.slots, path)
            return DataSet(label, checked({slot.name: read_image(path, slot, self.dims)}, self.slots, str(path)))
        raise InvalidDataError(f"{path}: files named {suffix or 'so'!r} cannot be read; give {KNOWN}")

    def _only(self, path: Path) -> Slot:
        required = [slot for slot in self.slots if OPTIONAL not in slot.containers[:1]] or list(self.slots)
        if len(required) != 1:
            raise InvalidDataError(
                f"{path}: it holds one array, but the model takes {_takes(self.slots)}; give them by name in an npz"
            )
        return required[0]

    def _by_name(self, arrays: dict[str, Array], path: Path) -> dict[str, Array]:
        """Under the names of inputs: as they are, or, where none is one, by their order."""
        names = [slot.name for slot in self.slots]
        if any(name in names for name in arrays):
            return arrays
        if len(arrays) != len(names):
            found = ", ".join(map(quote, arrays)) or "nothing"
            raise InvalidDataError(f"{path}: it holds {found}, but the model takes {_takes(self.slots)}")
        return dict(zip(names, arrays.values(), strict=True))

    def _folder(self, path: Path) -> Iterator[DataSet]:
        if sets := sorted((p for p in path.glob("test_data_set_*") if p.is_dir()), key=_natural):
            for folder in sets:
                yield self._protobuf(folder, folder.name)
            return
        if any(path.glob("input_*.pb")):
            yield self._protobuf(path, path.name or str(path))
            return
        files = sorted((p for p in path.iterdir() if p.is_file() and not p.name.startswith(".")), key=_natural)
        arrays = {p.stem: p for p in files if p.suffix.lower() == ".npy"}
        if any(slot.name in arrays for slot in self.slots):
            named = {name: read_npy(file) for name, file in arrays.items()}
            yield DataSet(path.name or str(path), checked(named, self.slots, str(path)))
            return
        known = [p for p in files if p.suffix.lower() in (".npz", ".npy", *EXTENSIONS)]
        if not known:
            raise InvalidDataError(f"{path}: it holds no data that can be read; give {KNOWN}")
        for file in known:
            yield self._file(file, file.name)

    def _protobuf(self, folder: Path, label: str) -> DataSet:
        files = _numbered(folder, "input")
        made: dict[str, Any] = {}
        if extra := [number for number in files if number >= len(self.slots)]:
            raise InvalidDataError(f"{files[extra[0]]}: the model takes only {_takes(self.slots)}")
        for number, slot in enumerate(self.slots):
            if number in files:
                made[slot.name] = read_pb(files[number], slot.containers)
        expected: dict[str, Any] | None = None
        outputs = _numbered(folder, "output")
        if outputs and self.model is not None:
            values = self.model.ir.graph.outputs
            if extra := [number for number in outputs if number >= len(values)]:
                raise InvalidDataError(f"{outputs[extra[0]]}: the model has only {len(values)} outputs")
            expected = {
                value.name or "": read_pb(outputs[number], _containers(value))
                for number, value in enumerate(values)
                if number in outputs
            }
        return DataSet(label, checked(made, self.slots, str(folder)), expected)


def _containers(value: ir.Value) -> tuple[str, ...]:
    return containers(value.type)[0]


def _natural(path: Path) -> list[Any]:
    """Numbers in names in the order of their size."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _numbered(folder: Path, kind: str) -> dict[int, Path]:
    names = {path: re.fullmatch(rf"{kind}_(\d+)\.pb", path.name) for path in folder.iterdir()}
    return {int(match.group(1)): path for path, match in names.items() if match}


def read_pb(path: Path, wrapped_in: tuple[str, ...]) -> Any:
    """The value in a file of ONNX's test data, which does not say itself of which type it is."""
    kind, convert = {
        SEQUENCE: (onnx.SequenceProto, numpy_helper.to_list),
        OPTIONAL: (onnx.OptionalProto, numpy_helper.to_optional),
        MAP: (onnx.MapProto, numpy_helper.to_dict),
    }.get(wrapped_in[0] if wrapped_in else "", (onnx.TensorProto, numpy_helper.to_array))
    try:
        message = kind.FromString(ordinary(path, InvalidDataError).read_bytes())
        if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in _tensors(message)):
            raise InvalidDataError(f"{path}: its data is in another file, which is not opened")
        value = convert(message)
    except OSError as error:
        raise InvalidDataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (DecodeError, ValueError, TypeError, KeyError, MemoryError) as error:
        raise InvalidDataError(f"{path}: it is damaged, or is not a {kind.__name__} of ONNX: {error}") from error
    return np.asarray(value) if kind is onnx.TensorProto else value


def _tensors(message: Any) -> Iterator[onnx.TensorProto]:
    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for item in value if field.is_repeated else [value]:
                yield from _tensors(item)
