"""A graph of TensorFlow 1 in one file, variables frozen: GraphDef, as a .pb or in words as a .pbtxt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.backends.tensorflow.remarks import without_remarks
from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats import Kind, Opened, register, tensorflow_ops
from onward.formats.checkpoint import Checkpoint
from onward.formats.saved_model import import_tensorflow, open_function
from onward.gate import harmless, need_trust, opens

FIRST_NODE = re.compile(
    rb"\n[\x00-\xff]{1,5}?\n([\x01-\x7f]|[\x80-\xff]\x01)(?P<name>[\w.][\w.\\/>-]*)\x12[\x01-\x7f][A-Z_]\w+"
)
"""How a GraphDef begins: a field of a node, which begins with its name and the name of its op."""
FIRST_WORDS = re.compile(rb"(\s|#[^\n]*\n)*(node|versions|library)\s*:?\s*\{")
RESOURCE = 20
"""The number that TensorFlow has for the dtype of handles."""
META = ".meta"
"""The file with the graph, among those of a checkpoint of TensorFlow 1."""
Shape = Sequence[int | str | None]
Names = Sequence[str] | Mapping[str, Shape | None]
"""Tensors, maybe with their shapes."""
VARIABLES = {"VariableV2", "Variable", "VarHandleOp"}
SILENT = VARIABLES | {
    "Const",
    "Placeholder",
    "PlaceholderWithDefault",
    "NoOp",
    "Assert",
    "SaveV2",
    "RestoreV2",
    "Assign",
}
"""Ops that are no output of a model, even where nobody reads what they give."""


def recognise(path: Path) -> bool:
    """A .meta file is one of a checkpoint's, and has no other sign."""
    if not path.is_file():
        return False
    if path.suffix == META and path.with_suffix(".index").is_file():
        return True
    with path.open("rb") as file:
        head = file.read(4096)
    return bool(FIRST_NODE.match(head) or FIRST_WORDS.match(head))


def dangers(path: Path) -> Iterator[str]:
    """What the outputs need that are taken unless others are named."""
    whole = read(path)
    yield from _dangers(_only(whole, _ends(whole), path))


def _dangers(definition: Any) -> Iterator[str]:
    library = {function.signature.name: function for function in definition.library.function}
    return tensorflow_ops.dangers(tensorflow_ops.reached(definition.node, library))


@opens(dangers)
def open_graph(path: Path) -> Opened:
    return open_function(graph_function(path))


@opens(harmless)
def graph_function(
    path: Path,
    inputs: Names | None = None,
    outputs: Sequence[str] | None = None,
    checkpoint: Path | None = None,
) -> Any:
    """A graph as a function of TensorFlow, from tensors to tensors that are named as in the graph.

    Unless they are given, its inputs are the placeholders, and its outputs what nothing in the graph reads. Variables
    have the values of a checkpoint: the one given, or the one that a .meta file belongs to. What the outputs do not
    need is not loaded; what they need computes, or the file has to be trusted.
    """
    tf = import_tensorflow()
    whole = read(path)
    ends = list(outputs or _ends(whole))
    definition = _only(whole, ends, path)
    for danger in _dangers(definition):
        need_trust(path, danger)
    if isinstance(inputs, Mapping):
        _set_shapes(definition, inputs, path)
    _freeze(definition, path, checkpoint or (path.with_suffix("") if path.suffix == META else None))
    try:
        whole = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    except (ValueError, tf.errors.OpError) as error:
        raise InvalidModelError(f"{path}: TensorFlow does not take this graph: {_first_line(error)}") from error
    fetched = [_tensor(whole.graph, name, path) for name in ends]
    fed = [_tensor(whole.graph, name, path) for name in inputs or ()]
    more = _placeholders(whole.graph, fetched, fed)
    if inputs and more:
        raise OnwardError(f"{path}: the outputs need more than these inputs: {_listed([name_of(t) for t in more])}")
    fed = sorted([*fed, *more], key=name_of)  # as TensorFlow sorts what is given by name
    specs = {name_of(tensor): tf.TensorSpec(tensor.shape, tensor.dtype, name_of(tensor)) for tensor in fed}
    function = whole.prune(fed, {name_of(tensor): tensor for tensor in fetched}, input_signature=((), specs))
    function._arg_keywords, function._num_positional_args = list(specs), 0
    return function


def read(path: Path) -> Any:
    """The GraphDef of a file, without the devices that it was made for."""
    from google.protobuf import message, text_format

    v1 = import_tensorflow().compat.v1
    definition = v1.GraphDef()
    content = path.read_bytes()
    try:
        if path.suffix == META:
            definition = v1.MetaGraphDef.FromString(content).graph_def
        elif FIRST_WORDS.match(content):
            text_format.Parse(content.decode(), definition)
        else:
            definition.ParseFromString(content)
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{path}: the graph is damaged or cut off: {_first_line(error)}") from error
    for node in definition.node:
        node.device = ""
        node.attr.pop("_class", None)
    return definition


def _only(definition: Any, ends: Sequence[str], path: Path) -> Any:
    """The part of a graph that outputs depend on."""
    tf = import_tensorflow()
    if not ends:
        raise InvalidModelError(f"{path}: the graph has no outputs; name some")
    known = {node.name for node in definition.node}
    names = [name.split(":")[0] for name in ends]
    if unknown := [name for name in names if name not in known]:
        raise OnwardError(f"{path}: there is no tensor {unknown[0]!r} in the graph")
    with without_remarks():
        return tf.compat.v1.graph_util.extract_sub_graph(definition, names)


def _freeze(definition: Any, path: Path, checkpoint: Path | None) -> None:
    """Put constants where variables are, in place."""
    nodes = {node.name: node for node in definition.node if node.op in VARIABLES}
    if not nodes:
        return
    if checkpoint is None:
        raise UnsupportedError(
            f"{path}: its variables ({_listed(sorted(nodes))}) are not in the file: freeze it, or give a checkpoint"
        )
    shared = {name: node.attr["shared_name"].s.decode() for name, node in nodes.items() if node.op == "VarHandleOp"}
    names = {name: shared.get(name) or name for name in nodes}
    values = Checkpoint(checkpoint).by_names(list(names.values()))
    _read_at_once(definition, {name: nodes[name].attr["dtype"].type for name in shared})
    for name, node in nodes.items():
        node.op = "Const"
        _set_constant(node, values[names[name]])


def _read_at_once(definition: Any, handles: dict[str, int]) -> None:
    """Give on what variables hold, in place, where their handles, whose dtypes are given, were given on."""
    readers: dict[str, list[Any]] = {}
    for node in definition.node:
        if node.input:
            readers.setdefault(node.input[0].split(":")[0], []).append(node)
    waiting = list(handles.items())
    while waiting:
        name, dtype = waiting.pop()
        for node in readers.get(name, ()):
            if node.op == "ReadVariableOp":
                node.op = "Identity"
                del node.attr["dtype"]
                node.attr["T"].type = dtype
            elif node.op == "ResourceGather":
                _gather(definition, node)
            elif node.attr["T"].type == RESOURCE:
                node.attr["T"].type = dtype
                node.attr.pop("_output_shapes", None)
                waiting.append((node.name, dtype))


def _gather(definition: Any, node: Any) -> None:
    """A gather from a variable becomes a read and a gather."""
    read = definition.node.add(name=f"{node.name}/ReadVariableOp", op="Identity", input=node.input[:1])
    read.attr["T"].CopyFrom(node.attr["dtype"])
    axis = definition.node.add(name=f"{node.name}/axis", op="Const", input=[f"^{read.name}"])
    _set_constant(axis, int(node.attr["batch_dims"].i))
    made = type(node)(name=node.name, op="GatherV2", input=[read.name, node.input[1], axis.name, *node.input[2:]])
    for key, value in (
        ("Tparams", node.attr["dtype"]),
        ("Tindices", node.attr["Tindices"]),
        ("Taxis", axis.attr["dtype"]),
        ("batch_dims", node.attr["batch_dims"]),
    ):
        made.attr[key].CopyFrom(value)
    node.CopyFrom(made)


def _set_constant(node: Any, value: Any) -> None:
    tensor = import_tensorflow().make_tensor_proto(value)
    node.attr.clear()
    node.attr["value"].tensor.CopyFrom(tensor)
    node.attr["dtype"].type = tensor.dtype


def _set_shapes(definition: Any, shapes: Mapping[str, Shape | None], path: Path) -> None:
    """Say more of the shapes of placeholders than the graph does."""
    nodes = {node.name: node for node in definition.node if node.op == "Placeholder"}
    for name, shape in shapes.items():
        if shape is None:
            continue
        node = nodes.get(name.removesuffix(":0"))
        if node is None:
            raise OnwardError(f"{path}: {name!r} is not a placeholder, so its shape cannot be given")
        node.attr["shape"].shape.Clear()
        for size in shape:
            node.attr["shape"].shape.dim.add(size=size if isinstance(size, int) else -1)


def name_of(tensor: Any) -> str:
    """What is called `x:0` in TensorFlow is `x`."""
    return str(tensor.op.name if tensor.value_index == 0 else tensor.name)


def _tensor(graph: Any, name: str, path: Path) -> Any:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as error:
        raise OnwardError(f"{path}: there is no tensor {name!r} in the graph") from error


def _ends(definition: Any) -> list[str]:
    read = {name.removeprefix("^").split(":")[0] for node in definition.node for name in node.input}
    return [node.name for node in definition.node if node.op not in SILENT and node.name not in read]


def _placeholders(graph: Any, fetched: Sequence[Any], fed: Sequence[Any]) -> list[Any]:
    """Those that the outputs depend on, beyond what is fed, in the order of the graph."""
    found = {tensor.op for tensor in fed}
    waiting = [tensor.op for tensor in fetched if tensor.op not in found]
    found |= set(waiting)
    while waiting:
        operation = waiting.pop()
        for earlier in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if earlier not in found:
                found.add(earlier)
                waiting.append(earlier)
    given = {tensor.op for tensor in fed}
    order = [op for op in graph.get_operations() if op in found and op not in given]
    return [op.outputs[0] for op in order if op.type == "Placeholder"]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


register(Kind("TensorFlow graph", ("tensorflow",), recognise, open_graph, "a GraphDef, binary or in words"))
