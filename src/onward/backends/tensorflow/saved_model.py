"""A generated module as a SavedModel: a folder that runs without Python, with the ONNX file's names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onward.advice.options import option
from onward.backends.tensorflow.remarks import without_remarks
from onward.backends.tensorflow.target import DTYPES
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer

if TYPE_CHECKING:
    from onward.backends.emit.package import Source

SIGNATURE = "serving_default"
REMARKS = "assets.extra/onward_casts.txt"
"""Where a SavedModel says which of its ops are computed in other dtypes; TensorFlow leaves that folder alone."""
PARTS = (
    "saved_model.pb",
    "saved_model.pbtxt",
    "fingerprint.pb",
    "keras_metadata.pb",
    "variables",
    "assets",
    "assets.extra",
)
"""What a SavedModel consists of: files and folders."""

_TAKEN = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.>/-]*")


def check_folder(folder: Path) -> None:
    """Refuse to replace what is not a SavedModel, or what somebody has added to one."""
    if not folder.is_dir():
        return
    if any(folder.iterdir()) and not (folder / "saved_model.pb").is_file():
        raise OnwardError(f"{folder} holds something other than a SavedModel; give another {option('out')}")
    added = folder / Path(REMARKS).parent
    if added.is_dir() and (others := {path.name for path in added.iterdir()} - {Path(REMARKS).name}):
        raise OnwardError(
            f"{added}: {min(others)} was not written by Onward: move it away, or give another {option('out')}"
        )


def write_saved_model(source: Source, graph: ir.Graph, folder: Path) -> Path:
    """Trace the module of a generated source, and save it. `graph` tells the names and types of inputs and outputs."""
    import tensorflow as tf

    net, serve = traced(source, graph)
    net.serve = serve
    with without_remarks():
        tf.saved_model.save(net, str(folder), signatures={SIGNATURE: serve})
    if source.casts:
        remarks = folder / REMARKS
        remarks.parent.mkdir(exist_ok=True)
        remarks.write_text("".join(f"{phrase}\n" for phrase in source.casts), encoding="utf-8")
    return folder


def traced(source: Source, graph: ir.Graph) -> tuple[Any, Any]:
    """The module of a generated source, and the function that calls it, with inputs and outputs by name."""
    import tensorflow as tf

    from onward.backends.tensorflow.load import run

    net: Any = run(source)
    names = [value.name or "" for value in graph.outputs]

    def serve(*arguments: Any) -> dict[str, Any]:
        found = net(*arguments)
        return dict(zip(names, found if len(names) > 1 else [found], strict=True))

    fed = {value.name or "": value for value in graph.inputs if not value.is_initializer()}
    arguments = signature_names(fed)
    specs = [signature_of(fed[name], arguments[name], source.input_orders.get(name)) for name in fed]
    function = tf.function(serve, autograph=False, input_signature=specs)
    try:
        function.get_concrete_function()
    except Exception as error:
        name = _unranked(graph)
        if name is None:
            raise
        raise UnsupportedError(f"TensorFlow needs the rank of {name!r}, which is not known") from error
    return net, function


def _unranked(graph: ir.Graph) -> str | None:
    """A tensor of which not even the rank is known, if there is one."""
    model = ir.Model(graph.clone(), ir_version=10)
    infer(model)
    values = [*model.graph.inputs, *(value for node in model.graph for value in node.outputs)]
    return next((value.name for value in values if value.shape is None and isinstance(value.type, ir.TensorType)), None)


def signature_names(names: Iterable[str]) -> dict[str, str]:
    """What a signature calls each input: exactly its name, wherever TensorFlow can take it.

    TensorFlow tells names apart by what it derives from them: a keyword of Python, in lower case.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name, plain in argument_names(names).items():
        text = name if _TAKEN.fullmatch(name) and name != "self" and not iskeyword(name) else plain
        while _derived(text) in taken:
            text += "_"
        taken.add(_derived(text))
        found[name] = text
    return found


def _derived(name: str) -> str:
    text = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return text if text[:1].isalpha() else f"arg_{text}"


def argument_names(names: Iterable[str]) -> dict[str, str]:
    """Each name as an identifier that Python, Keras and TensorFlow can take."""
    found: dict[str, str] = {}
    for name in names:
        text = re.sub(r"[^A-Za-z0-9_]", "_", name)
        text = text if text[:1].isalpha() and text != "self" and not iskeyword(text) else f"arg_{text}"
        while text in found.values():
            text += "_"
        found[name] = text
    return found


def signature_of(value: ir.Value, name: str | None = None, order: Sequence[int] | None = None) -> Any:
    """What a traced function takes for an input, its axes in this order: dimensions that are not known stay open."""
    import tensorflow as tf

    if not isinstance(value.type, ir.TensorType):
        raise UnsupportedError(f"a function of TensorFlow takes tensors, not a {value.type} ({value.name!r})")
    dims = None if value.shape is None else [d if isinstance(d, int) else None for d in value.shape]
    if dims is not None and order is not None:
        dims = [dims[axis] for axis in order]
    return tf.TensorSpec(dims, getattr(tf, DTYPES[value.type.dtype]), name=name)
