"""Compute once what is computed from constants alone: the small arithmetic that exporters leave around.

Only results of up to `LIMIT` elements are kept, so that files do not grow. What is computed from a weight stays a
computation: the weight keeps its name and shape, and can be trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.trained import MARK, role
from onward.graph.walk import all_graphs
from onward.graph.weight_names import Signature, is_automatic, signature

Array = np.ndarray[Any, np.dtype[Any]]
LIMIT = 4096


def _integer_divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    if not np.all(b):
        raise ValueError("division by zero")
    rounded = a // b  # down, and not towards zero; the smallest of the integers has no absolute value
    return np.asarray(rounded + ((rounded < 0) & (rounded * b != a))).astype(a.dtype)


def _cast(x: Array, *, to: int, **_: Any) -> Array:
    target = ir.DataType(to)
    plain = x.dtype.kind in "iubf" and target.numpy().kind in "iubf" and target != ir.DataType.FLOAT16
    if not plain or (x.dtype.kind == "f" and target.numpy().kind != "f" and not np.all(np.isfinite(x))):
        raise ValueError("not folded")
    return x.astype(target.numpy())


def _slice(
    x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None, **_: Any
) -> Array:
    index: list[slice] = [slice(None)] * x.ndim
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        axis = i if axes is None else int(axes[i])
        step = 1 if steps is None else int(steps[i])
        index[axis] = slice(max(start, -x.shape[axis]) if step < 0 else start, end, step)
    return x[tuple(index)]


def _reshape(x: Array, shape: Array, *, allowzero: int = 0, **_: Any) -> Array:
    wanted = [x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(shape.tolist())]
    return x.reshape(wanted)


def _expand(x: Array, shape: Array, **_: Any) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


def _shape(x: Array, *, start: int = 0, end: int | None = None, **_: Any) -> Array:
    return np.array(x.shape[start:end], dtype=np.int64)


def _constant_of_shape(shape: Array, *, value: Any = None, **_: Any) -> Array:
    fill = np.zeros(1, np.float32) if value is None else value.numpy()
    return np.full(tuple(shape.tolist()), fill.reshape(-1)[0], fill.dtype)


def _gather(x: Array, indices: Array, *, axis: int = 0, **_: Any) -> Array:
    return np.take(x, indices, axis=axis)


def _range(start: Array, limit: Array, delta: Array, **_: Any) -> Array:
    if start.dtype.kind not in "iu":
        raise ValueError("not folded")
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


EVALUATE: dict[str, Callable[..., Array]] = {
    "Add": lambda a, b, **_: a + b,
    "Sub": lambda a, b, **_: a - b,
    "Mul": lambda a, b, **_: a * b,
    "Div": lambda a, b, **_: _integer_divide(a, b),
    "Pow": lambda a, b, **_: np.power(a, b).astype(a.dtype),
    "Neg": lambda x, **_: -x,
    "Sqrt": lambda x, **_: np.sqrt(x),
    "Equal": lambda a, b, **_: a == b,
    "Not": lambda x, **_: ~x,
    "Where": lambda c, a, b, **_: np.where(c, a, b),
    "Cast": _cast,
    "CastLike": lambda x, like, **_: _cast(x, to=ir.DataType.from_numpy(like.dtype)),
    "Shape": _shape,
    "Size": lambda x, **_: np.array(x.size, dtype=np.int64),
    "Expand": _expand,
    "Reshape": _reshape,
    "Slice": _slice,
    "Gather": _gather,
    "Range": _range,
    "Concat": lambda *parts, axis, **_: np.concatenate(parts, axis=axis),
    "Transpose": lambda x, perm=None, **_: np.transpose(x, perm),
    "Unsqueeze": lambda x, axes, **_: np.expand_dims(x, tuple(axes.tolist())),
    "Squeeze": lambda x, axes=None, **_: np.squeeze(x, None if axes is None else tuple(axes.tolist())),
    "ConstantOfShape": _constant_of_shape,
}
_SHAPE_ONLY = frozenset({"Shape", "Size"})
"""Ops that need no more than the shape of a large input."""
_BROADCAST = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Equal", "Where"})
_NARROW = frozenset({ir.DataType.INT8, ir.DataType.UINT8})


def fold_constants(model: ir.Model) -> int:
    """Replace what depends on constants alone, in all graphs of the model; returns how many nodes went."""
    folder = _Folder(model.producer_name == "pytorch", signature(model.graph), Names(model))
    for graph in list(all_graphs(model.graph)):
        for node in list(graph):
            folder.fold(graph, node)
    return folder.count


@dataclass
class _Folder:
    is_merged: bool
    """Whether the exporter keeps one of equal weights, and an Identity under each name of the others."""
    state: Signature
    """The names of weights, where the exporter wrote them down."""
    names: Names
    count: int = 0
    stored: set[ir.Value] = field(default_factory=set)
    """What was read from integers of eight bits: what it is multiplied by is a scale, and the product the weight."""

    def fold(self, graph: ir.Graph, node: ir.Node) -> None:
        output = node.outputs[0] if len(node.outputs) == 1 else None
        if node.domain not in ("", "ai.onnx") or output is None or output.is_graph_output():
            return
        value = self._same(graph, node) if node.op_type == "Identity" else self._computed(graph, node)
        if value is None:
            return
        self.count += 1
        output.replace_all_uses_with(value)
        graph.remove(node, safe=True)

    def _same(self, graph: ir.Graph, node: ir.Node) -> ir.Value | None:
        source, name = node.inputs[0], node.outputs[0].name or ""
        tensor = None if source is None else ir.convenience.get_const_tensor(source)
        if source is None or tensor is None:
            return None
        found = role(source)
        is_name = name in self.state if self.state else not is_automatic(name)
        if found is None or not self.is_merged or tensor.size > LIMIT or not is_name:
            return source
        own = _constant(graph, name, tensor)
        own.meta[MARK] = replace(found, name=name)
        return own

    def _computed(self, graph: ir.Graph, node: ir.Node) -> ir.Value | None:
        if node.op_type not in EVALUATE or any(self._is_weight(node, value) for value in node.inputs):
            return None
        result = _evaluate(node)
        if result is None:
            return None
        name = self.names.value(f"folded_{self.count + 1}_{node.outputs[0].name}")
        value = _constant(graph, name, ir.tensor(np.array(result, order="C"), name=name))
        first = node.inputs[0]
        if first in self.stored or (node.op_type == "Cast" and first is not None and first.dtype in _NARROW):
            self.stored.add(value)
        return value

    def _is_weight(self, node: ir.Node, value: ir.Value | None) -> bool:
        """Whether the numbers of an input are a weight's."""
        if value is None or node.op_type in _SHAPE_ONLY or role(value) is None:
            return False
        if node.op_type == "CastLike":
            return value is node.inputs[0]
        scaled = [v for v in node.inputs if v in self.stored] if node.op_type == "Mul" else []
        return not any(_size(v) > _size(value) for v in scaled)


def _size(value: ir.Value | None) -> int:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return 0 if tensor is None else tensor.size


def _constant(graph: ir.Graph, name: str, tensor: ir.TensorProtocol) -> ir.Value:
    shape = ir.Shape(tensor.shape.numpy())
    value = ir.Value(name=name, shape=shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
    graph.register_initializer(value)
    return value


def _evaluate(node: ir.Node) -> Array | None:
    operands: list[Array | None] = []
    for i, value in enumerate(node.inputs):
        if value is None:
            operands.append(None)
            continue
        if node.op_type == "CastLike" and i == 1 and value.dtype is not None:
            operands.append(np.zeros((), value.dtype.numpy()))
            continue
        tensor = ir.convenience.get_const_tensor(value)
        light = node.op_type in _SHAPE_ONLY
        if tensor is None or tensor.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
            return None
        if tensor.size > LIMIT and not light:
            return None
        operands.append(stand_in(tensor) if light else tensor.numpy())
    if not operands or operands[0] is None:
        return None
    attributes = arguments(node)
    try:
        if _size_of_result(node.op_type, operands, attributes) > LIMIT:
            return None
        with np.errstate(all="ignore"):
            result = EVALUATE[node.op_type](*operands, **attributes)
            result = np.asarray(result)
    except (ValueError, IndexError, TypeError, OverflowError, MemoryError, AttributeError, KeyError):
        return None
    return result if result.size <= LIMIT and result.dtype.kind in "iubf" else None


def arguments(node: ir.Node) -> dict[str, Any]:
    """The attributes of a node; axes, which newer opsets have as an input, as an array."""
    return {name: np.array(a.value) if name == "axes" else a.value for name, a in node.attributes.items()}


def _size_of_result(op_type: str, operands: list[Array | None], attributes: Mapping[str, Any]) -> int:
    """How many elements there may be at most, told before any is computed: a few numbers can ask for billions."""
    given = [operand for operand in operands if operand is not None]
    match op_type:
        case "ConstantOfShape":
            return math.prod(map(int, given[0]))
        case "Expand":
            return math.prod(np.broadcast_shapes(given[0].shape, tuple(map(int, given[1]))))
        case "Range":
            return len(range(*(int(bound.item()) for bound in given))) if given[0].dtype.kind in "iu" else 0
        case "Gather":
            length = given[0].shape[attributes.get("axis", 0)]
            return int(given[1].size * (given[0].size // max(length, 1)))
        case "Concat":
            return sum(operand.size for operand in given)
        case op if op in _SHAPE_ONLY or len(given) == 1:
            return 0
        case op if op in _BROADCAST:
            return math.prod(np.broadcast_shapes(*(operand.shape for operand in given)))
    return given[0].size


def stand_in(tensor: ir.TensorProtocol) -> Array:
    """An array of a tensor's shape and type that takes no memory."""
    return np.broadcast_to(np.zeros((), tensor.dtype.numpy()), tuple(tensor.shape.numpy()))
