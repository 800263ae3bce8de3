"""Ops that pick, place, sort or count elements by index."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.jax.numbers import in_numpy, is_string, scalar
from onward.backends.jax.target import dtype, jnp, lax, np_, ops, rule
from onward.backends.shared.shape import axis_of, subscript
from onward.graph.origin import origin
from onward.spec import index as spec

METHODS = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
"""What `x.at[places]` calls the ways to combine elements."""


@rule("Gather")
def gather(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    chosen = e.host(indices)
    index: Any = chosen.item() if chosen is not None and chosen.ndim == 0 else indices
    if isinstance(index, Expr) and is_string(e, x):
        index = in_numpy(e, indices)
    found = subscript(x, {p.axis: index}, e.rank(x))
    assert found is not None
    may_be_one = (e.rank(x) or 1) == 1 and (e.rank(indices) or 0) == 0
    return np_.asarray(found, dtype=Name("object")) if is_string(e, x) and may_be_one else found


@rule("GatherElements")
def gather_elements(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    if is_string(e, x):
        return ops.strings_at(x, ops.places_of(x)[ops.element_places(indices, p.axis)])
    shape, wanted = e.shape(x), e.shape(indices)
    if shape is not None and wanted is not None and _differ_along(shape, wanted, p.axis):
        return jnp.take_along_axis(x, indices, p.axis)
    return x[ops.element_places(indices, p.axis)]


def _differ_along(a: tuple[int | None, ...], b: tuple[int | None, ...], axis: int) -> bool:
    """Whether two shapes are surely the same but for one axis."""
    others = [pair for i, pair in enumerate(zip(a, b, strict=True)) if i != axis % len(a)]
    return all(n is not None and n == m for n, m in others)


@rule("GatherND")
def gather_nd(e: Emitter, x: Expr, indices: Expr, p: spec.GatherND) -> Expr:
    batch = {"batch_dims": p.batch_dims} if p.batch_dims else {}
    if is_string(e, x):
        return ops.strings_at(x, ops.places_of(x)[ops.coordinates(indices, **batch)])
    return x[ops.coordinates(indices, **batch)]


@rule("Scatter", "ScatterElements")
def scatter_elements(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterElements) -> Expr:
    return _scatter(e, x, ops.element_places(indices, p.axis), updates, p.reduction)


@rule("ScatterND")
def scatter_nd(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterND) -> Expr:
    return _scatter(e, x, ops.coordinates(indices), updates, p.reduction)


def _scatter(e: Emitter, x: Expr, places: Expr, updates: Expr, reduction: str) -> Expr:
    if is_string(e, x):
        return ops.put_strings(x, ops.places_of(x)[places], updates)
    if e.dtype(x) == ir.DataType.BOOL and reduction != "none":
        reduction = "max" if reduction in ("add", "max") else "min"
    target = e.node.inputs[0]
    if target is not None and target.producer() is None:  # it may be an array of numpy, which has no `at`
        x = jnp.asarray(x)
    return getattr(x.at[places], METHODS[reduction])(updates)  # type: ignore[no-any-return]


@rule("TensorScatter")
def tensor_scatter(e: Emitter, cache: Expr, update: Expr, start: Expr | None = None, *, p: spec.TensorScatter) -> Expr:
    return ops.write_cache(cache, update, start, p.axis, **options(circular=p.mode == "circular"))


@rule("OneHot")
def one_hot(e: Emitter, indices: Expr, depth: Expr, values: Expr, p: spec.OneHot) -> Expr:
    size = scalar(e, depth, "depth")
    mask = ops.one_hot(indices, Name("int")(size) if isinstance(size, Expr) else int(size), p.axis)
    if is_string(e, values):
        return np_.where(ops.known(mask, str(origin(e.node))), values[1], values[0])
    constant, of = e.const(values), e.dtype(values)
    if constant is not None and of is not None and constant.tolist() == [0, 1]:
        return mask if of == ir.DataType.BOOL else mask.astype(dtype(of))
    return jnp.where(mask, values[1], values[0])


@rule("NonZero")
def nonzero(e: Emitter, x: Expr) -> Expr:
    size = e.bound()
    if size is None or e.rank(x) == 0:
        return ops.nonzero(x, str(origin(e.node)))
    e.counts[e.node] = e.let(jnp.count_nonzero(x), "count")
    return jnp.stack(jnp.nonzero(x, size=size, fill_value=-1))


@rule("Unique")
def unique(e: Emitter, x: Expr, p: spec.Unique) -> Any:
    more = given(axis=p.axis) | ({} if p.sorted else {"ascending": False})
    helper = ops.unique_strings if is_string(e, x) else ops.unique
    size = None if is_string(e, x) else e.bound()
    if size is None:
        return tuple(e.unpack(helper(x, str(origin(e.node)), **more), 4))
    *found, e.counts[e.node] = e.unpack(ops.first_unique(x, size, **more), 5)
    return tuple(found)


@rule("TopK")
def topk(e: Emitter, x: Expr, k: Expr, p: spec.TopK) -> Any:
    count, axis = scalar(e, k, "k"), axis_of(e, x, p.axis)
    is_last = axis == -1 or axis + 1 == e.rank(x)
    if not p.largest or not is_last:
        return tuple(e.unpack(ops.top_k(x, count, axis, **({} if p.largest else {"largest": False})), 2))
    if not e.used(1):
        return lax.top_k(x, count)[0], None
    kind = e.dtype(x)
    if kind is None or kind.is_floating_point():  # XLA has -0 below 0, and ONNX has them equal
        x = jnp.where(jnp.equal(x, 0), 0, x)
    values, indices = e.unpack(lax.top_k(x, count), 2)
    return values, indices.astype(Name("int"))


@rule("Compress")
def compress(e: Emitter, x: Expr, condition: Expr, p: spec.Compress) -> Expr:
    if is_string(e, x):
        return np_.compress(in_numpy(e, condition), x, **given(axis=p.axis))
    size = e.bound()
    if size is not None:
        first, e.counts[e.node] = e.unpack(ops.first_kept(x, condition, size, **given(axis=p.axis)), 2)
        return first
    kept = np_.flatnonzero(in_numpy(e, condition))
    if p.axis is None:
        return x.reshape(-1)[kept]
    found = subscript(x, {p.axis: kept}, e.rank(x))
    assert found is not None
    return found


@rule("ReverseSequence")
def reverse_sequence(e: Emitter, x: Expr, lengths: Expr, p: spec.ReverseSequence) -> Expr:
    if is_string(e, x):
        return ops.strings_at(x, ops.reverse_sequence(ops.places_of(x), lengths, p.time_axis, p.batch_axis))
    return ops.reverse_sequence(x, lengths, p.time_axis, p.batch_axis)
