"""The hub: what every frontend makes and every backend takes."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from google.protobuf.message import EncodeError

from onward.errors import InvalidModelError, OnwardError
from onward.hub import structure
from onward.hub.collector import no_garbage_collection
from onward.hub.files import opened, parse
from onward.hub.large_tensors import Held, Holder, held_by, held_in
from onward.hub.oddities import told
from onward.hub.read import Reader
from onward.hub.save import save_with_data
from onward.hub.stored import Source
from onward.hub.tensors import SparseTensor, Store
from onward.hub.weights import Weights
from onward.hub.wire import join
from onward.hub.wording import quote
from onward.hub.write import Writer, copied
from onward.looks import shown
from onward.plugins.find import load_for
from onward.writing import new_file

LARGEST_FILE = 2**31 - 2**20
"""Bytes that one protobuf file can hold, with some room to spare; a larger model needs external data."""
LARGEST_MESSAGE = 2**31
_TOO_LARGE = "too large for one file, which protobuf limits to 2 GB: save it with external data"


@dataclass(eq=False, repr=False)
class Model:
    """An ONNX model in memory: the graph as onnx-ir holds it, and what onnx-ir cannot hold."""

    ir: ir.Model
    training_info: list[onnx.TrainingInfoProto] = field(default_factory=list)
    path: pathlib.Path | None = None
    """Where it was loaded from."""
    ir_version: int = 0
    """The IR version of its file, below which it is not saved; 0 for a model made here."""
    data_files: list[pathlib.Path] = field(default_factory=list)
    """The files beside its own from which weights were mapped."""
    held: Held = field(default_factory=dict)
    """Large tensors that messages of `training_info` refer to."""

    def __repr__(self) -> str:
        return shown("model_words", self)

    def _repr_html_(self) -> str:
        return shown("model_html", self)

    @property
    def name(self) -> str:
        """The file's stem, or the graph's name for a model that has no file."""
        return self.path.stem if self.path else self.ir.graph.name or "model"

    @property
    def opset(self) -> dict[str, int]:
        """Domain to version; the default domain is ''."""
        return dict(self.ir.opset_imports)

    def copy(self) -> Model:
        """Another model of its own, which shares nothing with this one but the tensors."""
        infos = []
        for info in self.training_info:
            infos.append(onnx.TrainingInfoProto())
            infos[-1].CopyFrom(info)
        return Model(copied(self.ir), infos, self.path, self.ir_version, list(self.data_files), dict(self.held))

    def validate(self) -> None:
        """Raise `InvalidModelError` unless names are unique, and values are produced before they are used."""
        structure.check(self.ir)

    def to_proto(self) -> onnx.ModelProto:
        """The model as protobuf, its weights embedded."""
        return self._write(Writer())

    def outline(self) -> onnx.ModelProto:
        """The model as protobuf, without the numbers of its weights."""
        return self._write(Writer(lambda tensor, proto: True))

    def _write(self, writer: Writer) -> onnx.ModelProto:
        with no_garbage_collection():
            proto = writer.model(self.ir, max(self.ir_version, 7 if self.training_info else 0))
            writer.training(proto.training_info, self.training_info, self.held)
        return proto

    def save(self, path: str | os.PathLike[str], *, external_data: bool | None = None, durable: bool = False) -> None:
        """Write the model to `path`, or nothing at all; what was there is replaced as a whole.

        With `external_data` the weights go to a file beside it, `<path>.data`. Unless it is given, they do if
        they did in the file the model came from, or if they are too large for one file. `durable` waits until the
        file would outlast a power failure.
        """
        path = pathlib.Path(path)
        large = self.nbytes > LARGEST_FILE
        if external_data is None:
            external_data = bool(self.data_files) or large
        elif large and not external_data:
            raise OnwardError(f"{path}: {_TOO_LARGE}")
        if external_data:
            save_with_data(path, self._message, durable)
        else:
            held: Held = {}
            with new_file(path, durable=durable) as file:
                file.writelines(self._message(Holder(held), held))

    def _message(self, store: Store, held: Held | None = None) -> list[bytes | memoryview]:
        """What is written to a file; `held` are the tensors that the store has put aside."""
        pieces = join(_serialized(self._write(Writer(store))), held or {})
        if sum(map(len, pieces)) >= LARGEST_MESSAGE:
            raise OnwardError(_TOO_LARGE)
        return pieces

    @property
    def nbytes(self) -> int:
        """Bytes of all weights, wherever they are in the graph, and of the state of training."""
        total = 0
        for graph in self.ir.graphs():
            tensors = [value.const_value for value in graph.initializers.values()]
            for node in graph:
                tensors += [a.value for a in node.attributes.values() if a.type is ir.AttributeType.TENSOR]
            dense = [t for t in tensors if t is not None and not isinstance(t, ir.StringTensor | SparseTensor)]
            total += sum(tensor.nbytes for tensor in dense)
        trained = (held_by(proto, self.held) for proto in held_in(self.training_info))
        return total + sum(tensor.nbytes for tensor in trained if tensor is not None)


def load(source: str | os.PathLike[str] | bytes | onnx.ModelProto | Model) -> Model:
    """Read a model from a file, from bytes, or from protobuf; weights in external files are mapped.

    Those inside a file of a megabyte or more stay there until they are asked for: it may be replaced or deleted
    meanwhile, but when it was written to, they are refused.

    Raises `InvalidModelError` with one line that names the problem. Nothing in the file is ever executed.

    >>> import onward
    >>> onward.load("examples/digits/digits.onnx").opset
    {'': 20}
    """
    if isinstance(source, Model):
        return source
    label = _label(source)
    try:
        with told(label):
            return _opened(source)
    except OnwardError as error:
        raise type(error)(f"{label}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise InvalidModelError(f"{label}: it is too deep or too large to read") from error


def _label(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> str:
    if isinstance(source, onnx.ModelProto | bytes | bytearray | memoryview):
        return "the model given"
    path = os.fspath(source)
    return path if path.isprintable() else quote(path)


def _opened(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Model:
    if isinstance(source, onnx.ModelProto):
        return _read(Source(_serialized(source)))
    if isinstance(source, bytes | bytearray | memoryview):
        return _read(Source(source))
    path = pathlib.Path(source)
    with opened(path) as file:
        return _read(file, path)


def _read(source: Source, path: pathlib.Path | None = None) -> Model:
    proto = parse(source.buffer)
    weights = Weights(path, source)
    reader = Reader(weights)
    with no_garbage_collection():
        model = reader.model(proto)
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    for info in proto.training_info:
        graphs += reader.training(info, model.graph)
    if not reader.in_order:
        for graph in graphs:
            structure.sort(graph)
    structure.check(model)
    load_for([*model.opset_imports, *(d for function in model.functions.values() for d in function.opset_imports)])
    return Model(model, list(proto.training_info), path, proto.ir_version, weights.files, weights.held)


def _serialized(proto: onnx.ModelProto) -> bytes:
    try:
        return bytes(proto.SerializeToString())
    except (EncodeError, ValueError) as error:
        raise OnwardError(_TOO_LARGE) from error
