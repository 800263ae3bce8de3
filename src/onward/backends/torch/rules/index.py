"""Ops that pick, place, sort or count elements by index."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.facts import is_dim
from onward.backends.shared.shape import axis_of, subscript
from onward.backends.torch.dtypes import bits, from_bits, from_ordered, ordered
from onward.backends.torch.rules.shape import integer, is_string, number
from onward.backends.torch.target import dtype, nn, np_, ops, rule, torch
from onward.backends.torch.window import typed
from onward.graph.replace import constant, is_op, made_by
from onward.spec import index as spec

FROM_PYTORCH = ("pytorch", "onnxruntime-genai")
"""Who writes files of models that are PyTorch's."""
REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@rule("Gather")
def gather(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    if p.axis == 0 and _is_embedding(e, x, indices):
        size, width = e.shape(x) or ()
        return e.module(nn.Embedding(size, width, **typed(e, x)), "embedding", weight=x)(indices)
    index: Any = indices
    chosen = e.host(indices)
    if chosen is not None and chosen.ndim == 0:
        index = chosen.item()
    elif is_string(e, x):
        index = indices.cpu().numpy()
    found = subscript(x, {p.axis: index}, e.rank(x))
    assert found is not None
    may_be_one = (e.rank(x) or 1) == 1 and (e.rank(indices) or 0) == 0
    return np_.asarray(found, dtype=Name("object")) if is_string(e, x) and may_be_one else found


def _is_embedding(e: Emitter, x: Expr, indices: Expr) -> bool:
    """Whether this was an `nn.Embedding`, which refuses negative indices: ONNX itself allows them."""
    if e.producer not in FROM_PYTORCH or not isinstance(x, Arg) or not e.is_weight(x) or e.rank(x) != 2:
        return False
    known = e.const(indices)
    return (
        (x._value.name or "").endswith("weight")
        and e.rank(indices) != 0
        and (known is None or bool((known >= 0).all()))
    )


@rule("GatherElements")
def gather_elements(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    if is_string(e, x):
        return ops.strings_at(x, ops.gather_elements(ops.places(x), indices.cpu(), p.axis))
    if _from_front(e, indices):
        return from_bits(e, x, torch.gather(bits(e, x), p.axis, indices))
    return from_bits(e, x, ops.gather_elements(bits(e, x), indices, p.axis))


def _from_front(e: Emitter, indices: Expr) -> bool:
    """Whether no index counts from the end: PyTorch, from which the file may come, would have refused it."""
    known = e.const(indices)
    if e.dtype(indices) != ir.DataType.INT64:
        return False
    return e.producer == "pytorch" if known is None else bool((known >= 0).all())


@rule("GatherND")
def gather_nd(e: Emitter, x: Expr, indices: Expr, p: spec.GatherND) -> Expr:
    if is_string(e, x):
        return ops.strings_at(x, ops.gather_nd(ops.places(x), indices.cpu(), p.batch_dims))
    return x[_coordinates(e, indices)] if p.batch_dims == 0 else ops.gather_nd(x, indices, p.batch_dims)


def _coordinates(e: Emitter, indices: Expr) -> Any:
    """The index along each axis: `(rows, columns)` where they were only put together to be taken apart again."""
    columns = _joined(e, indices._value) if isinstance(indices, Arg) else []
    found = tuple(e.arg(column) for column in columns)
    return found if found and all(e.dtype(column) == ir.DataType.INT64 for column in columns) else indices.unbind(-1)


def _joined(e: Emitter, indices: ir.Value) -> list[ir.Value]:
    """The columns of an index that has one for each axis, as they were before they were expanded to one shape."""
    join = made_by(indices, "Concat")
    if join is None or indices.shape is None or join.attributes.get_int("axis") not in (-1, len(indices.shape) - 1):
        return []
    columns = []
    for value in join.inputs:
        raised = made_by(value, "Unsqueeze")
        axes = None if raised is None else constant(raised.inputs[1])
        column = None if raised is None else raised.inputs[0]
        if axes is None or column is None or axes.numpy().tolist() not in ([-1], [len(indices.shape) - 1]):
            return []
        columns.append(column)
    return _broadcast(e, columns) or columns


def _broadcast(e: Emitter, columns: list[ir.Value]) -> list[ir.Value]:
    """What all of the columns are expanded from, if to the shape that they have together, as indexing does it too."""
    expanded = [node for column in columns if (node := made_by(column, "Expand")) is not None]
    sources = [node.inputs[0] for node in expanded if node.inputs[0] is not None]
    if len(sources) < len(columns):
        return []
    users = [use.node for use in sources[0].uses() if is_op(use.node, *_BROADCASTING)]
    sums = [e.arg(node.outputs[0]) for node in users if set(node.inputs) == set(sources)]
    shapes = [e.arg(node.inputs[1]) for node in expanded]
    return sources if any(all(_is_shape(e, shape, whole) for shape in shapes) for whole in sums) else []


def _is_shape(e: Emitter, shape: Expr | None, of: Expr | None) -> bool:
    """Whether numbers are surely the shape of a value."""
    dims = None if shape is None else e.numbers(shape)
    if of is None or not isinstance(dims, list) or len(dims) != e.rank(of):
        return False
    return all(is_dim(e, of, axis, n) for axis, n in enumerate(dims))


_BROADCASTING = ("Add", "Max", "Mul", "Sum")
"""By what exporters find the shape that several values have together."""


@rule("Scatter", "ScatterElements")
def scatter_elements(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterElements) -> Expr:
    if is_string(e, x):
        return ops.put_strings(x, ops.gather_elements(ops.places(x), indices.cpu(), p.axis), updates)
    enter, leave = (ordered, from_ordered) if p.reduction in ("min", "max") else (bits, from_bits)
    place = indices if _from_front(e, indices) else ops.from_front(indices, e.dim(x, p.axis))
    operands = p.axis, place, enter(e, updates)
    if p.reduction == "none":
        return leave(e, x, enter(e, x).scatter(*operands))
    return leave(e, x, enter(e, x).scatter_reduce(*operands, REDUCTIONS[p.reduction]))


@rule("ScatterND")
def scatter_nd(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterND) -> Expr:
    if is_string(e, x):
        return ops.put_strings(x, ops.gather_nd(ops.places(x), indices.cpu(), 0), updates)
    if p.reduction in ("none", "add"):
        options = {"accumulate": True} if p.reduction == "add" else {}
        return from_bits(e, x, bits(e, x).index_put(_coordinates(e, indices), bits(e, updates), **options))
    enter, leave = (ordered, from_ordered) if p.reduction in ("min", "max") else (bits, from_bits)
    return leave(e, x, ops.scatter_nd(enter(e, x), indices, enter(e, updates), REDUCTIONS[p.reduction]))


@rule("TensorScatter")
def tensor_scatter(e: Emitter, cache: Expr, update: Expr, start: Expr | None = None, *, p: spec.TensorScatter) -> Expr:
    options = {"circular": True} if p.mode == "circular" else {}
    return from_bits(e, cache, ops.write_cache(bits(e, cache), bits(e, update), start, p.axis, **options))


@rule("OneHot")
def one_hot(e: Emitter, indices: Expr, depth: Expr, values: Expr, p: spec.OneHot) -> Expr:
    size = number(e, depth)
    mask = ops.one_hot(indices, Name("int")(size) if isinstance(size, Expr) else int(size), p.axis)
    if is_string(e, values):
        return np_.where(mask.cpu().numpy(), values[1], values[0])
    known, of = e.const(values), e.dtype(values)
    if known is not None and of is not None and known.tolist() == [0, 1]:
        return mask if of == ir.DataType.BOOL else mask.to(dtype(of))
    return torch.where(mask, values[1], values[0])


@rule("NonZero")
def nonzero(e: Emitter, x: Expr) -> Expr:
    return torch.nonzero(bits(e, x)).T


@rule("Unique")
def unique(e: Emitter, x: Expr, p: spec.Unique) -> Any:
    if is_string(e, x):
        return tuple(e.unpack(ops.unique_strings(x, p.axis, bool(p.sorted)), 4))
    if p.axis is None and p.sorted and not any(map(e.used, (1, 2, 3))):
        return from_ordered(e, x, torch.unique(ordered(e, x)))
    values, *counts = e.unpack(ops.unique(ordered(e, x), p.axis, bool(p.sorted)), 4)
    return from_ordered(e, x, values), *counts


@rule("TopK")
def topk(e: Emitter, x: Expr, k: Expr, p: spec.TopK) -> Any:
    count = integer(e, k, "k")
    axis = axis_of(e, x, p.axis)
    if not e.used(1):
        options = {} if p.largest else {"largest": False}
        return from_ordered(e, x, torch.topk(ordered(e, x), count, axis, **options).values), None
    values, indices = e.unpack(ops.top_k(ordered(e, x), count, axis, *([] if p.largest else [False])), 2)
    return from_ordered(e, x, values), indices


@rule("Compress")
def compress(e: Emitter, x: Expr, condition: Expr, p: spec.Compress) -> Expr:
    if is_string(e, x):
        return np_.compress(condition.cpu().numpy(), x, **({} if p.axis is None else {"axis": p.axis}))
    kept = torch.nonzero(condition)[:, 0]
    return x.reshape(-1)[kept] if p.axis is None else x.index_select(axis_of(e, x, p.axis), kept)


@rule("ReverseSequence")
def reverse_sequence(e: Emitter, x: Expr, lengths: Expr, p: spec.ReverseSequence) -> Expr:
    if is_string(e, x):
        return ops.strings_at(x, ops.reverse_sequence(ops.places(x), lengths.cpu(), p.time_axis, p.batch_axis))
    return from_bits(e, x, ops.reverse_sequence(bits(e, x), lengths, p.time_axis, p.batch_axis))
