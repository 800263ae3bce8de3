"""Custom ops of plugins on ONNX Runtime: by their bodies, by a library, or by Python through onnxruntime-extensions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.advice.extras import require
from onward.canon.custom import add_bodies, custom_op
from onward.canon.defaults import fill_defaults, fill_nodes
from onward.errors import OnwardError, RunFailure, UnsupportedError
from onward.graph.infer import infer
from onward.graph.origin import origin
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.plugins.advice import next_step
from onward.plugins.find import STANDARD
from onward.plugins.op import CustomOp
from onward.plugins.table import find
from onward.spec.meaning import attributes

PYTHON = "ai.onnx.contrib"
"""The domain in which onnxruntime-extensions has its own ops, and those written in Python."""
_KERNELS: dict[str, Callable[..., Any]] = {}
"""What is registered for as long as the process lives, by name."""
_FAILURES: list[tuple[type[OnwardError], str]] = []
"""What ops in Python raised, on whatever thread: runs that go on at a time all hear of it.

Kind and words alone: an exception would hold on to the session through its traceback until the process ends, and ONNX
Runtime then crashes as it is taken apart.
"""


@dataclass(frozen=True)
class Served:
    """A model that ONNX Runtime can run with these libraries."""

    model: ir.Model
    libraries: list[str] = field(default_factory=list)


def served(model: ir.Model) -> Served:
    """A copy of the model in which custom ops are what ONNX Runtime can run; the model itself if it has none."""
    if all(domain in STANDARD for domain in model.opset_imports):
        return Served(model)
    made = model.clone()
    if not (add_bodies(made) | any(custom_op(node, made) is not None for node in _nodes(made))):
        return Served(model)
    found = Served(made)
    declared = [value.shape for value in made.graph.inputs]
    infer(made)
    for value, shape in zip(made.graph.inputs, declared, strict=True):
        value.shape = shape  # one with a default may be given in other sizes than that has
    for node in _nodes(made):
        if (op := custom_op(node, made)) is not None:
            _serve(node, op, found)
    return found


def with_bodies(model: Model) -> Model:
    """A model in which custom ops that have a body are functions of the model; itself if there are none."""
    if all(domain in STANDARD for domain in model.ir.opset_imports):
        return model
    graph = model.ir.clone()
    if not add_bodies(graph):
        return model
    fill_defaults(graph)  # not every runtime looks for those of functions
    return replace(model, ir=graph, path=None)


def _nodes(model: ir.Model) -> list[ir.Node]:
    inside = [node for function in model.functions.values() for node in all_nodes(function.graph)]
    return [*all_nodes(model.graph), *inside]


def _serve(node: ir.Node, op: CustomOp, found: Served) -> None:
    libraries = [path() for path in op.libraries]
    if not libraries:
        if op.reference is None:
            raise UnsupportedError(
                f"{origin(node)}: ONNX Runtime cannot run {op.key}: its plugin has neither @op.body, op.library nor"
                " @op.numpy"
            )
        _in_python(node, op)
        found.model.opset_imports[PYTHON] = 1
        libraries = [_extensions()]
    else:
        fill_nodes([node], found.model.opset_imports)  # a library does not know the defaults of the schema
    found.libraries.extend(path for path in libraries if path not in found.libraries)


def _extensions() -> str:
    require("onnxruntime_extensions", what="an op in Python on ONNX Runtime")
    from onnxruntime_extensions import get_library_path

    return str(get_library_path())


def _in_python(node: ir.Node, op: CustomOp) -> None:
    """Make a node one of an op in Python that is registered for its types and attributes, if it is not yet."""
    kinds = [[_kind(value, node) for value in values] for values in (node.inputs, node.outputs)]
    given = attributes(node)
    text = repr((node.domain, op.name, op.version, kinds, sorted(given.items()))).encode()
    name = f"{op.name}_{hashlib.sha256(text).hexdigest()[:16]}"
    present = [value is not None for value in node.inputs]
    if name not in _KERNELS:
        require("onnxruntime_extensions", what="an op in Python on ONNX Runtime")
        from onnxruntime_extensions import onnx_op

        taken = [kind for kind, there in zip(kinds[0], present, strict=True) if there]
        key = f"{node.domain}::{op.name}"
        kernel = _KERNELS[name] = _kernel(key, op.version, given, present, [_dtype(kind) for kind in kinds[1]])
        onnx_op(op_type=name, inputs=taken, outputs=kinds[1])(kernel)
    inputs = [value for value in node.inputs if value is not None]
    node.resize_inputs(len(inputs))
    for i, value in enumerate(inputs):
        node.replace_input_with(i, value)
    node.domain, node.op_type, node.version = PYTHON, name, 1
    node.attributes.clear()


def _kind(value: ir.Value | None, node: ir.Node) -> int:
    """ONNX's number of a dtype, which is that of onnxruntime-extensions as well."""
    if value is None:
        return 0
    if value.dtype is None:
        raise UnsupportedError(f"{origin(node)}: the dtype of {value.name!r} is not known; let @op.infer tell it")
    return int(value.dtype)


def _dtype(kind: int) -> np.dtype[Any]:
    found: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(kind)
    return found


def _kernel(
    key: str, version: int, given: dict[str, Any], present: list[bool], dtypes: list[np.dtype[Any]]
) -> Callable[..., Any]:
    """Nothing may be raised inside: onnxruntime-extensions would end the process. See `failing`."""

    def run(*inputs: Any) -> Any:
        try:
            op = find(key, version)
            assert op is not None
            feeds = iter(inputs)
            results = op.run([next(feeds) if there else None for there in present], given)[: len(dtypes)]
            results = [np.ascontiguousarray(array).reshape(array.shape) for array in results]
        except Exception as error:
            _FAILURES.append(_told(error))
            results = [np.zeros(0, dtype) for dtype in dtypes]
        return results[0] if len(results) == 1 else tuple(results)

    return run


@contextmanager
def failing() -> Iterator[None]:
    """What ops in Python raised inside is raised behind it, whatever ONNX Runtime made of it."""
    before = len(_FAILURES)
    try:
        yield
    except Exception as error:
        if len(_FAILURES) == before:
            raise
        kind, words = _FAILURES[before]
        raise kind(words) from error
    if len(_FAILURES) > before:
        kind, words = _FAILURES[before]
        raise kind(words)


def _told(error: Exception) -> tuple[type[OnwardError], str]:
    if isinstance(error, OnwardError):
        return type(error), str(error)
    return RunFailure, f"a custom op failed with {type(error).__name__}: {error}"


def unknown(model: ir.Model) -> str:
    """What to do about an op of a domain that neither ONNX Runtime nor a plugin knows; '' where there is none."""
    for node in _nodes(model):
        is_known = node.op_identifier() in model.functions or custom_op(node, model) is not None
        if not is_known and (step := next_step(f"{node.domain}::{node.op_type}")):
            return f" ({origin(node)}){step}"
    return ""
