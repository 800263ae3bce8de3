"""Parts that a backend has no rules for, kept as ONNX inside the model that it writes.

Each is one node `onward::OnnxPart`, whose first inputs are the bytes of the part and of its derivative. Weights of a
part are inputs of it like any other: they stay parameters of the framework, and are trained through the derivative.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.canon.custom import custom_op
from onward.canon.lower import key_of
from onward.errors import UnsupportedError
from onward.graph.build import Builder
from onward.graph.names import EXTENSIONS
from onward.graph.origin import origin
from onward.graph.replace import DOMAIN
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.partitioning.capability import capability
from onward.partitioning.graph import Graph, graph_of, ready
from onward.partitioning.split import Part, split
from onward.partitioning.stages import FALLBACK
from onward.plugins.advice import divided, next_step
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.autodiff.reverse import several_gradients

SEED = "{}.gradient"


def with_fallback(model: Model, backend: str, refused: Collection[str] | None = None) -> tuple[Model, list[Part]]:
    """The model with what a backend refuses, or the nodes named in `refused`, as parts; and these parts.

    It is the model itself where the backend takes all of it.
    """
    whole = ready(model)
    graph = graph_of(whole)
    if refused is None:
        refused = capability(backend).refused(whole, graph)
    if not refused:
        return model, []
    parts = [part for part in split(graph, refused) if part.side == FALLBACK]
    made = _replaced(whole, graph, parts, backend)
    return made, parts


def _check(graph: Graph, part: Part, backend: str) -> None:
    """Refuse a part that ONNX Runtime cannot run without Onward, or that takes or gives what no tensor holds."""
    for node in all_nodes(part.model.ir.graph):
        op = custom_op(node, part.model.ir)
        if op is None and (advice := next_step(key_of(node))):
            raise UnsupportedError(
                f"{origin(node)}: ONNX Runtime does not know {key_of(node)}, so it is no fallback for it{advice};"
                " with @op.body in it, ONNX Runtime runs the op as well"
            )
        if op is not None and not op.functions and node.domain != EXTENSIONS:
            raise UnsupportedError(
                f"{op.key} runs on ONNX Runtime only beside Onward, which the result does without: add @op.{backend} or"
                f" @op.body to its plugin, or {divided(backend)}"
            )
    for name in (*part.inputs, *part.outputs):
        value = graph.cutter.values[name]
        if not isinstance(value.type, ir.TensorType) or value.dtype == ir.DataType.STRING:
            ops = ", ".join(dict.fromkeys(node.op_type for node in part.nodes))
            raise UnsupportedError(
                f"{name!r} is no tensor of numbers, so the part with {ops} cannot be left to ONNX Runtime inside"
                f" {backend}; {divided(backend)}"
            )


def _replaced(whole: Model, graph: Graph, parts: list[Part], backend: str) -> Model:
    target = whole.ir.clone()
    nodes = {node.name: node for node in target.graph}
    values = {v.name: v for v in (*target.graph.inputs, *target.graph.initializers.values())}
    values |= {v.name: v for node in target.graph for v in node.outputs}
    target.graph.opset_imports[DOMAIN] = 1
    for place, part in enumerate(parts):
        _check(graph, part, backend)
        model, weights = _with_weights_fed(part)
        taken = [*part.inputs, *weights]
        gradient = _derivative(model, taken, part.outputs)
        stored = [
            _stored(target.graph, f"part{place}.{end}", data)
            for end, data in (("graph", _bytes(model)), ("gradient", gradient))
        ]
        node = ir.node(
            "OnnxPart",
            [*stored, *(values[name] for name in taken)],
            {"results": " ".join(_described(graph.cutter.values[name], taken, values) for name in part.outputs)},
            domain=DOMAIN,
            name=f"onnx_part{place}",
            num_outputs=len(part.outputs),
        )
        node.version = 1
        target.graph.append(node)
        for made, name in zip(node.outputs, part.outputs, strict=True):
            known, old = graph.cutter.values[name], values[name]
            made.type, made.shape = known.type, known.shape
            old.replace_all_uses_with(made, replace_graph_outputs=True)
            old.name, made.name = None, name
            values[name] = made
        target.graph.remove([nodes[node.name] for node in reversed(part.nodes)], safe=False)
    target.graph.sort()
    common.RemoveUnusedNodesPass()(target)
    return Model(target, path=whole.path)


def _with_weights_fed(part: Part) -> tuple[Model, list[str]]:
    """The part, with its float weights as inputs, and their names."""
    model = part.model.ir.clone()
    graph = model.graph
    weights = [value for value in graph.initializers.values() if _is_weight(value)]
    for value in weights:
        graph.initializers.pop(value.name or "")
        value.const_value = None
        graph.inputs.append(value)
    return Model(model), [value.name or "" for value in weights]


def _is_weight(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point() and bool(value.shape)


def _bytes(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString())


def _stored(graph: ir.Graph, name: str, data: bytes) -> ir.Value:
    """Bytes as a tensor of the model."""
    array = np.frombuffer(data, np.uint8)
    value = ir.Value(name=name, type=ir.TensorType(ir.DataType.UINT8), shape=ir.Shape(array.shape))
    value.const_value = ir.tensor(array, name=name)
    graph.register_initializer(value)
    return value


def _derivative(model: Model, inputs: list[str], outputs: list[str]) -> bytes:
    """A model from inputs and the gradients of float outputs to those of float inputs; nothing where there is none."""
    graph = differentiable(model)
    given = {value.name or "": value for value in graph.graph.inputs}
    results = {value.name or "": value for value in graph.graph.outputs}
    wrt = [given[name] for name in inputs if _is_float(given[name])]
    ends = [results[name] for name in outputs if _is_float(results[name])]
    if not wrt or not ends:
        return b""
    op = Builder(graph)
    seeds = []
    for end in ends:
        seed = ir.Value(name=SEED.format(end.name), type=end.type, shape=end.shape)
        graph.graph.inputs.append(seed)
        seeds.append(op.tensor(seed))
    try:
        found = several_gradients(op, list(zip(ends, seeds, strict=True)), wrt)
    except UnsupportedError:
        return b""
    graph.graph.outputs.clear()
    for value, gradient in zip(wrt, found, strict=True):
        result = op.Identity(op.zeros_like(op.tensor(value)) if gradient is None else gradient)
        result.value.name = f"d_{value.name}"
        graph.graph.outputs.append(result.value)
    common.RemoveUnusedNodesPass()(graph)
    return _bytes(Model(graph))


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()


def _described(value: ir.Value, inputs: list[str], values: dict[str | None, ir.Value]) -> str:
    """The dtype and dimensions of a result: numbers, the place of an input and its axis, or '?'."""
    if value.dtype is None or value.shape is None:
        raise UnsupportedError(f"the type of {value.name!r} is not known, so no part of the model can give it")
    named: dict[str, str] = {}
    for place, name in enumerate(inputs):
        for axis, dim in enumerate(values[name].shape or ()):
            if not isinstance(dim, int) and dim.value is not None:
                named.setdefault(dim.value, f"{place}.{axis}")
    dims = [str(d) if isinstance(d, int) else named.get(d.value or "", "?") for d in value.shape]
    return f"{value.dtype.numpy()}[{','.join(dims)}]"
