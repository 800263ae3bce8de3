"""The hub: what every frontend makes and every backend takes."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from onward.errors import InvalidModelError


@dataclass
class Model:
    """An ONNX model in memory: the graph as onnx-ir holds it, and what onnx-ir cannot hold."""

    ir: ir.Model
    training_info: list[onnx.TrainingInfoProto] = field(default_factory=list)
    path: pathlib.Path | None = None

    @property
    def name(self) -> str:
        """The file's stem, or the graph's name for a model that has no file."""
        return self.path.stem if self.path else self.ir.graph.name or "model"

    @property
    def opset(self) -> dict[str, int]:
        """Domain to version; the default domain is ''."""
        return dict(self.ir.opset_imports)

    def to_proto(self) -> onnx.ModelProto:
        proto: onnx.ModelProto = ir.to_proto(self.ir)
        proto.training_info.extend(self.training_info)
        return proto

    def save(self, path: str | os.PathLike[str], *, external_data: bool | None = None) -> None:
        pathlib.Path(path).write_bytes(self.to_proto().SerializeToString())


def load(source: str | os.PathLike[str] | bytes | onnx.ModelProto | Model) -> Model:
    """Read a model from a file, from bytes, or from a protobuf."""
    if isinstance(source, Model):
        return source
    path = None
    if isinstance(source, onnx.ModelProto):
        proto = onnx.ModelProto()
        proto.CopyFrom(source)
    else:
        if not isinstance(source, bytes):
            path = pathlib.Path(source)
            try:
                source = path.read_bytes()
            except OSError as error:
                raise InvalidModelError(f"{path}: {error.strerror}") from error
        try:
            proto = onnx.ModelProto.FromString(source)
        except DecodeError as error:
            raise InvalidModelError(f"{path or 'the bytes given'}: not an ONNX model") from error
    training_info = list(proto.training_info)
    return Model(ir.from_proto(proto), training_info, path)
