"""A model's file and the file of its weights take the place of others together."""

from __future__ import annotations

import glob
import os
import pathlib
import secrets
import shutil
from collections.abc import Callable, Iterable
from typing import BinaryIO

import onnx
import onnx_ir as ir

from onward.hub.wording import write_map
from onward.writing import keep_mode, locked, new_file, real

Message = Iterable[bytes | memoryview]


class DataFile:
    """A file of external data: takes the tensors worth it, in the order they are written."""

    SMALLEST = 4096
    """Bytes. Also what offsets are multiples of, as the format asks, so that any tensor can be mapped."""

    def __init__(self, file: BinaryIO, location: str) -> None:
        self.file, self.location = file, location
        self._spans: list[tuple[int, int]] = []

    def __call__(self, tensor: ir.TensorProtocol, proto: onnx.TensorProto) -> bool:
        if tensor.nbytes < self.SMALLEST:
            return False
        offset = -(-self.file.tell() // self.SMALLEST) * self.SMALLEST
        self.file.seek(offset)
        tensor.tofile(self.file)  # type: ignore[attr-defined]
        self._spans.append((offset, self.file.tell() - offset))
        self._refer(proto, *self._spans[-1])
        return True

    def _refer(self, proto: onnx.TensorProto, offset: int, length: int) -> None:
        proto.data_location = onnx.TensorProto.EXTERNAL
        write_map(proto.external_data, {"location": self.location, "offset": str(offset), "length": str(length)})

    def renamed(self, location: str) -> DataFile:
        """For the same model once more: its tensors are there already, in a file that is now called so."""
        return _Written(self, location)


class _Written(DataFile):
    def __init__(self, of: DataFile, location: str) -> None:
        super().__init__(of.file, location)
        self._left = iter(of._spans)

    def __call__(self, tensor: ir.TensorProtocol, proto: onnx.TensorProto) -> bool:
        if tensor.nbytes < self.SMALLEST:
            return False
        self._refer(proto, *next(self._left))
        return True


def save_with_data(path: pathlib.Path, message: Callable[[DataFile], Message], durable: bool = False) -> None:
    """Write a model to `path` and its weights to `<path>.data`; `message` gives the former and writes the latter.

    Where both are there, the weights go to a file of another name at first, which the model is made to refer to: at no
    time does a model refer to the weights of another.
    """
    data_path = path.with_name(path.name + ".data")
    if not (path.exists() and data_path.exists()):
        with new_file(path, durable=durable) as file, new_file(data_path, durable=durable) as data_file:
            file.writelines(message(DataFile(data_file, data_path.name)))
            file.flush()
        return
    with locked(path.absolute().parent, wait=True), new_file(path, durable=durable) as last:
        interim = _fresh(path, path)
        try:
            with new_file(path, durable=durable) as first, interim.open("xb") as data_file:
                store = DataFile(data_file, interim.name)
                first.writelines(message(store))
                last.writelines(message(store.renamed(data_path.name)))
                for file in (data_file, last):
                    file.flush()
                    if durable:
                        os.fsync(file.fileno())
                keep_mode(data_path, interim)
        except BaseException:
            if interim.name.encode() not in path.read_bytes():
                interim.unlink(missing_ok=True)
            raise
        _also_as(interim, data_path, path)
    for left in path.parent.glob(f"{glob.escape(path.name)}.{'[0-9a-f]' * 16}.data"):
        left.unlink(missing_ok=True)


def _fresh(path: pathlib.Path, beside: pathlib.Path) -> pathlib.Path:
    return beside.with_name(f"{path.name}.{secrets.token_hex(8)}.data")


def _also_as(data: pathlib.Path, data_path: pathlib.Path, path: pathlib.Path) -> None:
    """The same data under two names, until the model refers to the second."""
    second = real(data_path)
    link = _fresh(path, second)
    try:
        try:
            os.link(data, link)
        except OSError:  # a file system without links, or another one
            shutil.copyfile(data, link)
        link.replace(second)
    finally:
        link.unlink(missing_ok=True)
