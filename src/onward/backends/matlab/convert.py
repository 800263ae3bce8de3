"""ONNX → MATLAB: the package of source and parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.modules.regions import split
from onward.backends.emit.modules.settings import hold_settings
from onward.backends.emit.modules.tracing import located
from onward.backends.emit.names import class_names
from onward.backends.emit.package import emit, guarded, plain
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import Function, build_tree
from onward.backends.emit.weights import Tensor, Weights
from onward.backends.matlab.functions import MatlabWriter
from onward.backends.matlab.matfile import Lazy
from onward.backends.matlab.package import PACKAGE, MatlabSource, needed, package_name
from onward.backends.matlab.ranks import is_squeezed, settle_ranks
from onward.backends.matlab.readme import CHECK, checks, help_text, image_text, readme
from onward.backends.matlab.target import CLASSES, TARGET, refuse_rank
from onward.backends.matlab.tree import nested
from onward.backends.matlab.tree import plain as plain_tree
from onward.backends.matlab.values import carrier, texts
from onward.hub.collector import no_garbage_collection
from onward.model import Model
from onward.passes.pipelines import canonical
from onward.registry import import_files


def load_rules() -> None:
    import_files(f"{__package__}.rules")


def generate(model: Model, out: Path | None = None) -> MatlabSource:
    """The MATLAB source of a model; `out` is the folder of the package, which is called as that is."""
    load_rules()
    package = package_name(out)
    with no_garbage_collection():
        with guarded("bringing the model to canonical form"):
            graph = canonical(model, TARGET.rules.__contains__)
        settle_ranks(graph.graph, model.ir.graph.outputs)
        _check_ranks(graph.graph)
        with guarded("choosing MATLAB's words for its nodes"):
            emitter, function = emit(graph, TARGET)
        with guarded("writing source code"):
            return _source(model, graph, emitter.weights, function, package)


def _check_ranks(graph: ir.Graph) -> None:
    """Refuse a model of which no one can say how many dimensions its inputs and outputs have."""
    for value in (*graph.inputs, *graph.outputs):
        if value.shape is None and (isinstance(value.type, ir.TensorType) or value.is_graph_output()):
            refuse_rank(value)


def _source(model: Model, graph: ir.Model, weights: Weights, function: Function, package: str) -> MatlabSource:
    """Split the computation into functions and print them."""
    name = plain(model.name)
    tree = build_tree(weights)
    split(tree, function, in_loops=False)
    owned = set(weights.tensors)
    hold_settings(tree, weights)
    writer = MatlabWriter(tree, [*weights.tensors, *weights.arrays], class_names(graph.graph), package=package)
    writer.results = [value.name or "y" for value in model.ir.graph.outputs]
    writer.write(name)
    inputs = [_side(value) for value in graph.graph.inputs if not value.is_initializer()]
    outputs = [_side(v, w) for v, w in zip(model.ir.graph.outputs, graph.graph.outputs, strict=True)]
    header, body = _header(writer.traced[-1])
    about = help_text(name, writer.inputs, writer.outputs, inputs, outputs)
    checked = checks(writer.inputs, inputs)
    traced = [[*header, *about, *checked, *body], *writer.traced[-2::-1]]
    template = "\n\n".join("\n".join(lines) for lines in traced) + "\n"
    leaves: dict[Scope, Any] = {path: _leaf(t, path in owned) for path, t in weights.tensors.items()}
    leaves |= {path: texts(array) for path, array in weights.arrays.items()}
    return MatlabSource(
        model=template.replace(PACKAGE, package),
        ops=None,
        tensors={".".join(path): tensor for path, tensor in weights.tensors.items()},
        dtypes=CLASSES,
        lines=located(traced, template),
        template=template,
        helpers=needed(writer.helpers | ({CHECK} if checked else set())),
        params=plain_tree(nested(leaves, writer.lists)),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        image=image_text(name, writer.inputs, writer.outputs, inputs),
        readme=readme(name, writer.inputs, writer.outputs, inputs, outputs),
    )


def _header(lines: list[str]) -> tuple[list[str], list[str]]:
    """The line, or the lines that go on, which begin a function, and the others."""
    count = next(i for i, line in enumerate(lines, 1) if not line.endswith("..."))
    return lines[:count], lines[count:]


def _side(value: ir.Value, inferred: ir.Value | None = None) -> dict[str, Any]:
    """What an input or output is called in the file, and what it holds: each element of it, if it is a sequence."""
    known = [one for one in (value, inferred) if one is not None and one.shape is not None]
    of = value.type or (None if inferred is None else inferred.type)
    is_tensor = (
        not isinstance(of, ir.SequenceType | ir.OptionalType) and len({len(one.shape or ()) for one in known}) == 1
    )
    shape = known[0 if is_tensor else -1].shape if known else None
    kinds = {ir.SequenceType: "sequence", ir.OptionalType: "optional"}
    dims = None if shape is None else [d if isinstance(d, int) else str(d.value or "?") for d in shape]
    dtype = ir.DataType.UNDEFINED if of is None else of.dtype or ir.DataType.UNDEFINED
    side = {"name": value.name, "dtype": dtype.name, "shape": dims, "kind": kinds.get(type(of), "tensor")}  # type: ignore[arg-type]
    return side | ({"squeezed": True} if inferred is not None and is_squeezed(inferred) else {})


def _leaf(tensor: Tensor, is_owned: bool) -> Lazy:
    """A tensor of the file in its own class; a number by which blocks differ is a double, as if it were written out."""
    return Lazy(tensor.read, tensor.shape, carrier(tensor.dtype) if is_owned else np.dtype(np.float64))
