"""Branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.frontends.jax.dimensions import is_known
from onward.frontends.jax.recurrence import recurrent
from onward.frontends.jax.registry import rule
from onward.frontends.jax.values import Value, joined, parts
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.graph.build import Tensor
from onward.graph.scan import give


@rule("cond", whole=True)
def cond(op: Writer, index: Tensor, *inputs: Value, branches: Sequence[Any]) -> Sequence[Value]:
    """A chain of branches: those before the last are chosen by their number."""
    known = op.known(index)
    if known is not None:
        return op.translator.run(branches[int(np.clip(int(known), 0, len(branches) - 1))], inputs)
    avals = op.outs
    if len(branches) == 1:
        return op.translator.run(branches[0], inputs)
    if not avals:
        return []
    if len(branches) == 2:
        return _chosen(op, _truth(op, index), branches, inputs, avals)

    def among(first: int) -> list[Value]:
        if first == len(branches) - 1:
            return _whole(op, op.translator.run(branches[first], inputs), avals)
        below = op.LessOrEqual(index, op.like(first, index)) if first == 0 else op.Equal(index, op.like(first, index))
        return _if(op, below, lambda: _whole(op, op.translator.run(branches[first], inputs), avals),
                   lambda: among(first + 1))  # fmt: skip

    return among(0)


def _truth(op: Writer, index: Tensor) -> Tensor:
    """An index of two branches as a truth value: mostly it was made of one."""
    if index.dtype == ir.DataType.BOOL:
        return index
    made = index.value.producer()
    source = made.inputs[0] if made is not None and made.op_type == "Cast" else None
    if source is not None and source.dtype == ir.DataType.BOOL:
        return op.tensor(source)
    return index > 0


def _chosen(op: Writer, test: Tensor, branches: Sequence[Any], inputs: Sequence[Value], avals: Any) -> list[Value]:
    def write(branch: Any) -> Any:
        return lambda: _whole(op, op.translator.run(branch, inputs), avals)

    return _if(op, test, write(branches[1]), write(branches[0]))


def _if(op: Writer, test: Tensor, then: Any, otherwise: Any) -> list[Value]:
    results: list[list[Value]] = []
    bodies = []
    for write in (then, otherwise):
        graph = ir.Graph([], [], nodes=[], name=op.names.node(f"{op.scope}branch"))
        with op.body(graph):
            results.append(write())
            give(op, graph, [tensor for value in results[-1] for tensor in parts(value)])
        bodies.append(graph)
    made = op.many("If", len(bodies[0].outputs), test, then_branch=bodies[0], else_branch=bodies[1])
    return joined(results[0], made)


def _whole(op: Writer, values: Sequence[Value], avals: Sequence[Any]) -> list[Value]:
    """In the shapes that JAX says they have: what leaves a body is not put off."""
    return [op.translator.full(value, aval) for value, aval in zip(values, avals, strict=True)]


def _state(op: Writer, value: Value, aval: Any) -> Value:
    """What a round begins with, of the dtype and shape that JAX says."""
    dims, dtype = op.dims(aval.shape), onnx_dtype(aval.dtype)
    fresh = [
        op.tensor(ir.Value(name=op.names.value("state"), type=ir.TensorType(dtype), shape=ir.Shape(dims)))
        for _ in parts(value)
    ]
    return joined([value], fresh)[0]


def _flat(values: Sequence[Value]) -> list[Tensor]:
    return [tensor for value in values for tensor in parts(value)]


@rule("while", whole=True)
def while_(
    op: Writer, *inputs: Value, cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int
) -> Sequence[Value]:
    """A Loop; where the condition is of several at once, each state changes as long as its own holds."""
    of_cond, rest = inputs[:cond_nconsts], inputs[cond_nconsts:]
    of_body, states = rest[:body_nconsts], list(rest[body_nconsts:])
    avals = op.outs

    def test(values: Sequence[Value]) -> Tensor:
        (found,) = op.translator.run(cond_jaxpr, [*of_cond, *values])
        assert isinstance(found, Tensor)
        return found

    def any_of(condition: Tensor) -> Tensor:
        if not condition.rank:
            return condition
        return op.reduced("ReduceMax", condition.cast(ir.DataType.INT32), None, keepdims=False).cast(ir.DataType.BOOL)

    batched = bool(cond_jaxpr.out_avals[0].shape)
    graph = _loop_graph(op)
    inside = [_state(op, value, aval) for value, aval in zip(states, avals, strict=True)]
    graph.inputs.extend(tensor.value for tensor in _flat(inside))
    first = any_of(test(states))
    with op.body(graph):
        results = _whole(op, op.translator.run(body_jaxpr, [*of_body, *inside]), avals)
        if batched:
            going = op.translator.full(test(inside), cond_jaxpr.out_avals[0])
            assert isinstance(going, Tensor)
            results = [_kept(op, going, new, old) for new, old in zip(results, inside, strict=True)]
        give(op, graph, [any_of(test(results)), *_flat(results)])
    made = op.many("Loop", len(_flat(states)), None, first, *_flat(states), body=graph)
    return joined(states, made)


def _kept(op: Writer, going: Tensor, new: Value, old: Value) -> Value:
    """What goes on is new; the leading axes of a state are those of the condition."""

    def one(a: Tensor, b: Tensor) -> Tensor:
        behind = (a.rank or 0) - (going.rank or 0)
        test = op.unsqueeze(going, [(going.rank or 0) + i for i in range(behind)])
        return op.Where(test, a, b)

    return joined([new], [one(*pair) for pair in zip(parts(new), parts(old), strict=True)])[0]


def _loop_graph(op: Writer) -> ir.Graph:
    graph = ir.Graph([], [], nodes=[], name=op.names.node(f"{op.scope}loop"))
    for name, dtype in (("round", ir.DataType.INT64), ("goes_on", ir.DataType.BOOL)):
        graph.inputs.append(ir.Value(name=op.names.value(name), type=ir.TensorType(dtype), shape=ir.Shape([])))
    return graph


@rule("scan", whole=True)
def scan(
    op: Writer, *inputs: Value, jaxpr: Any, length: Any, reverse: bool, num_consts: int, num_carry: int
) -> Sequence[Value]:
    """A Scan; without anything to go through it is a Loop of so many rounds."""
    consts, states = inputs[:num_consts], list(inputs[num_consts : num_consts + num_carry])
    rows = list(inputs[num_consts + num_carry :])
    avals = op.outs
    if is_known(length) and int(length) == 0:
        nothing = [_nothing(op, aval) for aval in avals[num_carry:]]
        return [*states, *nothing]
    if is_known(length) and int(length) == 1:
        return _once(op, jaxpr, consts, states, rows, num_carry)
    inner_avals = jaxpr.out_avals
    if not rows:
        return _counted(op, jaxpr, consts, states, length, reverse, num_carry)
    graph = ir.Graph([], [], nodes=[], name=op.names.node(f"{op.scope}scan"))
    row_avals = jaxpr.in_avals[num_consts + num_carry :]
    inside = [_state(op, value, aval) for value, aval in zip(states, avals[:num_carry], strict=True)]
    row = [_state(op, value, aval) for value, aval in zip(rows, row_avals, strict=True)]
    graph.inputs.extend(tensor.value for tensor in (*_flat(inside), *_flat(row)))
    with op.body(graph):
        results = _whole(op, op.translator.run(jaxpr, [*consts, *inside, *row]), inner_avals)
        give(op, graph, _flat(results))
    layer = recurrent(op, graph, _flat(states), _flat(rows), reverse)
    if layer is not None:
        return joined(results, layer)
    kept, taken, made = len(_flat(states)), len(_flat(rows)), len(_flat(results))
    found = op.many(
        "Scan",
        made,
        *_flat(states),
        *_flat(rows),
        body=graph,
        num_scan_inputs=taken,
        scan_input_directions=[1] * taken if reverse else None,
        scan_output_directions=[1] * (made - kept) if reverse and made > kept else None,
    )
    return joined(results, found)


def _nothing(op: Writer, aval: Any) -> Value:
    """A result of no rounds."""
    shape = op.sizes(aval.shape)
    empty = op.ConstantOfShape(shape, value=ir.tensor(np.zeros(1, onnx_dtype(aval.dtype).numpy())))
    return empty


def _once(
    op: Writer, jaxpr: Any, consts: Sequence[Value], states: Sequence[Value], rows: Sequence[Value], num_carry: int
) -> list[Value]:
    """One round needs no loop."""
    row = [joined([value], [op.squeeze(tensor, [0]) for tensor in parts(value)])[0] for value in rows]
    results = _whole(op, op.translator.run(jaxpr, [*consts, *states, *row]), jaxpr.out_avals)
    added = [
        joined([value], [op.unsqueeze(tensor, [0]) for tensor in parts(value)])[0] for value in results[num_carry:]
    ]
    return [*results[:num_carry], *added]


def _counted(
    op: Writer, jaxpr: Any, consts: Sequence[Value], states: Sequence[Value], length: Any, reverse: bool, num_carry: int
) -> list[Value]:
    graph = _loop_graph(op)
    inside = [_state(op, value, aval) for value, aval in zip(states, jaxpr.out_avals, strict=False)]
    graph.inputs.extend(tensor.value for tensor in _flat(inside))
    with op.body(graph):
        results = _whole(op, op.translator.run(jaxpr, [*consts, *inside]), jaxpr.out_avals)
        give(op, graph, [op.tensor(graph.inputs[1]), *_flat(results)])
    found = op.many("Loop", len(_flat(results)), op.size(length), None, *_flat(states), body=graph)
    values = joined(results, found)
    if not reverse:
        return values
    turned = [
        joined([value], [op.turned_round(tensor, [0]) for tensor in parts(value)])[0] for value in values[num_carry:]
    ]
    return [*values[:num_carry], *turned]


@rule("platform_index", "platform_index_p")
def platform_index(op: Writer, *, platforms: Sequence[Any]) -> Tensor:
    """Which of several ways to compute something is for this platform: that for the CPU, or the default one."""
    names = [tuple(group) if group is not None else ("cpu",) for group in platforms]
    place = next((i for i, group in enumerate(names) if "cpu" in group), len(names) - 1)
    return op.constant(np.asarray(place, np.int32))


@rule("custom_linear_solve", whole=True)
def custom_linear_solve(op: Writer, *inputs: Value, jaxprs: Any, const_lengths: Any) -> Sequence[Value]:
    """What the user gave for solving, of its own constants and the right side."""
    start = const_lengths.matvec + const_lengths.vecmat
    consts = inputs[start : start + const_lengths.solve]
    right = inputs[sum(const_lengths) :]
    return op.translator.run(jaxprs.solve, [*consts, *right])
