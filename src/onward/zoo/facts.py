"""What there is to know of a model, and of what it was converted to, without running either."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onward.backends.backend import formats
from onward.errors import OnwardError
from onward.graph.walk import all_nodes
from onward.hub.types import ForeignType
from onward.model import Model, load
from onward.zoo.listing import Entry, listed_facts, size
from onward.zoo.outline import outline
from onward.zoo.results import LONGEST_SOURCE, ModelFacts, Slot

MOST_SLOTS = 200
LONGEST_NAME = 200
TRANSPOSES = {"permute", "transpose", "moveaxis", "movedim", "swapaxes", "Permute", "matrix_transpose"}
"""Calls in generated source that move axes; `.mT` and `.T` are none."""
STARTS = ("__init__", "load", "get_config", "from_config")
"""Functions of generated source in which the model is made, not run."""


@dataclass(frozen=True)
class Made:
    """A result as it was written."""

    nodes: int | None = None
    transposes: int | None = None
    size_bytes: int | None = None
    source: str = ""


def facts(entry: Entry, model: Model) -> ModelFacts:
    """What a list says, and the ONNX model tells."""
    graph = model.ir.graph
    nodes = list(all_nodes(graph))
    opset = ";".join(f"{domain or 'ai.onnx'}={version}" for domain, version in model.opset.items())
    return replace(
        listed_facts(entry),
        opset=opset if entry.format == "onnx" else entry.opset,
        inputs=_slots(value for value in graph.inputs if not value.is_initializer()),
        outputs=_slots(graph.outputs),
        ops=dict(Counter(_op(node) for node in nodes).most_common()),
        nodes=len(nodes),
        parameters=sum(_count(value) for value in graph.initializers.values()),
        graph=outline(graph),
    )


def _op(node: ir.Node) -> str:
    name = f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
    return name[:LONGEST_NAME]


def _count(value: ir.Value) -> int:
    return 0 if value.const_value is None else int(value.const_value.size)


def _slots(values: Any) -> tuple[Slot, ...]:
    return tuple(
        Slot((value.name or "")[:LONGEST_NAME], spelled(value.type), _dims(value.shape))
        for value in list(values)[:MOST_SLOTS]
    )


def _dims(shape: ir.Shape | None) -> tuple[int | str | None, ...] | None:
    if shape is None:
        return None
    sizes = [dim if isinstance(dim, int) else dim.value for dim in shape]
    return tuple(size[:LONGEST_NAME] if isinstance(size, str) else size for size in sizes)


def spelled(type_: Any) -> str:
    """A type as ONNX writes it: `tensor(float)`, `seq(tensor(int64))`; '' where it is not known."""
    match type_:
        case ForeignType():
            return str(type_.proto.WhichOneof("value") or "").removesuffix("_type")
        case ir.SequenceType():
            return f"seq({spelled(type_.elem_type)})"
        case ir.OptionalType():
            return f"optional({spelled(type_.elem_type)})"
        case ir.TensorType() | ir.SparseTensorType():
            kind = "tensor" if isinstance(type_, ir.TensorType) else "sparse_tensor"
            return f"{kind}({type_.dtype.name.lower()})"
    return ""


def made(out: Path, target: str) -> Made:
    """A file of ONNX or TensorFlow Lite, or source code: a package, or what stands beside a file."""
    names = [out.name] if target == "onnx" or out.is_dir() else formats()[target][1].files(out)
    files = [file for name in names if (file := out.parent / name).exists()]
    size_bytes = sum(map(size, files))
    source = next((file for file in (*files, out / "model.py") if file.suffix == ".py" and file.is_file()), None)
    if (out / "model.m").is_file():
        return Made(None, None, size_bytes, (out / "model.m").read_text(encoding="utf-8")[:LONGEST_SOURCE])
    if source is not None:
        return replace(_of_source(source), size_bytes=size_bytes)
    ops = list(_ops(out))
    return (
        Made(len(ops), sum(op.lower() == "transpose" for op in ops), size_bytes)
        if ops
        else Made(None, None, size_bytes)
    )


def _ops(file: Path) -> Iterator[str]:
    if file.suffix == ".onnx":
        yield from (node.op_type for node in all_nodes(load(file).ir.graph))
    if file.suffix != ".tflite":
        return
    from onward.frontends.tflite.read import read

    lite = read(file)
    for graph in lite.graphs:
        yield from (lite.op_type(operator) for operator in graph.operators or ())


def _of_source(file: Path) -> Made:
    """Calls are counted as they are written: what a loop does several times counts once."""
    source = file.read_text(encoding="utf-8")
    try:
        calls = list(_calls(ast.parse(source)))
    except (SyntaxError, RecursionError) as error:
        raise OnwardError(f"the generated source cannot be read: {error}") from error
    return Made(len(calls), sum(call in TRANSPOSES for call in calls), source=source[:LONGEST_SOURCE])


def _calls(tree: ast.AST) -> Iterator[str]:
    """The last word of each thing that is called, and operators, where the model is run."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef) and node.name in STARTS:
            continue
        if isinstance(node, ast.Call):
            called = node.func
            yield (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
        elif isinstance(node, ast.BinOp):
            yield type(node.op).__name__
        pending += node.body if isinstance(node, ast.FunctionDef | ast.ClassDef) else ast.iter_child_nodes(node)
