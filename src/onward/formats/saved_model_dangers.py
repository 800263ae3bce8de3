"""What of a SavedModel would do more than compute when it is loaded or run, by its protobuf alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from onward.errors import InvalidModelError
from onward.formats import tensorflow_ops
from onward.formats.tensorflow_ops import SAVERS, TEXT_TABLES, reached

CHUNKED = "saved_model.cpb"
"""What some versions of TensorFlow split a large model into."""
ASSETS = "saved_model_assets"
PARTS = ("variables", "assets", "assets.extra")
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
LOCAL = "local_variables"
"""The collection of what TensorFlow 1 initialises when it has loaded a model, beside nodes that others name."""


def parsed(path: Path) -> Any:
    """The protobuf of a folder."""
    from google.protobuf import message, text_format
    from tensorflow.core.protobuf import saved_model_pb2

    binary, words = path / "saved_model.pb", path / "saved_model.pbtxt"
    found = saved_model_pb2.SavedModel()
    try:
        if binary.is_file():
            found.ParseFromString(binary.read_bytes())
        else:
            text_format.Parse(words.read_text(encoding="utf-8"), found)
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{path}: the SavedModel is damaged or cut off: {str(error)[:200]}") from error
    if not found.meta_graphs:
        raise InvalidModelError(f"{path}: the SavedModel has no graph")
    return found


def dangers(path: Path) -> Iterator[str]:
    if (path / CHUNKED).exists():
        yield f"{CHUNKED} in it is a form of the model that is not looked at"
    yield from _links(path)
    for graph in parsed(path).meta_graphs:
        yield from _assets(graph)
        yield from _Graph(graph).dangers()


def _links(path: Path) -> Iterator[str]:
    """Links that lead out of the folder, but for those of a cache that keeps contents beside its snapshots."""
    root = path.resolve()
    homes = [root, root.parent.parent / "blobs"] if root.parent.name == "snapshots" else [root]
    for part in PARTS:
        for file in sorted((path / part).rglob("*")):
            if file.is_symlink() and not any(file.resolve().is_relative_to(home) for home in homes):
                yield f"{file.relative_to(path)} in it is a link out of it"


def _asset_files(graph: Any) -> list[Any]:
    """Where TensorFlow 2 lists them, and where TensorFlow 1 does."""
    from tensorflow.core.protobuf.meta_graph_pb2 import AssetFileDef

    found = list(graph.asset_file_def)
    for packed in graph.collection_def[ASSETS].any_list.value:
        asset = AssetFileDef()
        packed.Unpack(asset)
        found.append(asset)
    return found


def _assets(graph: Any) -> Iterator[str]:
    for asset in _asset_files(graph):
        if asset.filename.startswith("/") or ".." in Path(asset.filename).parts:
            yield f"the asset {asset.filename[:80]!r} of it is outside of it"


class _Graph:
    """A graph, with its functions; TensorFlow 2 runs functions that objects have, TensorFlow 1 the graph itself."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._library = {function.signature.name: function for function in graph.graph_def.library.function}
        self._objects = graph.object_graph_def
        self._nodes = {node.name: node for node in graph.graph_def.node}
        self._own = {_node(asset.tensor_info.name) for asset in _asset_files(graph)}
        """The nodes that hold names of the model's own files."""

    def dangers(self) -> Iterator[str]:
        """Checkpoints may be written and read by what is not run, and tables be filled from the model's own files."""
        everything = [*self._graph.graph_def.node, *(n for f in self._library.values() for n in f.node_def)]
        yield from tensorflow_ops.dangers(everything, SAVERS | TEXT_TABLES)
        yield from tensorflow_ops.dangers(self._run(), TEXT_TABLES, self._restoring())
        for function in self._library.values():
            for node in function.node_def:
                if node.op in TEXT_TABLES and not self._from_asset(function, node):
                    yield f"the node {node.name[:80]!r} in it reads a file that is none of its assets"
        for node in self._nodes.values():
            if node.op in TEXT_TABLES and _file(node) not in self._own:
                yield f"the node {node.name[:80]!r} in it reads a file that is none of its assets"

    def _run(self) -> list[Any]:
        """The nodes that are run by loading, or by a signature."""
        if self._objects.nodes:
            called = [self._library[name] for name in self._objects.concrete_functions if name in self._library]
            return reached([node for function in called for node in function.node_def], self._library)
        return reached(self._needed(self._ends()), self._library)

    def _ends(self) -> list[str]:
        """Results, and whatever loading may run."""
        from tensorflow.core.framework.variable_pb2 import VariableDef

        signatures = self._graph.signature_def.values()
        infos = [info for signature in signatures for info in (*signature.outputs.values(), *signature.inputs.values())]
        names = [info.name for info in infos] + [part.name for info in infos for part in _parts(info)]
        for collection in self._graph.collection_def.values():
            names += collection.node_list.value
        for variable in self._graph.collection_def[LOCAL].bytes_list.value:
            names.append(VariableDef.FromString(variable).initializer_name)
        return [*names, self._graph.saver_def.restore_op_name]

    def _needed(self, ends: Sequence[str]) -> list[Any]:
        waiting, found = [_node(name) for name in ends], dict[str, Any]()
        while waiting:
            name = waiting.pop()
            if name in self._nodes and name not in found:
                found[name] = self._nodes[name]
                waiting += [_node(source) for source in self._nodes[name].input]
        return list(found.values())

    def _restoring(self) -> frozenset[str]:
        """The nodes of TensorFlow 1 that read the checkpoint whose name the loader gives."""
        given = _node(self._graph.saver_def.filename_tensor_name)
        return frozenset(
            node.name
            for node in self._nodes.values()
            if node.op == "RestoreV2" and node.input and _node(node.input[0]) == given
        )

    def _from_asset(self, function: Any, node: Any) -> bool:
        """Whether the file that a function fills a table from is an asset that the function is bound to."""
        name = function.signature.name
        if not self._objects.nodes:
            return self._is_own(_file(node), function, frozenset())
        arguments = [argument.name for argument in function.signature.input_arg]
        bound = list(self._objects.concrete_functions[name].bound_inputs) if self._is_top(name) else []
        source = _file(node)
        if source not in arguments[len(arguments) - len(bound) :]:
            return False
        number = bound[arguments.index(source) - (len(arguments) - len(bound))]
        return 0 <= number < len(self._objects.nodes) and bool(self._objects.nodes[number].HasField("asset"))

    def _is_own(self, source: str, function: Any, inside: frozenset[str]) -> bool:
        """Whether every call of a function of TensorFlow 1 gives it one of the model's own files as this argument."""
        name = function.signature.name
        arguments = [argument.name for argument in function.signature.input_arg]
        if source not in arguments or name in inside:
            return False
        place = arguments.index(source)
        homes = [(None, self._nodes.values()), *((other, other.node_def) for other in self._library.values())]
        for home, nodes in homes:
            for node in nodes:
                if name not in tensorflow_ops.functions_of([node]):
                    continue
                if node.op not in CALLS or node.attr["f"].func.name != name or place >= len(node.input):
                    return False
                given = _node(node.input[place])
                if not (given in self._own if home is None else self._is_own(given, home, inside | {name})):
                    return False
        return True

    def _is_top(self, name: str) -> bool:
        """Whether no other function calls it, with files of its own."""
        called = tensorflow_ops.functions_of(node for f in self._library.values() for node in f.node_def)
        return name in self._objects.concrete_functions and name not in called


def _file(node: Any) -> str:
    """What names the file that a table is filled from."""
    return _node(node.input[1]) if len(node.input) > 1 else ""


def _parts(info: Any) -> list[Any]:
    """The tensors that one of a signature's consists of."""
    return list(info.composite_tensor.components)


def _node(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]
