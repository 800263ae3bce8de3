"""A graph of TensorFlow 1 in one file, variables frozen: GraphDef, as a .pb or in words as a .pbtxt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.verification.artifacts import Kind, Opened, register
from onward.verification.artifacts.saved_model import import_tensorflow, open_function

FIRST_NODE = re.compile(
    rb"\n[\x00-\xff]{1,5}?\n([\x01-\x7f]|[\x80-\xff]\x01)(?P<name>[\w.][\w.\\/>-]*)\x12[\x01-\x7f][A-Z_]\w+"
)
"""How a GraphDef begins: a field of a node, which begins with its name and the name of its op."""
FIRST_WORDS = re.compile(rb"(\s|#[^\n]*\n)*(node|versions|library)\s*:?\s*\{")
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
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return bool(FIRST_NODE.match(head) or FIRST_WORDS.match(head))


def open_graph(path: Path) -> Opened:
    return open_function(graph_function(path))


def graph_function(path: Path, inputs: Names | None = None, outputs: Sequence[str] | None = None) -> Any:
    """A graph as a function of TensorFlow, from tensors to tensors that are named as in the graph.

    Unless they are given, its inputs are the placeholders, and its outputs what nothing in the graph reads.
    """
    tf = import_tensorflow()
    definition = read(path)
    if isinstance(inputs, Mapping):
        _set_shapes(definition, inputs, path)
    if held := sorted(node.name for node in definition.node if node.op in VARIABLES):
        raise UnsupportedError(
            f"{path}: its variables are not in the file ({_listed(held)}): freeze the graph, or convert the SavedModel"
        )
    try:
        whole = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
    except (ValueError, tf.errors.OpError) as error:
        raise InvalidModelError(f"{path}: TensorFlow does not take this graph: {_first_line(error)}") from error
    fetched = [_tensor(whole.graph, name, path) for name in outputs or _ends(definition)]
    if not fetched:
        raise InvalidModelError(f"{path}: the graph has no outputs; name some")
    fed = [_tensor(whole.graph, name, path) for name in inputs or ()]
    more = _placeholders(whole.graph, fetched, fed)
    if inputs and more:
        raise OnwardError(f"{path}: the outputs need more than these inputs: {_listed([name_of(t) for t in more])}")
    fed += more
    specs = {name_of(tensor): tf.TensorSpec(tensor.shape, tensor.dtype, name_of(tensor)) for tensor in fed}
    function = whole.prune(fed, {name_of(tensor): tensor for tensor in fetched}, input_signature=((), specs))
    function._arg_keywords, function._num_positional_args = list(specs), 0
    return function


def read(path: Path) -> Any:
    """The GraphDef of a file, without the devices that it was made for."""
    from google.protobuf import message, text_format

    definition = import_tensorflow().compat.v1.GraphDef()
    content = path.read_bytes()
    try:
        if FIRST_WORDS.match(content):
            text_format.Parse(content.decode(), definition)
        else:
            definition.ParseFromString(content)
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{path}: the graph is damaged or cut off: {_first_line(error)}") from error
    for node in definition.node:
        node.device = ""
        node.attr.pop("_class", None)
    return definition


def _set_shapes(definition: Any, shapes: Mapping[str, Shape | None], path: Path) -> None:
    """Say more of the shapes of placeholders than the graph does."""
    nodes = {node.name: node for node in definition.node if node.op == "Placeholder"}
    for name, shape in shapes.items():
        if shape is None:
            continue
        node = nodes.get(name.removesuffix(":0"))
        if node is None:
            raise OnwardError(f"{path}: {name!r} is no placeholder, whose shape could be given")
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
