"""A check of training information, which `onnx.checker` does not look into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import onnx
import onnx_ir as ir
from onnx import helper

from onward.errors import OnwardError
from onward.graph.infer import infer
from onward.hub.large_tensors import completed
from onward.model import Model, load
from onward.training.info.combined import combined, values_of
from onward.training.info.names import Names, reads
from onward.training.info.preview_ops import uses_training_ops


def check(source: Any, graphs: dict[int, ir.Model] | None = None) -> list[str]:
    """What is wrong with the training information of a model, one line each; an empty list if nothing is.

    `graphs` is filled with the combined graphs that are looked at, by training info; their types are known, unless
    they have ops of `ai.onnx.preview.training`.
    """
    model = load(source)
    graphs = {} if graphs is None else graphs
    problems = []
    outside = Names.of(model.ir.graph)
    for index, info in enumerate(model.training_info):
        where = f"training info {index}" if len(model.training_info) > 1 else "training info"
        found = [*_structure(info, outside), *_bindings(info, outside)]
        found += [] if found else [*_types(model, index, graphs)]
        problems += [f"{where}: {problem}" for problem in found]
    return problems


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _structure(info: onnx.TrainingInfoProto, outside: Names) -> Iterator[str]:
    own = Names.of(info.algorithm)
    for name in _twice([*own.made, *set(own.inputs + own.initializers)]):
        yield f"algorithm: the name {name!r} is given twice"
    for name in sorted(own.all & outside.all):
        yield f"algorithm: the name {name!r} is already taken by the inference graph"
    yield from _dangling(info.algorithm, outside.all, "algorithm")
    first = Names.of(info.initialization)
    if first.inputs:
        yield f"initialization: it has an input, {first.inputs[0]!r}; there is nothing to feed it with"
    yield from _dangling(info.initialization, set(), "initialization")
    for part, names in (("algorithm", own), ("initialization", first)):
        for name in _twice(names.outputs):
            yield f"{part}: the output {name!r} is listed twice"


def _dangling(graph: onnx.GraphProto, outside: set[str], where: str) -> Iterator[str]:
    known = outside | {value.name for value in graph.input} | set(Names.of(graph).initializers)
    for node in graph.node:
        for name in reads(node):
            if name not in known:
                label = node.name or next(iter(node.output), "")
                yield f"{where}: node {label!r} ({node.op_type}) reads {name!r}, which nothing before it produces"
        known |= set(node.output)
    for value in graph.output:
        if value.name not in known:
            yield f"{where}: no node produces the output {value.name!r}"


def _bindings(info: onnx.TrainingInfoProto, outside: Names) -> Iterator[str]:
    changeable = {*outside.initializers, *(Names.of(info.algorithm).initializers)}
    updated, started = ({*Names.of(graph).outputs} for graph in (info.algorithm, info.initialization))
    parts = (
        ("update_binding", info.update_binding, {*updated, *outside.outputs}, "algorithm"),
        ("initialization_binding", info.initialization_binding, started, "initialization"),
    )
    for what, bindings, outputs, graph in parts:
        for name in _twice(entry.key for entry in bindings):
            yield f"{what}: {name!r} is bound twice"
        for entry in bindings:
            if entry.key not in changeable:
                yield f"{what}: {entry.key!r} is no initializer of the model or of the algorithm"
            if entry.value not in outputs:
                yield f"{what}: {entry.key!r} is bound to {entry.value!r}, which is no output of the {graph}"


def _types(model: Model, index: int, graphs: dict[int, ir.Model]) -> Iterator[str]:
    """Whether what is bound is of the dtype and shape of what it replaces."""
    info = model.training_info[index]
    known: dict[str, ir.Value] = {}
    for what, bindings in (("update", info.update_binding), ("initialization", info.initialization_binding)):
        if not bindings:
            continue
        try:
            whole = combined(model, index) if what == "update" else load(_first(model, index)).ir
            if not uses_training_ops(whole.graph):
                infer(whole)
        except OnwardError as error:
            yield f"{what}: {error}"
            continue
        if what == "update":
            graphs[index] = whole
        found = values_of(whole.graph)
        known = known or (found if what == "update" else values_of(combined(model, index).graph))
        for entry in bindings:
            yield from _mismatch(f"{what}_binding", known[entry.key], found[entry.value])


def _first(model: Model, index: int) -> onnx.ModelProto:
    """The initialization as a model."""
    imports = [helper.make_opsetid(domain, version) for domain, version in model.opset.items()]
    graph = completed(model.training_info[index].initialization, model.held)
    return helper.make_model(graph, opset_imports=imports, ir_version=max(model.ir_version, 8))


def _mismatch(what: str, before: ir.Value, after: ir.Value) -> Iterator[str]:
    if None not in (before.dtype, after.dtype) and before.dtype != after.dtype:
        yield f"{what}: {before.name!r} is {_dtype(before)}, but {after.name!r} is {_dtype(after)}"
    if before.shape is None or after.shape is None:
        return
    one, other = list(before.shape), list(after.shape)
    fits = len(one) == len(other) and all(
        a == b for a, b in zip(one, other, strict=True) if isinstance(a, int) and isinstance(b, int)
    )
    if not fits:
        yield f"{what}: {before.name!r} is of shape {_dims(before)}, but {after.name!r} of {_dims(after)}"


def _dtype(value: ir.Value) -> str:
    return value.dtype.name if value.dtype is not None else "unknown"


def _dims(value: ir.Value) -> list[int | str | None]:
    return [d if isinstance(d, int) else d.value for d in value.shape or ()]
