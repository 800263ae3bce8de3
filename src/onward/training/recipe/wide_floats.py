"""Models of 16 bits are trained in 32: a small step of a weight would be rounded away in 16.

The whole model computes in float32 then, under the same names. What was of 16 bits is written into its metadata: a
tuned model takes and gives what the original does, and can store its weights so again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.canon.inline import inline
from onward.errors import UnsupportedError
from onward.graph.held_weights import homes
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.origin import origin
from onward.graph.replace import is_op, take_over
from onward.graph.walk import all_graphs, all_nodes
from onward.model import Model
from onward.passes.narrow_ends import narrow_ends

RECORD = "onward.before"
"""Of the model's metadata: what has become float32, as JSON: weights, and inputs and outputs, each with its dtype."""
WEIGHTS, ENDS = "weights", "ends"
HALVES = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}
_NAMES = {dtype: name for name, dtype in HALVES.items()}
_CHOICES = ("to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision", "precision")
"""Attributes of ops that are a dtype."""
_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
"""Whose ops are known to take 32 bits wherever they take 16."""


def is_half(value: ir.Value) -> bool:
    return value.dtype in _NAMES


def holds_halves(model: Model) -> bool:
    return any(_dtype(home) in _NAMES for home in homes(model.ir.graph).values())


def in_float32(model: Model) -> Model:
    """A copy of a model that computes in 32 bits wherever it does in 16, with its weights, inputs and outputs."""
    if model.training_info:
        raise UnsupportedError(
            "the model has training information already, for weights of 16 bits, which are not trained: small steps "
            "would be rounded away. Give the model as it was before"
        )
    made = replace(model.copy(), path=model.path)
    graph = made.ir
    inline(graph)
    infer(graph)
    dtypes = {
        WEIGHTS: {name: _dtype(home) for name, home in homes(graph.graph).items()},
        ENDS: {end.name or "": end.dtype for end in _ends(graph.graph)},
    }
    _check(graph)
    casts = [n for n in all_nodes(graph.graph) if is_op(n, "Cast") and _is_of_halves(n)]
    for each in list(all_graphs(graph.graph)):
        for value in (*each.inputs, *each.initializers.values(), *(out for node in each for out in node.outputs)):
            _widen_value(value)
        for node in each:
            _widen_attributes(node)
    for node in casts:
        _drop_if_idle(node)
    remember(graph, {p: {n: _NAMES[to] for n, to in known.items() if to in _NAMES} for p, known in dtypes.items()})
    return made


def remember(model: ir.Model, dtypes: Mapping[str, Mapping[str, str]]) -> None:
    """Write what a model was of before into its metadata, but for what it was of before that."""
    parts = dict.fromkeys((WEIGHTS, ENDS, *dtypes))
    model.metadata_props[RECORD] = json.dumps({p: {**dtypes.get(p, {}), **before(model, p)} for p in parts})


def before(model: ir.Model, part: str = WEIGHTS) -> dict[str, str]:
    """The dtypes that weights, or inputs and outputs, were of before they became float32, by name."""
    try:
        found = json.loads(model.metadata_props.get(RECORD, "{}"))[part]
    except (ValueError, RecursionError, LookupError, TypeError):
        return {}
    return {name: str(dtype) for name, dtype in found.items()} if isinstance(found, dict) else {}


def _halves(model: ir.Model, part: str) -> dict[str, ir.DataType]:
    """Those of 16 bits."""
    return {name: HALVES[dtype] for name, dtype in before(model, part).items() if dtype in HALVES}


def with_half_ends(model: Model) -> Model:
    """A model that takes and gives 16 bits again where it did, itself if that is nowhere."""
    known = _halves(model.ir, ENDS)
    if not known:
        return model
    made = replace(model.copy(), path=model.path)
    for half in HALVES.values():
        narrow_ends(made.ir, half, [name for name, dtype in known.items() if dtype == half])
    return made


def store_halves(model: ir.Model) -> None:
    """Store weights in 16 bits again, in place, that were so before, and read them as float32.

    Those whose numbers have become too large for that stay as they are.
    """
    names, known = Names(model), homes(model.graph)
    for name, half in _halves(model, WEIGHTS).items():
        home = known.get(name)
        if home is None or _dtype(home) != ir.DataType.FLOAT:
            continue
        value = home.outputs[0] if isinstance(home, ir.Node) else home
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is None or value.is_graph_output():
            continue
        array = tensor.numpy()
        if (np.abs(array[np.isfinite(array)]) > float(ml_dtypes.finfo(half.numpy()).max)).any():
            continue
        read = ir.Value(name=names.value(f"{name}_float32"), type=ir.TensorType(ir.DataType.FLOAT), shape=value.shape)
        value.replace_all_uses_with(read)
        cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(ir.DataType.FLOAT))], outputs=[read])
        cast.name = names.node(read.name or "")
        _hold(home, ir.Tensor(array.astype(half.numpy()), half, name=value.name))
        if isinstance(home, ir.Node):
            assert home.graph is not None
            home.graph.insert_after(home, cast)
        else:
            assert isinstance(value.graph, ir.Graph)
            _put_first(value.graph, cast)


def _put_first(graph: ir.Graph, node: ir.Node) -> None:
    if len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)


def _hold(home: ir.Value | ir.Node, tensor: ir.TensorProtocol) -> None:
    value = home.outputs[0] if isinstance(home, ir.Node) else home
    if isinstance(home, ir.Node):
        home.attributes.clear()
        home.attributes["value"] = ir.AttrTensor("value", tensor)
    if not isinstance(home, ir.Node) or value.const_value is not None:
        value.const_value = tensor
    value.type = ir.TensorType(tensor.dtype)


def _ends(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from (value for value in graph.inputs if not value.is_initializer())
    yield from graph.outputs


def _dtype(home: ir.Value | ir.Node) -> ir.DataType | None:
    """Of a constant that is more than a single number."""
    tensor = ir.convenience.get_const_tensor(home.outputs[0] if isinstance(home, ir.Node) else home)
    return None if tensor is None or tensor.size < 2 else tensor.dtype


def _check(model: ir.Model) -> None:
    """Refuse nodes that mean something else in 32 bits, or may."""
    for node in all_nodes(model.graph):
        of_halves = any(is_half(value) for value in _values(node))
        if of_halves and (node.domain not in _DOMAINS or node.op_type == "BitCast"):
            raise UnsupportedError(
                f"{origin(node)}: weights of 16 bits are trained in float32, in which the whole model computes, and "
                f"this op is not known to mean the same there. Give a model of float32"
            )


def _values(node: ir.Node) -> Iterator[ir.Value]:
    yield from (value for value in node.inputs if value is not None)
    yield from node.outputs


def _is_of_halves(cast: ir.Node) -> bool:
    return any(is_half(value) for value in _values(cast))


def _drop_if_idle(cast: ir.Node) -> None:
    """Remove a Cast from float32 to float32."""
    given, made = cast.inputs[0], cast.outputs[0]
    if given is None or given.dtype != made.dtype or cast.attributes.get_int("to", 0) != int(ir.DataType.FLOAT):
        return
    assert cast.graph is not None
    if made.is_graph_output():
        if given.producer() is None or given.graph is not cast.graph or given.is_graph_output():
            return
        take_over(made, given)
    else:
        made.replace_all_uses_with(given)
    cast.graph.remove(cast, safe=True)


def _widen_value(value: ir.Value) -> None:
    value.type = _wide_type(value.type)
    if value.producer() is not None:
        value.const_value = None  # its node holds it
    elif value.const_value is not None:
        value.const_value = _wide_tensor(value.const_value)


def _wide_type(kind: Any) -> Any:
    if isinstance(kind, ir.TensorType | ir.SparseTensorType):
        return type(kind)(ir.DataType.FLOAT, denotation=kind.denotation) if kind.dtype in _NAMES else kind
    if isinstance(kind, ir.SequenceType | ir.OptionalType):
        return type(kind)(_wide_type(kind.elem_type), denotation=kind.denotation)
    return kind


def _wide_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.Tensor(tensor.numpy().astype(np.float32), name=tensor.name) if tensor.dtype in _NAMES else tensor


def _widen_attributes(node: ir.Node) -> None:
    for name, attribute in list(node.attributes.items()):
        kind = attribute.type
        if attribute.is_ref():
            continue
        if kind == ir.AttributeType.INT and name in _CHOICES and node.domain in _DOMAINS:
            if attribute.value in map(int, _NAMES):
                node.attributes[name] = ir.AttrInt64(name, int(ir.DataType.FLOAT))
        elif kind in (ir.AttributeType.TENSOR, ir.AttributeType.SPARSE_TENSOR):
            wide = _wide_tensor(attribute.value)
            if wide is not attribute.value:  # a sparse one becomes dense
                node.attributes.pop(name)
                node.attributes[name.removeprefix("sparse_")] = ir.AttrTensor(name.removeprefix("sparse_"), wide)
        elif kind == ir.AttributeType.TYPE_PROTO:
            held = ir.TypeAndShape(_wide_type(attribute.value.type), attribute.value.shape)
            node.attributes[name] = ir.Attr(name, ir.AttributeType.TYPE_PROTO, held)
