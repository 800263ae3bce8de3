"""Branches and loops over other graphs of the file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onward.frontends.tensorflow.rules.control_flow import Loop, branched, chosen
from onward.frontends.tensorflow.values import Complex, NotCollected, Reserved, TensorList, Value
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor


@rule("IF")
def if_(op: Writer, condition: Tensor, *arguments: Value) -> Sequence[Value]:
    options, called = op.operation.options, op.operation.graph.called
    test = op.Reshape(condition, op.ints([]))
    then, otherwise = options.thenSubgraphIndex, options.elseSubgraphIndex
    return chosen(op, test, partial(called, then, arguments), partial(called, otherwise, arguments))


@rule("STABLEHLO_CASE")
def case(op: Writer, index: Tensor, *arguments: Value) -> Sequence[Value]:
    called = op.operation.graph.called
    numbers = [int(n) for n in op.operation.options.branchSubgraphIndices]
    return branched(op, op.Reshape(index, op.ints([])), [partial(called, number, arguments) for number in numbers])


@rule("WHILE")
def while_(op: Writer, *arguments: Value) -> Sequence[Value]:
    options, called = op.operation.options, op.operation.graph.called

    def goes_on(states: Sequence[Value]) -> list[Tensor]:
        return [op.Reshape(called(options.condSubgraphIndex, states)[0], op.ints([]))]

    kinds = Tensor | Complex | TensorList | Reserved
    carried = [i for i, argument in enumerate(arguments) if isinstance(argument, kinds)]
    collecting = {i for i in carried if isinstance(arguments[i], Reserved)}
    unknown = [None if not isinstance(a, Tensor) or a.dims is None else [None] * len(a.dims) for a in arguments]
    body = partial(called, options.bodySubgraphIndex)
    try:
        return Loop(op, arguments, goes_on, body, unknown, carried, collecting).written()
    except NotCollected:
        return Loop(op, arguments, goes_on, body, unknown, carried, set()).written()
